import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { MailServerOfTests, noMail } from "../../support/mailServer.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { breakingSmtp } from "../../support/breakingSmtp.ts"
import { mailTools } from "../../support/mailAccount.ts"
import { isFull, LAYER_MS_MAX, SIZE } from "../../support/size.ts"

const TO_BOB = { to: ["bob@choir.test"], subject: "Lunch", text: "At one?\n.\nA line with a dot." }
const Listed = Schema.Struct({
  mails: Schema.Array(Schema.Struct({ uid: Schema.Int, from: Schema.String, subject: Schema.String }))
})
const decodeListed = Schema.decodeUnknownSync(Listed)
const Read = Schema.Struct({
  text: Schema.String,
  message_id: Schema.String,
  files: Schema.Array(Schema.Struct({ name: Schema.String, path: Schema.optionalKey(Schema.String) }))
})
const decodeRead = Schema.decodeUnknownSync(Read)

describe.skipIf(noMail !== undefined)("mail, by a real server", () => {
  it.layer(MailServerOfTests.layer, { timeout: LAYER_MS_MAX })((it) => {
    it.effect("is sent, copied among the sent mail, and received with its files and its sender as the source", () =>
      Effect.gen(function* () {
        const server = yield* MailServerOfTests
        const ada = yield* mailTools(server, "ada")
        ada.put(".choirtmp/plan.bin", Buffer.from([0, 255, 10, 13, 46]))
        const sent = yield* ada.send("send", { ...TO_BOB, attachments: [".choirtmp/plan.bin"] })
        assert.deepInclude(sent, { status: "success", acted: "accepted" })
        yield* server.idle
        const bob = yield* mailTools(server, "bob")
        const checked = yield* bob.check({})
        assert.deepStrictEqual(checked.sources, ["mail:ada@choir.test"])
        const listed = yield* bob.receive({ from: "ada", subject: "lunch" })
        const [mail] = decodeListed(listed.output).mails
        assert.deepInclude(mail, { from: "ada@choir.test", subject: "Lunch" })
        const read = yield* bob.receive({ uid: mail?.uid, save_attachments: true })
        assert.deepStrictEqual(read.sources, ["mail:ada@choir.test"])
        const { files, message_id, text } = decodeRead(read.output)
        assert.strictEqual(text, TO_BOB.text)
        assert.strictEqual(message_id, "<choir.s-1-send-0@choir.test>")
        const kept = readFileSync(join(bob.root, files[0]?.path ?? ""))
        assert.deepStrictEqual([...kept], [0, 255, 10, 13, 46])
        const copies = server.files("ada", "Sent").filter((raw) => raw.includes(message_id))
        assert.lengthOf(copies, 1)
        // Looking does not mark it as read.
        assert.deepInclude(yield* bob.check({}), { summary: "1 unread" })
      })
    )

    it.effect("asks a person about people that the account does not know, and about nobody else", () =>
      Effect.gen(function* () {
        const server = yield* MailServerOfTests
        const eve = yield* mailTools(server, "eve", { known_recipients: ["carol@else.example", "@firm.example"] })
        const to = (...to: ReadonlyArray<string>) => eve.asks({ to, subject: "s", text: "t" })
        assert.strictEqual(yield* to("bob@choir.test"), "new_recipients")
        assert.isUndefined(yield* to("Carol@else.example", "x@firm.example"))
        assert.strictEqual(yield* to("x@notfirm.example"), "new_recipients")
        yield* eve.send("known", { ...TO_BOB, cc: ["eve@choir.test"] })
        yield* server.idle
        assert.isUndefined(yield* to("BOB@choir.test"))
        // A part of a known address is another one.
        assert.strictEqual(yield* to("ob@choir.test"), "new_recipients")
        assert.strictEqual(yield* eve.asks({ ...TO_BOB, bcc: ["spy@evil.example"] }), "new_recipients")
        const bob = yield* mailTools(server, "bob")
        // A mail from someone is no reason to answer with whatever it asks for.
        assert.strictEqual(yield* bob.asks({ ...TO_BOB, to: ["eve@choir.test"] }), "new_recipients")
        const anybody = yield* mailTools(server, "ada", { recipients: "any" })
        assert.isUndefined(yield* anybody.asks({ ...TO_BOB, to: ["spy@evil.example"] }))
      })
    )

    it.effect("says what the server refused, and keeps no copy of what was not sent", () =>
      Effect.gen(function* () {
        const server = yield* MailServerOfTests
        const ada = yield* mailTools(server, "ada")
        const relayed = yield* ada.send("relay", { ...TO_BOB, to: ["x@else.example"] })
        assert.strictEqual(relayed.status, "error")
        assert.match(relayed.summary, /relay not permitted.*Nothing was sent/u)
        assert.isUndefined(relayed.acted)
        assert.lengthOf(
          server.files("ada", "Sent").filter((raw) => raw.includes("s-1-relay-0@")),
          0
        )
        const some = yield* ada.send("some", { ...TO_BOB, cc: ["nobody@choir.test"] })
        assert.match(some.summary, /for 1 recipient.*refused nobody@choir\.test/u)
        assert.strictEqual((yield* ada.settle("relay")).status, "error")
        assert.deepInclude(yield* ada.settle("some"), { status: "success", acted: "verified" })
        const again = yield* ada.send("some", TO_BOB)
        assert.deepInclude(again, { status: "error", acted: "unknown" })
      })
    )

    it.effect("does not say that a mail was not sent after a server that broke off had all of it", () =>
      Effect.gen(function* () {
        const server = yield* MailServerOfTests
        const breaking = yield* breakingSmtp({ at: "whole message", end: "closes" })
        const ada = yield* mailTools({ ...server, smtp_port: breaking.port }, "ada")
        const sent = yield* ada.send("broken", TO_BOB)
        assert.lengthOf(breaking.taken, 1)
        assert.deepInclude(sent, { status: "error", acted: "unknown" })
        assert.notInclude(sent.summary, "Nothing was sent")
        assert.lengthOf(
          server.files("ada", "Sent").filter((raw) => raw.includes("s-1-broken-0@")),
          1
        )
        assert.deepInclude(yield* ada.settle("broken"), { status: "unknown_after_crash", acted: "unknown" })
        // The copy keeps it from being offered a second time.
        yield* ada.send("broken", TO_BOB)
        assert.lengthOf(breaking.taken, 1)
      })
    )

    it.effect(`finds a mail among ${SIZE.mailsOfFolder}, and goes through a long list in pages`, () =>
      Effect.gen(function* () {
        const server = yield* MailServerOfTests
        const many = Array.from(
          { length: SIZE.mailsOfFolder },
          (_, n) =>
            `From: p${n}@crowd.example\r\nTo: max@choir.test\r\nSubject: report ${n}\r\nDate: Mon, 02 Nov 2026 10:00:00 +0000\r\n\r\nwords ${n}\r\n`
        )
        server.deliver("max", many)
        const max = yield* mailTools(server, "max")
        const wanted = { from: `p${SIZE.mailsOfFolder - 7}@crowd`, subject: "report" }
        const first = decodeListed((yield* max.receive(wanted)).output).mails
        assert.deepStrictEqual(
          first.map(({ from }) => from),
          [`p${SIZE.mailsOfFolder - 7}@crowd.example`]
        )
        const started = yield* monotonicMs
        yield* max.receive(wanted)
        const took_ms = (yield* monotonicMs) - started
        // The server has made its index by the first search.
        if (isFull) assert.isBelow(took_ms, 1000)
        const page = yield* max.receive({ limit: 50 })
        assert.lengthOf(decodeListed(page.output).mails, 50)
        assert.deepStrictEqual(page.sources?.length, 50)
        const before_uid = decodeListed(page.output).mails.at(-1)?.uid
        const next = decodeListed((yield* max.receive({ limit: 50, before_uid })).output).mails
        assert.isBelow(next[0]?.uid ?? Infinity, before_uid ?? 0)
        assert.deepInclude((yield* max.check({ since_uid: SIZE.mailsOfFolder - 3 })).output, { new_since: 3 })
      })
    )

    it.effect("tells a wrong password from a server that is away, without the password", () =>
      Effect.gen(function* () {
        const server = yield* MailServerOfTests
        const away = yield* mailTools({ ...server, imap_port: 1 }, "ada")
        const { summary } = yield* away.send("away", TO_BOB)
        assert.match(summary, /127\.0\.0\.1:1 \(IMAP\) cannot be used.*Nothing was sent/u)
        const wrong = yield* mailTools(server, "nosuch")
        const refused = yield* wrong.check({})
        assert.match(refused.summary, /is the secret right\? choirctl secret set mail/u)
        assert.notInclude(JSON.stringify(refused), "a-password-of-tests")
      })
    )
  })
})
