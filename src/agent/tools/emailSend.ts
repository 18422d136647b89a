/** choir.email.send: a mail from the account that the agent is bound to, offered to its server at most once. */
import { Effect, Schema } from "effect"
import type { AttachedFile } from "#schema/Approval.ts"
import { counted } from "#src/shared/text/counts.ts"
import { pathInside } from "#src/shared/image/workspacePath.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { type Draft, MAIL_RECIPIENTS_MAX, MailAddress, recipientsOf } from "#src/agent/mail/Draft.ts"
import { unknownRecipients } from "#src/agent/mail/knownRecipients.ts"
import { makeMailAccount, MailProblem } from "#src/agent/mail/MailAccount.ts"
import { type Fate, fateOf, type Sent, sendMail } from "#src/agent/mail/sendMail.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { decodeInput, type Failure, invalidInput, refusal, type Tool, type ToolOutcome } from "./Tool.ts"

/** The handover with its copy, and a large attachment on a slow line. */
const SEND_TIMEOUT_MS = 120_000
/** The look whether the account knows the recipients, before a person may be asked. */
const KNOWN_MS_MAX = 15_000
const SUBJECT_CHARS_MAX = 500
const TEXT_CHARS_MAX = 200_000
const FILES_MAX = 10
const FILES_BYTES_MAX = 20 * 1024 * 1024
const STAGING = ".choirtmp/"

const People = Schema.Array(MailAddress).check(Schema.isMaxLength(MAIL_RECIPIENTS_MAX))
const Input = Schema.Struct({
  to: People.check(Schema.isMinLength(1)).annotate({ description: "Addresses such as ada@example.com" }),
  cc: Schema.optionalKey(People.annotate({ description: "Copies" })),
  bcc: Schema.optionalKey(People.annotate({ description: "Hidden copies" })),
  subject: Schema.String.check(
    Schema.isMaxLength(SUBJECT_CHARS_MAX),
    Schema.isPattern(/^[^\r\n]*$/u, { message: "a subject is one line" })
  ).annotate({ description: "One line" }),
  text: Schema.String.check(Schema.isMaxLength(TEXT_CHARS_MAX)).annotate({ description: "Plain text" }),
  in_reply_to: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^<[!-~]{1,500}>$/u, { message: "the message_id of a received mail" })
    ).annotate({ description: "message_id of the mail it answers" })
  ),
  attachments: Schema.optionalKey(
    Schema.Array(Schema.String)
      .check(Schema.isMaxLength(FILES_MAX))
      .annotate({ description: "Files below .choirtmp: copy others there first" })
  )
}).check(
  Schema.makeFilter(
    ({ bcc = [], cc = [], to }) =>
      recipientsOf({ to, cc, bcc }).length <= MAIL_RECIPIENTS_MAX ||
      `a mail goes to at most ${MAIL_RECIPIENTS_MAX} addresses`
  ),
  Schema.makeFilter(({ attachments = [] }) => {
    const outside = attachments.find((path) => pathInside(path)?.startsWith(STAGING) !== true)
    return (
      outside === undefined || {
        path: ["attachments"],
        issue: `${outside} is not below .choirtmp; copy it there first`
      }
    )
  })
)
type Input = typeof Input.Type

const FATES: Readonly<Record<Fate, ToolOutcome>> = {
  not_sent: refusal({ message: "the agent went down before this mail was offered to the server: it was not sent" }),
  sent: {
    status: "success",
    summary: "sent: after a crash its copy was found among the sent mail",
    acted: "verified"
  },
  unknown: {
    status: "unknown_after_crash",
    summary:
      "the agent went down while the server took this mail: whether it was sent is not known. Ask the user before you send it again",
    acted: "unknown"
  }
}

const sentOutcome = (draft: Draft, { copied, message_id, rejected, response }: Sent): ToolOutcome => {
  const left = rejected.length === 0 ? "" : `; the server refused ${rejected.join(", ")}`
  const note = copied ? "" : "; its copy among the sent mail is still marked as a draft"
  return {
    status: "success",
    summary: `handed over for ${counted(recipientsOf(draft).length - rejected.length)} recipient(s)${left}${note}`,
    output: { message_id, server: response, ...(rejected.length === 0 ? {} : { refused: [...rejected] }) },
    acted: "accepted"
  }
}

