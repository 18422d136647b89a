/** A mailbox as people have it, on a real server: every mail is read as its author wrote it, whatever it is encoded in. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { inFolder, openImap } from "#src/agent/mail/imap.ts"
import { accountOf, mailTools } from "../../support/mailAccount.ts"
import { mailText, matchesGolden } from "../../support/corpusText.ts"
import { makeMailbox, marked, SHAPES } from "../../support/mailbox/mailbox.ts"
import { HIDDEN } from "../../support/mailbox/Shape.ts"
import { readHere } from "../../support/mailReader.ts"
import { MAIL_DOMAIN, MAIL_PASSWORD, MailServerOfTests, noMail } from "../../support/mailServer.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

const MAILS = 300
/** Mails that the tool itself reads from the server, by a process for each: one of each family. */
const BY_TOOL = [
  "gmail-sheet",
  "outlook-table",
  "outlook-winmail",
  "apple-reply",
  "thunderbird-flowed",
  "github",
  "invite-google",
  "invite-days",
  "receipt",
  "newsletter-mjml",
  "bounce-postfix"
]
const FOLDER = join(import.meta.dirname, "../../corpus/mailbox")
const Listed = Schema.Struct({ mails: Schema.Array(Schema.Struct({ uid: Schema.Int, subject: Schema.String })) })
const decodeListed = Schema.decodeUnknownSync(Listed)
const Addresses = Schema.Array(Schema.String)
const Read = Schema.Struct({
  from: Schema.String,
  from_name: Schema.String,
  to: Addresses,
  cc: Addresses,
  reply_to: Addresses,
  subject: Schema.String,
  date: Schema.String,
  message_id: Schema.String,
  text: Schema.String,
  is_cut: Schema.optionalKey(Schema.Boolean),
  files: Schema.Array(Schema.Struct({ name: Schema.String, type: Schema.String, bytes: Schema.Int }))
})
const decodeRead = Schema.decodeUnknownSync(Read)

/** The files that a wrapping adds are another mail's. */
const withoutFiles = (text: string) => text.replace(/^files: .*\n/mu, "")

describe.skipIf(noMail !== undefined)("a mailbox of 300 mails", () => {
  it.layer(MailServerOfTests.layer, { timeout: LAYER_MS_MAX })((it) => {
    it.effect("is listed without a loss, and read as it was written in each language, set and encoding", () =>
      Effect.gen(function* () {
        const server = yield* MailServerOfTests
        const mailbox = makeMailbox(MAILS)
        server.deliver(
          "max",
          mailbox.map(({ raw }) => raw)
        )
        const account = {
          config: accountOf(server, "max"),
          user: `max@${MAIL_DOMAIN}`,
          password: Redacted.make(MAIL_PASSWORD),
          address: `max@${MAIL_DOMAIN}`,
          scrub: (text: string) => text
        }
        const client = yield* openImap(account)
        const found = yield* inFolder(client, account, "INBOX", true, () =>
          client.fetchAll("1:*", { source: true, uid: true })
        )
        assert.lengthOf(found, MAILS)
        const uids = new Map<string, number>()
        const seen = new Set<string>()
        for (const { source, uid } of found) {
          const mail = yield* Effect.promise(() => readHere(source ?? Buffer.of()))
          const filed = mailbox.find(({ id }) => mail.message_id === `<${id}>`)
          if (filed === undefined) return assert.fail(`${mail.message_id} was not sent`)
          uids.set(filed.id, uid)
          seen.add(filed.id)
          const text = withoutFiles(marked(mailText(mail), filed.pack))
          assert.notInclude(text, HIDDEN, filed.id)
          matchesGolden(join(FOLDER, `${filed.shape.name}.txt`), text)
        }
        assert.strictEqual(seen.size, MAILS)
        const max = yield* mailTools(server, "max")
        for (const name of BY_TOOL) {
          const filed = mailbox.find(({ shape }) => shape.name === name)
          if (filed === undefined) return assert.fail(`${name} is no shape`)
          const { notes = [], output, status } = yield* max.receive({ uid: uids.get(filed.id) })
          assert.strictEqual(status, "success", name)
          // The tool says in a sentence each what a golden file names.
          const { traits } = yield* Effect.promise(() => readHere(filed.raw))
          assert.lengthOf(notes, traits.length, name)
          const mail = { is_cut: false, files_left_out: 0, traits, ...decodeRead(output) }
          assert.strictEqual(mail.message_id, `<${filed.id}>`)
          matchesGolden(join(FOLDER, `${name}.txt`), withoutFiles(marked(mailText(mail), filed.pack)))
        }
        const page = decodeListed((yield* max.receive({ limit: 50 })).output).mails
        assert.lengthOf(page, 50)
        for (const { subject } of page)
          assert.isTrue(
            mailbox.some(({ pack, shape }) => marked(subject, pack) === shape.subject),
            subject
          )
      }).pipe(Effect.scoped)
    )
  })

  it("has 40 shapes and more", () => assert.isAtLeast(SHAPES.length, 40))
})
