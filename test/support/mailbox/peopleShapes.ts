/** Mails that people write: Gmail, Outlook and Exchange, Apple Mail, Thunderbird. */
import { both, HIDDEN, html, picture, type Shape, text } from "./Shape.ts"

const GMAIL: ReadonlyArray<Shape> = [
  {
    name: "gmail-reply",
    subject: "Re: {product}",
    body: both(
      "{sentence}. {greeting}!\n\nOn Mon, 23 Nov 2026 at 10:00, {name} <ada@example.org> wrote:\n\n> {product}?\n> 1 < 2 & 3",
      `<div dir="ltr"><div>{sentence}. {greeting}!</div><div><br></div></div><br><div class="gmail_quote gmail_quote_container"><div dir="ltr" class="gmail_attr">On Mon, 23 Nov 2026 at 10:00, {name} &lt;<a href="mailto:ada@example.org">ada@example.org</a>&gt; wrote:<br></div><blockquote class="gmail_quote" style="margin:0px 0px 0px 0.8ex;border-left:1px solid rgb(204,204,204);padding-left:1ex"><div dir="ltr">{product}?<div>1 &lt; 2 &amp; 3</div></div></blockquote></div>`
    )
  },
  {
    name: "gmail-lists",
    subject: "{product}",
    body: both(
      "{greeting}",
      `<div dir="ltr">{greeting}<div><ul><li>{product}: <b>2</b></li><li style="margin-left:15px">{place}</li></ul><ol><li>First</li><li>Second<ul><li>Inner</li></ul></li></ol></div><div>See <a href="https://example.org/a?b=1&amp;c=2" target="_blank">{place}</a> and <a href="https://example.org/plain">https://example.org/plain</a></div></div>`
    )
  },
  {
    name: "gmail-forward",
    subject: "Fwd: {product}",
    body: both(
      "---------- Forwarded message ---------\nFrom: {name} <ada@example.org>\n\n{sentence}",
      `<div dir="ltr"><br><br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">---------- Forwarded message ---------<br>From: <strong class="gmail_sendername" dir="auto">{name}</strong> <span dir="auto">&lt;<a href="mailto:ada@example.org">ada@example.org</a>&gt;</span><br>Date: Mon, 23 Nov 2026 at 10:00<br>Subject: {product}<br>To: &lt;<a href="mailto:bob@choir.test">bob@choir.test</a>&gt;<br></div><br><br><div dir="ltr">{sentence}</div></div></div>`
    )
  },
  {
    name: "gmail-sheet",
    subject: "{product}",
    body: both(
      "{product} 2 3.50",
      `<div dir="ltr"><table cellspacing="0" cellpadding="0" dir="ltr" border="1" style="table-layout:fixed;font-size:10pt;font-family:Arial;width:0px;border-collapse:collapse;border:none"><colgroup><col width="100"><col width="100"><col width="100"></colgroup><tbody><tr style="height:21px"><td style="overflow:hidden;padding:2px 3px">What</td><td style="overflow:hidden;padding:2px 3px">Count</td><td style="overflow:hidden;padding:2px 3px">Price</td></tr><tr style="height:21px"><td style="overflow:hidden">{product}</td><td style="overflow:hidden;text-align:right">2</td><td style="overflow:hidden;text-align:right">3.50</td></tr><tr style="height:21px"><td></td><td style="text-align:right">a|b</td><td><a href="https://example.org/x">link</a></td></tr></tbody></table><br></div>`
    )
  },
  {
    name: "gmail-signature",
    subject: "{greeting}",
    body: both(
      "{greeting}\n\n-- \n{name}\n{place}",
      `<div dir="ltr">{greeting}<br clear="all"><div><br></div><span class="gmail_signature_prefix">-- </span><br><div dir="ltr" class="gmail_signature" data-smartmail="gmail_signature"><div dir="ltr"><img src="https://ci3.example.org/mail-sig/A" width="96" height="40" alt="Logo of the firm"><br>{name}<br>{place}<br>T: <a href="tel:+4930123456">+49 30 123456</a></div></div></div>`
    )
  },
  {
    name: "gmail-confidential",
    subject: "{sentence}",
    body: html(
      `<html><body><div style="display:none;max-height:0px;overflow:hidden">${HIDDEN}</div><div style="font-family:Roboto">{name} has sent you a message by confidential mode<table><tr><td><a href="https://confidential-mail.example.org/msg/ABC" style="color:#fff;background-color:#1a73e8">View the email</a></td></tr></table><span style="font-size:0px">${HIDDEN}</span></div></body></html>`
    )
  }
]

