/** Mails that programs write: lists, newsletters, shops, calendars, mail servers. */
import { both, HIDDEN, html, type Shape, text } from "./Shape.ts"

const FOOTER =
  "_______________________________________________\nChoir mailing list -- choir@lists.example.org\nTo unsubscribe send an email to choir-leave@lists.example.org"

const LISTS: ReadonlyArray<Shape> = [
  {
    name: "mailman-footer",
    subject: "[Choir] {product}",
    headers: { "List-Id": "<choir.lists.example.org>" },
    body: { multipart: "mixed", parts: [text("{sentence}"), text(FOOTER, { "Content-Disposition": "inline" })] },
    isWhole: true
  },
  {
    name: "mailman-html-footer",
    subject: "[Choir] {product}",
    body: {
      multipart: "mixed",
      parts: [
        both("{sentence}", "<html><body><p>{sentence}</p><p>{place}</p></body></html>"),
        text(FOOTER, { "Content-Disposition": "inline" })
      ]
    },
    isWhole: true
  },
  {
    name: "google-groups",
    subject: "{product}",
    body: both(
      "{sentence}\n\n-- \nYou received this message because you are subscribed.",
      `<div dir="ltr">{sentence}</div>\n\n<p></p>\n\n-- <br />\nYou received this message because you are subscribed to the Google Groups &quot;choir&quot; group.<br />\nTo unsubscribe from this group, send an email to <a href="mailto:choir+unsubscribe@googlegroups.example">choir+unsubscribe@googlegroups.example</a>.<br />`
    )
  },
  {
    name: "github",
    subject: "[choir/choir] {product} (Issue #12)",
    body: both(
      "{name} left a comment (choir/choir#12)\n\n{sentence}\n\n```\nnpm test\n```\n\n-- \nReply to this email directly or view it on GitHub:\nhttps://github.example/choir/choir/issues/12#issuecomment-1",
      `<div style="display: flex; flex-wrap: wrap; white-space: pre-wrap; align-items: center; "><img height="20" width="20" style="border-radius:50%; margin-right: 4px;" decoding="async" src="https://avatars.example/u/1?s=20&v=4" /><strong>{name}</strong> left a comment <a href="https://github.example/choir/choir/issues/12#issuecomment-1">(choir/choir#12)</a></div>
<p dir="auto">{sentence}</p>
<div class="highlight highlight-source-shell" dir="auto"><pre class="notranslate">npm <span class="pl-c1">test</span>
npm start</pre></div>
<p style="font-size:small;-webkit-text-size-adjust:none;color:#666;">&mdash;<br />Reply to this email directly, <a href="https://github.example/choir/choir/issues/12#issuecomment-1">view it on GitHub</a>.<img src="https://github.example/notifications/beacon/A.gif" height="1" width="1" alt="" /><span style="color: transparent; font-size: 0; display: none; visibility: hidden; overflow: hidden; opacity: 0; width: 0; height: 0; max-width: 0; max-height: 0; mso-hide: all">Message ID: ${HIDDEN}</span></p>
<script type="application/ld+json">[{"@context": "http://schema.org", "description": "${HIDDEN}"}]</script>`
    )
  },
  {
    name: "digest",
    subject: "Choir Digest, Vol 3",
    body: {
      multipart: "digest",
      parts: [
        { type: "message/rfc822", body: "From: eve@example.org\nSubject: First\n\nThe first words.\n" },
        { type: "message/rfc822", body: "From: max@example.org\nSubject: Second\n\nThe second words.\n" }
      ]
    },
    isWhole: true
  }
]

const PREHEADER = `<div style="display:none;font-size:1px;color:#ffffff;line-height:1px;max-height:0px;max-width:0px;opacity:0;overflow:hidden;">${HIDDEN}&#847;&zwnj;&nbsp;&#8199;&#847;&zwnj;&nbsp;</div>`

