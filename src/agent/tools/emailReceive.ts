/** choir.email.receive: lists mails of the account that the agent is bound to, or reads one. Nothing is marked as read. */
import { Effect, Schema } from "effect"
import type { CallId } from "#schema/Ids.ts"
import type { Source } from "#schema/Source.ts"
import { sourceOf } from "#src/shared/session/sources.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { makeMailAccount, type MailAccount } from "#src/agent/mail/MailAccount.ts"
import { type MailTrait } from "#src/agent/mail/mailProtocol.ts"
import { mailReader } from "#src/agent/mail/mailReader.ts"
import { listMail, MAIL_LIST_MAX, type MailQuery, readMail } from "#src/agent/mail/readMail.ts"
import type { MailPart } from "#src/agent/mail/shownMail.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { decodeInput, refusal, type Tool, type ToolOutcome } from "./Tool.ts"

const RECEIVE_TIMEOUT_MS = 60_000
const LISTED = 10
const QUERY_CHARS_MAX = 200
/** Attachments that are kept, all together. */
const KEPT_FILES = { files: 200, bytes: 200 * 1024 * 1024 }
const KEPT_IN = ".choirtmp/mail"

const Words = Schema.String.check(
  Schema.isMaxLength(QUERY_CHARS_MAX),
  Schema.isPattern(/^[^\0\r\n]*$/u, { message: "must be one line" })
)
const Day = Schema.String.check(Schema.isPattern(/^\d{4}-\d{2}-\d{2}$/u, { message: "a day is YYYY-MM-DD" }))
const Uid = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4_294_967_295 }))

const Input = Schema.Struct({
  folder: Schema.optionalKey(Words.annotate({ description: "Default INBOX" })),
  uid: Schema.optionalKey(Uid.annotate({ description: "Read this mail instead of listing" })),
  save_attachments: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "With uid: save its attachments to .choirtmp/mail" })
  ),
  from: Schema.optionalKey(Words.annotate({ description: "Words in the sender" })),
  to: Schema.optionalKey(Words.annotate({ description: "Words in the recipients" })),
  subject: Schema.optionalKey(Words.annotate({ description: "Words in the subject" })),
  text: Schema.optionalKey(Words.annotate({ description: "Words anywhere in the mail" })),
  since: Schema.optionalKey(Day.annotate({ description: "YYYY-MM-DD" })),
  before: Schema.optionalKey(Day.annotate({ description: "YYYY-MM-DD" })),
  unread: Schema.optionalKey(Schema.Boolean.annotate({ description: "Only unread ones" })),
  before_uid: Schema.optionalKey(Uid.annotate({ description: "Only mails with a lower uid" })),
  limit: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: MAIL_LIST_MAX })).annotate({
      description: `Mails to list, at most ${MAIL_LIST_MAX}`
    })
  )
}).check(
  Schema.makeFilter(
    ({ save_attachments, uid }) =>
      save_attachments !== true ||
      uid !== undefined || { path: ["save_attachments"], issue: "give the uid of one mail" }
  )
)
type Input = typeof Input.Type

const queryOf = (input: Input): MailQuery => {
  const { before, before_uid, folder = "INBOX", from, limit = LISTED, since, subject, text, to, unread } = input
  const given = Object.entries({ from, to, subject, body: text, since, before })
  const search = Object.fromEntries(given.filter(([, value]) => value !== undefined && value !== ""))
  return { folder, limit, before_uid, search: { ...search, ...(unread === true ? { seen: false } : {}) } }
}

/** Facts about a mail that its words do not show. A mail program shows one of two parts, and its reader knows nothing of the other. */
const NOTES: Readonly<Record<MailTrait, string>> = {
  differs: "the plain part of this mail and its HTML say different things; people see the HTML, which is given here",
  plain_first:
    "the HTML of this mail, which is what people see of it, has few words or none: its plain part is given first, and then the HTML",
  winmail:
    "this mail has a winmail.dat file, in a format of Outlook that is not read here; the sender can send it as HTML or plain text",
  smime: "this mail is signed or encrypted by S/MIME in one file (smime.p7m), which is not read here",
  pgp: "this mail is encrypted by PGP, which is not read here",
  unread_invite: "this mail has a calendar file that cannot be read"
}