const MSO_HEAD = `<html xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" xmlns:w="urn:schemas-microsoft-com:office:word" xmlns="http://www.w3.org/TR/REC-html40"><head><meta http-equiv=Content-Type content="text/html; charset={set}"><meta name=Generator content="Microsoft Word 15 (filtered medium)"><!--[if !mso]><style>v\\:* {behavior:url(#default#VML);}</style><![endif]--><style><!--
@font-face {font-family:Calibri; panose-1:2 15 5 2 2 2 4 3 2 4;}
p.MsoNormal, li.MsoNormal {margin:0cm; font-size:11.0pt; font-family:"Calibri",sans-serif;}
a:link, span.MsoHyperlink {mso-style-priority:99; color:#0563C1; text-decoration:underline;}
--></style><!--[if gte mso 9]><xml><o:shapedefaults v:ext="edit" spidmax="1026" /></xml><![endif]--></head><body lang=DE link="#0563C1" vlink="#954F72" style='word-wrap:break-word'><div class=WordSection1>`
const MSO_END = "</div></body></html>"

const OUTLOOK: ReadonlyArray<Shape> = [
  {
    name: "outlook-word",
    subject: "{sentence}",
    body: both(
      "{greeting},\n\n{sentence}.\n\n{name}",
      `${MSO_HEAD}<p class=MsoNormal>{greeting},<o:p></o:p></p><p class=MsoNormal><o:p>&nbsp;</o:p></p><p class=MsoNormal>{sentence}.&nbsp; 5&nbsp;&euro; &ndash; 10&nbsp;%<o:p></o:p></p><p class=MsoNormal><o:p>&nbsp;</o:p></p><p class=MsoNormal><span lang=EN-US style='mso-fareast-language:EN-US'>{name}<o:p></o:p></span></p>${MSO_END}`
    )
  },
  {
    name: "outlook-reply",
    subject: "AW: {product}",
    body: both(
      "{sentence}\n\nVon: {name}",
      `${MSO_HEAD}<p class=MsoNormal>{sentence}<o:p></o:p></p><p class=MsoNormal><o:p>&nbsp;</o:p></p><div><div style='border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm'><p class=MsoNormal><b><span style='mso-fareast-language:DE'>From:</span></b><span> {name} &lt;ada@example.org&gt; <br><b>Sent:</b> Monday, November 23, 2026 10:00<br><b>To:</b> bob@choir.test<br><b>Subject:</b> {product}<o:p></o:p></span></p></div></div><p class=MsoNormal><o:p>&nbsp;</o:p></p><p class=MsoNormal>{place}<o:p></o:p></p>${MSO_END}`
    )
  },
  {
    name: "outlook-list",
    subject: "{product}",
    body: both(
      "* {product}\n* {place}",
      `${MSO_HEAD}<p class=MsoListParagraph style='text-indent:-18.0pt;mso-list:l0 level1 lfo1'><![if !supportLists]><span style='font-family:Symbol'><span style='mso-list:Ignore'>&middot;<span style='font:7.0pt "Times New Roman"'>&nbsp;&nbsp;&nbsp;&nbsp;&nbsp; </span></span></span><![endif]>{product}<o:p></o:p></p><p class=MsoListParagraph style='text-indent:-18.0pt;mso-list:l0 level1 lfo1'><![if !supportLists]><span style='font-family:Symbol'><span style='mso-list:Ignore'>&middot;<span style='font:7.0pt "Times New Roman"'>&nbsp;&nbsp;&nbsp;&nbsp;&nbsp; </span></span></span><![endif]>{place}<o:p></o:p></p>${MSO_END}`
    )
  },
  {
    name: "outlook-table",
    subject: "{product}",
    body: both(
      "{product} 1 200",
      `${MSO_HEAD}<table class=MsoTableGrid border=1 cellspacing=0 cellpadding=0 style='border-collapse:collapse;border:none'><tr><td width=200 valign=top style='border:solid windowtext 1.0pt'><p class=MsoNormal><b>Item<o:p></o:p></b></p></td><td width=200 colspan=2 valign=top><p class=MsoNormal><b>Sum<o:p></o:p></b></p></td></tr><tr><td rowspan=2><p class=MsoNormal>{product}<o:p></o:p></p></td><td><p class=MsoNormal>1<o:p></o:p></p></td><td><p class=MsoNormal>200<o:p></o:p></p></td></tr><tr><td><p class=MsoNormal>2</p><p class=MsoNormal>3<o:p></o:p></p></td><td><p class=MsoNormal><a href="https://example.org/i">400</a><o:p></o:p></p></td></tr></table>${MSO_END}`
    )
  },
  {
    name: "outlook-web",
    subject: "Re: {greeting}",
    body: both(
      "{greeting}",
      `<html><head><meta http-equiv="Content-Type" content="text/html; charset={set}"><style type="text/css" style="display:none;"> P {margin-top:0;margin-bottom:0;} </style></head><body dir="ltr"><div class="elementToProof" style="font-family: Aptos, Calibri; font-size: 12pt; color: rgb(0, 0, 0);">{greeting}</div><div class="elementToProof" style="font-size: 12pt;"><br></div><div class="elementToProof">{sentence}</div><div id="appendonsend"></div><hr style="display:inline-block;width:98%" tabindex="-1"><div id="divRplyFwdMsg" dir="ltr"><font face="Calibri, sans-serif" style="font-size:11pt" color="#000000"><b>From:</b> {name} &lt;ada@example.org&gt;<br><b>Sent:</b> Monday, 23 November 2026 10:00</font><div>&nbsp;</div></div><div>{place}</div></body></html>`
    )
  },
  {
    name: "exchange-banner",
    subject: "{sentence}",
    body: both(
      "CAUTION: external.\n\n{sentence}\n\nDisclaimer",
      `<html><head></head><body><table border="0" cellspacing="0" cellpadding="0" width="100%" style="background:#FFEB9C"><tr><td style="background:#910A19;padding:5pt 2pt"></td><td width="100%" style="background:#FDF2F4;padding:5pt 4pt"><div style="color:#222222"><b>CAUTION:</b> This email came from outside.</div></td></tr></table><br><div>{sentence}</div><br><p style="font-size:8pt;color:gray">The information in this email is confidential. {place}</p></body></html>`
    )
  },
  {
    name: "outlook-winmail",
    subject: "{product}",
    body: {
      multipart: "mixed",
      parts: [
        text("{sentence}"),
        {
          type: 'application/ms-tnef; name="winmail.dat"',
          body: Buffer.from("789f3e22", "hex"),
          headers: { "Content-Disposition": 'attachment; filename="winmail.dat"' }
        }
      ]
    },
    isWhole: true
  }
]