const NEWSLETTERS: ReadonlyArray<Shape> = [
  {
    name: "newsletter-mailchimp",
    subject: "{product}",
    headers: { "List-Unsubscribe": "<https://example.org/u>" },
    body: both(
      "View this email in your browser (https://example.org/v)\n\n{product}\n\n{sentence}",
      `<!doctype html><html xmlns:v="urn:schemas-microsoft-com:vml"><head><!--[if gte mso 15]><xml><o:OfficeDocumentSettings></o:OfficeDocumentSettings></xml><![endif]--><meta charset="{set}"><title>{product}</title><style type="text/css">.mcnPreviewText{display:none !important}@media only screen and (max-width:480px){.mobileOnly{display:block !important}}.mobileOnly{display:none}</style></head><body><!--*|IF:MC_PREVIEW_TEXT|*--><span class="mcnPreviewText" style="display:none; font-size:0px; line-height:0px; max-height:0px; max-width:0px; opacity:0; overflow:hidden; visibility:hidden; mso-hide:all;">${HIDDEN}</span><center><table align="center" border="0" cellpadding="0" cellspacing="0" height="100%" width="100%" id="bodyTable"><tr><td align="center" valign="top" id="bodyCell"><table border="0" cellpadding="0" cellspacing="0" width="100%" class="templateContainer"><tr><td valign="top" id="templatePreheader"><table class="mcnTextBlock" width="100%"><tbody><tr><td><table align="left" width="100%" class="mcnTextContentContainer"><tbody><tr><td class="mcnTextContent"><a href="https://example.org/v" target="_blank">View this email in your browser</a></td></tr></tbody></table></td></tr></tbody></table></td></tr><tr><td valign="top" id="templateBody"><table width="100%"><tbody><tr><td class="mcnTextContent"><h1>{product}</h1><p>{sentence}</p></td></tr><tr><td><table class="mcnButtonContentContainer" style="background-color:#2BAADF;"><tbody><tr><td><a class="mcnButton" href="https://example.org/buy" style="color:#FFFFFF;">{place}</a></td></tr></tbody></table></td></tr><tr class="mobileOnly"><td>${HIDDEN}</td></tr></tbody></table></td></tr><tr><td id="templateFooter"><em>Copyright &copy; 2026 Firm, All rights reserved.</em><br><a href="https://example.org/u">unsubscribe from this list</a></td></tr></table></td></tr></table></center><img src="https://example.org/open.gif" width="1" height="1"></body></html>`
    )
  },
  {
    name: "newsletter-mjml",
    subject: "{product}",
    body: html(
      `<!doctype html><html lang="und"><head><title></title><!--[if !mso]><!--><meta http-equiv="X-UA-Compatible" content="IE=edge"><!--<![endif]--><meta http-equiv="Content-Type" content="text/html; charset={set}"><style type="text/css">#outlook a { padding:0; } @media only screen and (min-width:480px) { .mj-column-per-50 { width:50% !important; max-width: 50%; } }</style></head><body style="word-spacing:normal;">${PREHEADER}<div style=""><!--[if mso | IE]><table align="center" border="0" width="600"><tr><td style="line-height:0px"><![endif]--><div style="margin:0px auto;max-width:600px;"><table align="center" border="0" cellpadding="0" cellspacing="0" role="presentation" style="width:100%;"><tbody><tr><td style="direction:ltr;font-size:0px;padding:20px 0;text-align:center;"><!--[if mso | IE]><table role="presentation"><tr><td><![endif]--><div class="mj-column-per-50" style="font-size:0px;display:inline-block;width:100%;"><table border="0" role="presentation" width="100%"><tbody><tr><td align="left" style="font-size:0px;padding:10px 25px;"><div style="font-family:Helvetica;font-size:20px;line-height:1;color:#000000;">{product}</div></td></tr></tbody></table></div><div class="mj-column-per-50" style="font-size:0px;display:inline-block;width:100%;"><table border="0" role="presentation" width="100%"><tbody><tr><td align="left" style="font-size:0px;padding:10px 25px;"><div style="font-family:Helvetica;font-size:13px;color:#000000;">{sentence}</div></td></tr></tbody></table></div></td></tr></tbody></table></div></div></body></html>`
    )
  },
  {
    name: "newsletter-dark",
    subject: "{greeting}",
    body: html(
      `<html><head><style>:root{color-scheme:light dark}@media (prefers-color-scheme: dark){.dark-img{display:block!important}.light-img{display:none!important}}</style></head><body bgcolor="#0b1a2c" style="background-color:#0b1a2c;color:#ffffff">${PREHEADER}<div class="light-img"><img src="a.png" alt="{product}"></div><!--[if !mso]><!--><div class="dark-img" style="display:none;overflow:hidden;width:0px;max-height:0px;"><img src="b.png" alt="${HIDDEN}"></div><!--<![endif]--><p style="color:#ffffff">{sentence}</p><p style="color:#0b1a2c">${HIDDEN}</p></body></html>`
    )
  },
  {
    name: "receipt",
    subject: "Your receipt #1234-5678",
    body: html(
      `<html><body><table role="presentation" width="100%"><tr><td><table role="presentation" width="100%"><tr><td><span>Amount paid</span></td><td>&#8364;238.00</td></tr><tr><td>Date paid</td><td>Nov 23, 2026</td></tr><tr><td>Payment method</td><td><img alt="Visa" src="v.png"> - 4242</td></tr></table></td></tr><tr><td><b>Summary</b></td></tr><tr><td><table role="presentation"><tr><td>{product} &times; 2</td><td align="right">&euro;200.00</td></tr><tr><td>VAT 19%</td><td align="right">&euro;38.00</td></tr><tr><td><strong>Total</strong></td><td align="right"><strong>&euro;238.00</strong></td></tr></table></td></tr></table></body></html>`
    )
  },
  {
    name: "shop-order",
    subject: "{product} 4711",
    body: both(
      "{greeting}\n\n{product} 2 x 19.00 = 38.00",
      `<html><body><h2>{greeting}</h2><table class="order"><thead><tr><th>Item</th><th>Count</th><th>Price</th></tr></thead><tbody><tr><td><img src="u.jpg" alt="{product}"><br><a href="https://shop.example/p/1">{product}</a><br><small>Size: M</small></td><td>2</td><td><del>25.00</del> 19.00</td></tr></tbody><tfoot><tr><td colspan="2">Total</td><td>38.00</td></tr></tfoot></table><p>{place}</p></body></html>`
    )
  },
  {
    name: "confirm-link",
    subject: "{sentence}",
    body: html(
      `<html><body><p>{greeting}</p><table><tr><td style="background-color:#2563eb;border-radius:4px"><a href="https://accounts.example.org/confirm?token=${"eyJhbGciOiJIUzI1NiJ9".repeat(30)}" style="color:#ffffff;text-decoration:none">Confirm your address</a></td></tr></table><p>Your code: <span style="letter-spacing:4px">482 913</span></p><p style="font-size:12px;color:#8898aa">{place}</p></body></html>`
    )
  },
  {
    name: "booking",
    subject: "{place}",
    body: html(
      `<html><head><script type="application/ld+json">{"@type":"FlightReservation","reservationNumber":"${HIDDEN}"}</script></head><body><dl><dt>Check-in</dt><dd>Tue 1 Dec 2026, from 15:00</dd><dt>Where</dt><dd>{place}</dd></dl><table border="0"><caption>Rooms</caption><tr><th>Room</th><td>Double</td></tr><tr><th>Guests</th><td>2<sup>nd</sup> floor, 30&nbsp;m<sup>2</sup></td></tr></table></body></html>`
    )
  }
]

