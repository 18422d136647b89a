/** Mails that other programs misread, after public reports on them (docs/evidence/counterparts-mail-and-pages.md). */
import { assert, describe, it } from "@effect/vitest"
import { legacyBytes } from "../../support/mailbox/legacyBytes.ts"
import { readHere } from "../../support/mailReader.ts"

interface Reported {
  readonly report: string
  readonly what: string
  readonly raw: string | Buffer
  readonly shows?: ReadonlyArray<string>
  readonly files?: ReadonlyArray<string>
  readonly subject?: string
}

const head = (more = "") =>
  `From: Ada <ada@example.org>\r\nTo: bob@choir.test\r\nSubject: s\r\nMIME-Version: 1.0\r\n${more}`
const crlf = (text: string) => text.replaceAll("\n", "\r\n")
const html = (body: string) => `${head("Content-Type: text/html; charset=utf-8\r\n")}\r\n${crlf(body)}`
const file = (headers: string, type = "application/octet-stream") =>
  crlf(
    `${head("Content-Type: multipart/mixed; boundary=b\n")}\n--b\nContent-Type: text/plain\n\nhi\n--b\nContent-Type: ${type}\n${headers}\n\nx\n--b--\n`
  )
const calendar = (lines: string) =>
  `${head("Content-Type: text/calendar; method=REQUEST; charset=utf-8\r\n")}\r\n${crlf(`BEGIN:VCALENDAR\nVERSION:2.0\nMETHOD:REQUEST\n${lines}\nEND:VCALENDAR\n`)}`
const report = (status: string) =>
  crlf(
    `${head("Content-Type: multipart/report; report-type=delivery-status; boundary=b\n")}\n--b\nContent-Type: text/plain\n\nSorry.\n--b\nContent-Type: message/delivery-status\n\n${status}\n--b--\n`
  )