const APPLE: ReadonlyArray<Shape> = [
  {
    name: "apple-reply",
    subject: "Re: {product}",
    body: both(
      "{sentence}\n\n> On 23. Nov 2026, at 10:00, {name} <ada@example.org> wrote:\n> \n> {product}",
      `<html><head><meta http-equiv="content-type" content="text/html; charset={set}"></head><body style="overflow-wrap: break-word; -webkit-nbsp-mode: space; line-break: after-white-space;">{sentence}<br id="lineBreakAtBeginningOfMessage"><div><br><blockquote type="cite"><div>On 23. Nov 2026, at 10:00, {name} &lt;ada@example.org&gt; wrote:</div><br class="Apple-interchange-newline"><div><div>{product}</div></div></blockquote></div><br></body></html>`
    )
  },
  {
    name: "apple-pictures",
    subject: "{place}",
    body: {
      multipart: "mixed",
      parts: [
        html(`<html><body style="overflow-wrap: break-word;">{greeting}<div><br></div></body></html>`),
        picture("IMG_0001.png"),
        html(`<html><body style="overflow-wrap: break-word;"><div></div><div>{sentence}</div></body></html>`)
      ]
    },
    isWhole: true
  },
  {
    name: "apple-rich-link",
    subject: "{product}",
    body: html(
      `<html><head></head><body dir="auto">{greeting}<div dir="ltr"><div style="display: block;"><div style="-webkit-user-select: all;" class="apple-rich-link" draggable="true" role="link" data-url="https://example.org/story"><a style="border-radius:10px;display:block;" rel="nofollow" href="https://example.org/story" dir="ltr" role="button" draggable="false" width="300"><table style="table-layout:fixed;border-collapse:collapse;width:300px;" class="lp-rich-link-emailBaseTable" cellpadding="0" cellspacing="0" border="0" width="300"><tbody><tr><td vertical-align="center"><table bgcolor="#E5E6E9" cellpadding="0" cellspacing="0" width="300"><tbody><tr><td style="padding:8px 0px 8px 0px;"><div style="max-width:100%;margin:0px 16px;overflow:hidden;"><div style="font-weight:500;">{product}</div><div style="color:#808080;">example.org</div></div></td></tr></tbody></table></td></tr></tbody></table></a></div></div><br>Sent from my iPhone</div></body></html>`
    )
  }
]