const sourcesIn = (error: object): Failure["sources"] =>
  "sources" in error ? (error.sources as Failure["sources"]) : undefined

export const emailSend = Effect.gen(function* () {
  const workspace = yield* Workspace
  const account = yield* makeMailAccount
  const decode = decodeInput(Input)

  const files = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
    const read = yield* Effect.forEach(paths, (path) => workspace.read(path))
    const total = read.reduce((sum, { bytes }) => sum + bytes.length, 0)
    return total > FILES_BYTES_MAX
      ? yield* new MailProblem({ problem: `attachments have at most ${FILES_BYTES_MAX} bytes together` })
      : read
  })

  const factsOf = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
    const read = yield* files(paths)
    return read.map(({ bytes, path, sha256 }): AttachedFile => ({ path, bytes: bytes.length, sha256 }))
  })

  /** The files as they were shown; one that was changed since is another file, which nobody approved. */
  const unchanged = Effect.fnUntraced(function* (shown: ReadonlyArray<AttachedFile>) {
    const read = yield* files(shown.map(({ path }) => path))
    const changed = read.find(({ sha256 }, index) => sha256 !== shown[index]?.sha256)
    if (changed !== undefined)
      return yield* new MailProblem({
        problem: `${changed.path} was changed after this call asked to send it. Send the mail again with the file as it is now`
      })
    return read.map(({ bytes, path }) => ({ name: path.split("/").at(-1) ?? "file", bytes }))
  })

  const send = Effect.fn("emailSend.send")(function* (
    input: Input,
    shown: ReadonlyArray<AttachedFile>,
    call_id: Parameters<typeof sendMail>[1]
  ) {
    const attached = yield* unchanged(shown)
    const { bcc = [], cc = [], in_reply_to, subject, text, to } = input
    const draft: Draft = { to, cc, bcc, subject, text, in_reply_to, files: attached }
    const sent = yield* sendMail(yield* account, call_id, draft)
    return sentOutcome(draft, sent)
  })

  /** Whether a person has to see it: one of the recipients is new to the account, or nobody could find out. */
  const isNew = Effect.fnUntraced(
    function* ({ bcc = [], cc = [], to }: Input) {
      const taken = yield* account
      if (taken.config.recipients === "any") return false
      return (yield* unknownRecipients(taken, recipientsOf({ to, cc, bcc }))).length > 0
    },
    Effect.timeoutOrElse({ duration: KNOWN_MS_MAX, orElse: () => Effect.succeed(true) }),
    Effect.orElseSucceed(() => true)
  )

  const tool: Tool = {
    llm: llmView(
      "choir.email.send",
      "Send an e-mail from your account, at most once. A new recipient needs a person's approval.",
      Input
    ),
    effect: "external",
    lanes: "both",
    prepare: Effect.fn("emailSend.prepare")(function* (raw) {
      const input = yield* decode(raw)
      const { attachments = [] } = input
      // Read once for all who ask: as they are when a person is asked, or else when the call runs.
      const shown = yield* Effect.cached(factsOf(attachments))
      return {
        locks: [],
        timeout_ms: SEND_TIMEOUT_MS,
        confirm: Effect.map(isNew(input), (yes) => (yes ? "new_recipients" : undefined)),
        ...(attachments.length === 0
          ? {}
          : {
              files: Effect.mapBoth(shown, {
                onSuccess: (files) => ({ files }),
                onFailure: ({ message }) => invalidInput(message)
              })
            }),
        run: ({ call_id }) =>
          Effect.catch(
            Effect.flatMap(shown, (facts) => send(input, facts, call_id)),
            (error) =>
              Effect.succeed<ToolOutcome>(
                error._tag === "SubmissionFailed" && error.in_doubt
                  ? { ...refusal(error), acted: "unknown" }
                  : refusal({ message: `${error.message}. Nothing was sent`, sources: sourcesIn(error) })
              )
          )
      }
    }),
    settle: ({ call_id }) =>
      Effect.map(
        Effect.flatMap(account, (taken) => fateOf(taken, call_id)),
        (fate) => FATES[fate]
      )
  }
  return tool
})