const REPORTED: ReadonlyArray<Reported> = [
  {
    report: "premailer/premailer#119",
    what: "a link in a cell whose words end with a line break",
    raw: html(`<table><tbody><tr><td><a href="http://example.org/">Activate account\n</a></td></tr></tbody></table>`),
    shows: ["[Activate account](http://example.org/)"]
  },
  {
    report: "zammad/zammad#930",
    what: "a list that is written as a table",
    raw: html(
      `<table cellpadding="2" border="0"><tbody><tr><td valign="top">•</td><td>Use description: Do neat stuff</td></tr><tr><td valign="top">•</td><td>Regions: not defined</td></tr></tbody></table>`
    ),
    shows: ["Use description: Do neat stuff", "Regions: not defined"]
  },
  {
    report: "html-to-text/node-html-to-text#106",
    what: "keys and values in a table",
    raw: html("<table><tr><th>Key</th><th>Value</th></tr><tr><td>status</td><td>edit</td></tr></table>"),
    shows: ["| Key | Value |\n| --- | --- |\n| status | edit |"]
  },
  {
    report: "jakartaee/mail-api#74",
    what: "a file name in pieces without a set",
    raw: file(`Content-Disposition: attachment;\n filename*0*="''attached%2E";\n filename*1*="%62";\n filename*2=at`),
    files: ["attached.bat"]
  },
  {
    report: "zbateson/mail-mime-parser#80",
    what: "an encoded word that is cut into pieces of a file name",
    raw: file(
      `Content-Disposition: attachment;\n\tfilename*0="=?UTF-8?Q?a_=C3=A4=C3=B6=C3?=\n =?UTF-8?Q?=BC=C3";\n\tfilename*1="=A4.docx?="`
    ),
    files: ["a äöüä.docx"]
  },
  {
    report: "zbateson/mail-mime-parser#182",
    what: "a file name in pieces with single quotes",
    raw: file(`Content-Disposition: attachment;\n\tfilename*0="1 Neuropathy 'Trick' Tonight.";\n\tfilename*1=eml`),
    files: ["1 Neuropathy _Trick_ Tonight.eml"]
  },
  {
    report: "sunholo-data/ailang#678",
    what: "a file name as an encoded word with a comma, and its end behind it",
    raw: file(`Content-Disposition: attachment; filename="=?iso-8859-1?Q?Eksempelvej_12B=2C_2000_Fr=E6?=.pdf"`),
    files: ["Eksempelvej 12B_ 2000 Fræ.pdf"]
  },
  {
    report: "nodemailer/mailparser#351",
    what: "a subject in GBK without a name, above a text in GBK",
    raw: Buffer.concat([
      Buffer.from("From: Ada <ada@example.org>\r\nSubject: "),
      legacyBytes("撤回邮件成功", "gbk"),
      Buffer.from("\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=gb18030\r\n\r\n"),
      legacyBytes("测试", "gbk")
    ]),
    subject: "撤回邮件成功",
    shows: ["测试"]
  },
  {
    report: "chatmail/core#1478",
    what: "a report of Google with a diagnosis of several lines",
    raw: report(
      "Reporting-MTA: dns; googlemail.com\nArrival-Date: Mon, 18 May 2026 09:23:25 -0700 (PDT)\nX-Original-Message-ID: <a@mail.example>\n\nFinal-Recipient: rfc822; gone@gmail.example\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550-5.1.1 The email account that you tried to reach does not exist.\n 550 5.1.1 NoSuchUser"
    ),
    shows: ["The mail could not be delivered to gone@gmail.example (5.1.1): 550-5.1.1 The email account"]
  },
  {
    report: "nodemailer/mailparser#288",
    what: "a report of Sendmail without a recipient",
    raw: report("Reporting-MTA: dns; www1\nArrival-Date: Fri, 15 Jan 2026 07:23:35 +0200"),
    shows: ["Sorry."]
  },
  {
    report: "ical4j/ical4j#85",
    what: "an invitation whose time and whose place in its series differ in their zones",
    raw: calendar(
      "BEGIN:VEVENT\nSUMMARY:Class\nDTSTART;TZID=US/Eastern:20260531T200000\nRECURRENCE-ID:20260608T000000\nEND:VEVENT"
    ),
    shows: ["Invitation: Class", "2026-05-31 20:00 (US/Eastern, UTC-04:00)", "2026-06-08"]
  },
  {
    report: "niccokunzmann/python-recurring-ical-events#61",
    what: "an invitation with a line that has no value",
    raw: calendar(
      "BEGIN:VEVENT\nSUMMARY:Release\nDTSTART:20260601T090000Z\nORGANIZER;X-CONFLUENCE-USER-KEY=8a4a;CN=Daniel\nEND:VEVENT"
    ),
    shows: ["Invitation: Release", "When: 2026-06-01 09:00 UTC"]
  },
  {
    report: "bitfireAT/synctools#80",
    what: "a series with one date that was moved, in another zone",
    raw: calendar(
      "BEGIN:VEVENT\nUID:1\nSUMMARY:Test event\nDTSTART;TZID=Pacific/Auckland:20260408T110000\nRRULE:FREQ=DAILY;COUNT=5;INTERVAL=2\nEND:VEVENT\nBEGIN:VEVENT\nUID:1\nRECURRENCE-ID;TZID=Europe/Paris:20260414T010000\nSUMMARY:Modified test event\nDTSTART;TZID=Pacific/Auckland:20260414T120000\nEND:VEVENT"
    ),
    shows: ["Repeats: FREQ=DAILY", "Modified test event", "Instead of: 2026-04-14 01:00 (Europe/Paris, UTC+02:00)"]
  },
  {
    report: "u01jmg3/ics-parser#129",
    what: "a zone in quotes",
    raw: calendar('BEGIN:VEVENT\nSUMMARY:Bi-weekly\nDTSTART;TZID="America/New_York":20260420T090000\nEND:VEVENT'),
    shows: ["2026-04-20 09:00 (America/New_York, UTC-04:00)"]
  }
]

describe("a mail that others misread", () => {
  for (const { files, raw, report: source, shows = [], subject, what } of REPORTED)
    it(`is read right: ${what} (${source})`, async () => {
      const mail = await readHere(Buffer.from(raw))
      for (const part of shows) assert.include(mail.text, part)
      if (subject !== undefined) assert.strictEqual(mail.subject, subject)
      if (files !== undefined)
        assert.deepStrictEqual(
          mail.files.map(({ name }) => name),
          files
        )
    })
})