const THUNDERBIRD: ReadonlyArray<Shape> = [
  {
    name: "thunderbird-flowed",
    subject: "Re: {product}",
    body: text(
      "On 23.11.26 10:00, {name} wrote:\n> {sentence} \n> and this goes with it.\n>> {product}\n\n{greeting} \nand the rest of the line.\n  From here\n-- \n{name}",
      {},
      "; format=flowed"
    )
  },
  {
    name: "thunderbird-html",
    subject: "Re: {product}",
    body: both(
      "{greeting}",
      `<!DOCTYPE html><html><head><meta http-equiv="Content-Type" content="text/html; charset={set}"></head><body><p>{greeting}</p><div class="moz-cite-prefix">Am 23.11.26 um 10:00 schrieb {name}:<br></div><blockquote type="cite" cite="mid:x@example.org"><meta http-equiv="Content-Type" content="text/html; charset={set}"><p>{sentence}</p><blockquote type="cite"><p>{place}</p></blockquote></blockquote><pre class="moz-signature" cols="72">-- 
{name}
{place}</pre></body></html>`
    )
  },
  {
    name: "thunderbird-forward",
    subject: "Fwd: {product}",
    body: both(
      "-------- Forwarded Message --------\n{sentence}",
      `<!DOCTYPE html><html><head></head><body><p><br></p><div class="moz-forward-container">-------- Forwarded Message --------<table class="moz-email-headers-table" cellspacing="0" cellpadding="0" border="0"><tbody><tr><th valign="BASELINE" nowrap="nowrap" align="RIGHT">Subject: </th><td>{product}</td></tr><tr><th valign="BASELINE" nowrap="nowrap" align="RIGHT">From: </th><td>{name} <a class="moz-txt-link-rfc2396E" href="mailto:ada@example.org">&lt;ada@example.org&gt;</a></td></tr></tbody></table><br><p>{sentence}</p></div></body></html>`
    )
  },
  {
    name: "thunderbird-lines",
    subject: "{product}",
    body: html(
      `<html><body><div class="moz-text-plain" wrap="true" style="white-space: pre-wrap; font-family: -moz-fixed;" lang="x-unicode">{greeting}
{sentence}
    {product}	{place}</div></body></html>`
    )
  }
]

export const PEOPLE_SHAPES: ReadonlyArray<Shape> = [...GMAIL, ...OUTLOOK, ...APPLE, ...THUNDERBIRD]