const ics = (lines: ReadonlyArray<string>, method: string): string =>
  [
    "BEGIN:VCALENDAR",
    "PRODID:-//Example//EN",
    "VERSION:2.0",
    "CALSCALE:GREGORIAN",
    `METHOD:${method}`,
    ...lines,
    "END:VCALENDAR",
    ""
  ].join("\n")
const calendar = (lines: ReadonlyArray<string>, method: string) => ({
  type: `text/calendar; method=${method}`,
  body: ics(lines, method)
})

const ZONE = [
  "BEGIN:VTIMEZONE",
  "TZID:W. Europe Standard Time",
  "BEGIN:STANDARD",
  "DTSTART:16010101T030000",
  "TZOFFSETFROM:+0200",
  "TZOFFSETTO:+0100",
  "RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10",
  "END:STANDARD",
  "BEGIN:DAYLIGHT",
  "DTSTART:16010101T020000",
  "TZOFFSETFROM:+0100",
  "TZOFFSETTO:+0200",
  "RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3",
  "END:DAYLIGHT",
  "END:VTIMEZONE"
]

const INVITES: ReadonlyArray<Shape> = [
  {
    name: "invite-google",
    subject: "Invitation: {product} @ Tue Dec 1, 2026",
    body: {
      multipart: "mixed",
      parts: [
        {
          multipart: "alternative",
          parts: [
            text("{product}\nTuesday Dec 1, 2026"),
            html(
              `<html><body><span itemscope itemtype="http://schema.org/InformAction"><span style="display:none" itemprop="about"><meta itemprop="description" content="${HIDDEN}"/>${HIDDEN}</span><table role="presentation"><tr><td><h2>When</h2><span>Tuesday Dec 1, 2026 &sdot; 2pm &ndash; 3pm (Central European Time - Berlin)</span></td></tr><tr><td><a href="https://calendar.example/accept">Yes</a></td><td><a href="https://calendar.example/decline">No</a></td></tr></table></span></body></html>`
            ),
            calendar(
              [
                "BEGIN:VEVENT",
                "DTSTART;TZID=Europe/Berlin:20261201T140000",
                "DTEND;TZID=Europe/Berlin:20261201T150000",
                "ORGANIZER;CN={name}:mailto:ada@example.org",
                "UID:1@google",
                "ATTENDEE;CUTYPE=INDIVIDUAL;PARTSTAT=ACCEPTED;CN={name}:mailto:ada@example.org",
                "ATTENDEE;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:bob@choir.test",
                "SUMMARY:{product}",
                "LOCATION:{place}",
                "DESCRIPTION:{sentence}\\, see https://meet.example/abc\\nSecond line",
                "END:VEVENT"
              ],
              "REQUEST"
            )
          ]
        },
        {
          type: 'application/ics; name="invite.ics"',
          body: Buffer.from(
            ics(["BEGIN:VEVENT", "DTSTART:20261201T130000Z", "SUMMARY:Same event as a file", "END:VEVENT"], "REQUEST")
          ),
          headers: { "Content-Disposition": 'attachment; filename="invite.ics"' }
        }
      ]
    },
    isWhole: true
  },
  {
    name: "invite-outlook-cancel",
    subject: "Canceled: {product}",
    body: {
      multipart: "alternative",
      parts: [
        text(""),
        calendar(
          [
            ...ZONE,
            "BEGIN:VEVENT",
            "ORGANIZER;CN={name}:MAILTO:ada@example.org",
            "SUMMARY:{product}",
            "DTSTART;TZID=W. Europe Standard Time:20260701T090000",
            "DTEND;TZID=W. Europe Standard Time:20260701T093000",
            "UID:2",
            "STATUS:CANCELLED",
            "SEQUENCE:3",
            "LOCATION:{place}",
            "END:VEVENT"
          ],
          "CANCEL"
        )
      ]
    },
    isWhole: true
  },
  {
    name: "invite-reply",
    subject: "Accepted: {product}",
    body: {
      multipart: "alternative",
      parts: [
        text("{name} has accepted."),
        calendar(
          [
            "BEGIN:VEVENT",
            "DTSTART:20261201T130000Z",
            "DURATION:PT45M",
            "ORGANIZER:mailto:bob@choir.test",
            "ATTENDEE;PARTSTAT=ACCEPTED;CN={name}:mailto:ada@example.org",
            "SUMMARY:{product}",
            "UID:3",
            "END:VEVENT"
          ],
          "REPLY"
        )
      ]
    },
    isWhole: true
  },
  {
    name: "invite-days",
    subject: "{product}",
    body: calendar(
      [
        "BEGIN:VEVENT",
        "DTSTART;VALUE=DATE:20261224",
        "DTEND;VALUE=DATE:20261227",
        "RRULE:FREQ=YEARLY",
        "SUMMARY:{product}",
        "SEQUENCE:2",
        "UID:4",
        "END:VEVENT"
      ],
      "REQUEST"
    ),
    isWhole: true
  }
]