/** The senders of mails, which is where their words come from. */
export const sendersOf = (mails: ReadonlyArray<{ readonly from: string }>): ReadonlyArray<Source> =>
  mails.map(({ from }) => sourceOf("mail", from))

const list = Effect.fnUntraced(function* (account: MailAccount, input: Input) {
  const { mails, more } = yield* listMail(account, queryOf(input))
  const last = mails.at(-1)
  const outcome: ToolOutcome = {
    status: "success",
    summary: `${mails.length} mail(s)${more > 0 && last !== undefined ? `; ${more} older: before_uid ${last.uid}` : ""}`,
    output: { mails: mails.map((mail) => ({ ...mail, to: [...mail.to] })) },
    sources: sendersOf(mails)
  }
  return outcome
})

/** @param program the path of the program that reads one mail. */
export const emailReceive = Effect.fnUntraced(function* (program: string) {
  const workspace = yield* Workspace
  const processes = yield* ProcessRunner
  const account = yield* makeMailAccount
  const decode = decodeInput(Input)

  const keep = (uid: number, files: ReadonlyArray<MailPart>) =>
    Effect.forEach(files, ({ content, ...told }, index) => {
      if (content === undefined) return Effect.succeed({ ...told, problem: "too large to be written" })
      const path = `${KEPT_IN}/${uid}-${index + 1}-${told.name}`
      return Effect.match(workspace.keep(path, content, KEPT_FILES), {
        onSuccess: () => ({ ...told, path }),
        onFailure: ({ message }) => ({ ...told, problem: message })
      })
    })

  const read = Effect.fnUntraced(function* (taken: MailAccount, uid: number, input: Input, call_id: CallId) {
    const withFiles = input.save_attachments === true
    const reader = mailReader({ processes, program, call_id, withFiles })
    const { from, mail } = yield* readMail(taken, { folder: input.folder ?? "INBOX", uid }, reader)
    const { files, files_left_out, is_cut, traits, ...words } = mail
    const told = withFiles ? yield* keep(uid, files) : files.map(({ bytes, name, type }) => ({ name, type, bytes }))
    const outcome: ToolOutcome = {
      status: "success",
      summary: is_cut ? "the mail is longer than this; the end is left out" : "the whole mail",
      output: {
        uid,
        ...words,
        to: [...words.to],
        cc: [...words.cc],
        reply_to: [...words.reply_to],
        files: told,
        ...(files_left_out === 0 ? {} : { files_left_out })
      },
      sources: sendersOf([{ from }]),
      files: { changed: told.flatMap((file) => ("path" in file && typeof file.path === "string" ? [file.path] : [])) },
      ...(traits.length === 0 ? {} : { notes: traits.map((trait) => NOTES[trait]) })
    }
    return outcome
  })

  const tool: Tool = {
    llm: llmView(
      "choir.email.receive",
      "List your mails, the newest first, or read one. It marks nothing as read.",
      Input
    ),
    effect: "none",
    lanes: "both",
    prepare: Effect.fn("emailReceive.prepare")(function* (raw) {
      const input = yield* decode(raw)
      return {
        locks: [],
        timeout_ms: RECEIVE_TIMEOUT_MS,
        // What is written there came from outside.
        effect: input.save_attachments === true ? "workspace" : "none",
        writes: [KEPT_IN],
        run: ({ call_id }) =>
          account.pipe(
            Effect.flatMap((taken) =>
              input.uid === undefined ? list(taken, input) : read(taken, input.uid, input, call_id)
            ),
            Effect.catch((error) => Effect.succeed({ ...refusal(error), files: { changed: [] } }))
          )
      }
    })
  }
  return tool
})