const status = (lines: ReadonlyArray<string>) => ({ type: "message/delivery-status", body: `${lines.join("\n")}\n` })
const original = {
  type: "message/rfc822",
  body: "From: bob@choir.test\nTo: nobody@example.org\nSubject: my offer\n\nThe offer is 400.\n"
}

const SERVERS: ReadonlyArray<Shape> = [
  {
    name: "bounce-postfix",
    subject: "Undelivered Mail Returned to Sender",
    headers: { "Auto-Submitted": "auto-replied" },
    body: {
      multipart: "report; report-type=delivery-status;",
      parts: [
        text(
          "This is the mail system at host mx.example.org.\n\nI'm sorry to have to inform you that your message could not be delivered."
        ),
        status([
          "Reporting-MTA: dns; mx.example.org",
          "",
          "Final-Recipient: rfc822; nobody@example.org",
          "Original-Recipient: rfc822;nobody@example.org",
          "Action: failed",
          "Status: 5.1.1",
          "Diagnostic-Code: smtp; 550 5.1.1 <nobody@example.org>:",
          " Recipient address rejected: User unknown"
        ]),
        original
      ]
    },
    isWhole: true
  },
  {
    name: "bounce-exchange",
    subject: "Undeliverable: my offer",
    body: {
      multipart: "report; report-type=delivery-status;",
      parts: [
        both(
          "Delivery has failed to these recipients or groups:\n\nnobody@example.org",
          `<html><body><p><b><font color="#000066" size="3" face="Arial">Delivery has failed to these recipients or groups:</font></b></p><p><a href="mailto:nobody@example.org">nobody@example.org</a><br>The email address you entered couldn't be found.</p><br><hr><p>Diagnostic information for administrators:</p><p>Generating server: EX01.example.org</p></body></html>`
        ),
        status([
          "Reporting-MTA: dns;EX01.example.org",
          "",
          "Final-recipient: RFC822;nobody@example.org",
          "Action: failed",
          "Status: 5.1.10",
          "Diagnostic-code: smtp;550 5.1.10 RESOLVER.ADR.RecipientNotFound"
        ]),
        original
      ]
    },
    isWhole: true
  },
  {
    name: "delay-sendmail",
    subject: "Warning: could not send message for past 4 hours",
    body: {
      multipart: "report; report-type=delivery-status;",
      parts: [
        text("The original message was received 4 hours ago."),
        status([
          "Reporting-MTA: dns; mx.example.org",
          "",
          "Final-Recipient: RFC822; slow@example.org",
          "Action: delayed",
          "Status: 4.4.1",
          "Will-Retry-Until: Sat, 28 Nov 2026 10:00:00 +0100"
        ])
      ]
    },
    isWhole: true
  },
  {
    name: "bounce-exim",
    subject: "Mail delivery failed: returning message to sender",
    body: text(
      "This message was created automatically by mail delivery software.\n\nA message that you sent could not be delivered to one or more of its\nrecipients. The following address(es) failed:\n\n  nobody@example.org\n    Unrouteable address\n\n------ This is a copy of the message. ------\n\nThe offer is 400."
    ),
    isWhole: true
  },
  {
    name: "out-of-office",
    subject: "Automatic reply: {product}",
    headers: { "Auto-Submitted": "auto-replied", "X-Auto-Response-Suppress": "All" },
    body: both(
      "{greeting}. {sentence}",
      `<html><body><p style="margin:0">{greeting}.</p><p style="margin:0">{sentence}</p></body></html>`
    )
  }
]

export const PROGRAM_SHAPES: ReadonlyArray<Shape> = [...LISTS, ...NEWSLETTERS, ...INVITES, ...SERVERS]
