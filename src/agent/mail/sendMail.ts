/**
 * A mail from its first copy to its handover. A copy goes into the folder of sent mail before the server is asked to take it, marked as a
 * draft; the mark goes once the server has taken it. So after a crash the folder tells the fate of the mail: no copy, and it was never
 * offered; a copy without the mark, and it was taken; one with the mark, and nobody knows.
 */
import type { ImapFlow } from "imapflow"
import { Effect, Redacted, Schema } from "effect"
import type { CallId } from "#schema/Ids.ts"
import { Sources } from "#schema/Source.ts"
import { type Draft, draftBytes, messageIdOf, recipientsOf } from "./Draft.ts"
import { inFolder, openImap, sentFolder } from "./imap.ts"
import { type MailAccount, MailProblem, isThisMachine, MAIL_ANSWER_MS_MAX, serverWords } from "./MailAccount.ts"

/** The port on which a connection begins with TLS; on others STARTTLS comes first. */
const SMTPS_PORT = 465
/** Time to take and check a whole message. */
const SMTP_DATA_MS_MAX = 60_000

/** A message as it goes over the wire, and to whom. */
interface Parcel {
  readonly recipients: ReadonlyArray<string>
  readonly raw: Buffer
}

/** The server's answer to a message that it took, perhaps not for everybody: its codes alone, since its words could be anything. */
interface Submitted {
  readonly rejected: ReadonlyArray<string>
  readonly response: string
}

/** A reply's code, and the enhanced one behind it. */
const REPLY_CODES = /^\d{3}(?:[ -]\d\.\d{1,3}\.\d{1,3})?/u

/** The server did not accept the message, or it is unknown whether it did (`in_doubt`). */
export class SubmissionFailed extends Schema.TaggedError<SubmissionFailed>()("SubmissionFailed", {
  problem: Schema.String,
  /** The connection ended while the server may have had all of it. */
  in_doubt: Schema.Boolean,
  /** Of what the server said, where it is repeated. */
  sources: Schema.optionalKey(Sources)
}) {
  override get message() {
    return this.problem
  }
}

const property = (error: unknown, name: string): unknown =>
  typeof error === "object" && error !== null && name in error ? (error as Record<string, unknown>)[name] : undefined

const REFUSAL_CODE_MIN = 400

/** Only a refusal by the server, or an end before it was asked for the content, proves that it did not accept the mail. */
const failure = (error: unknown, account: MailAccount, isOffered: boolean): SubmissionFailed => {
  const code = property(error, "responseCode")
  const in_doubt = isOffered && !(typeof code === "number" && code >= REFUSAL_CODE_MIN)
  const hint = code === 535 ? ` (is the secret right? choirctl secret set ${account.config.secret})` : ""
  const { smtp_host, smtp_port } = account.config
  const what = in_doubt ? "closed the connection while it took the mail" : "did not accept the mail"
  const { text, ...label } = serverWords(error, account, smtp_host)
  return new SubmissionFailed({ problem: `${smtp_host}:${smtp_port} ${what}${hint}: ${text}`, in_doubt, ...label })
}

/** Notices the DATA command. The library gives each end of a socket as one of the connection, whatever it was used for. */
const noticeData = (noticed: () => void) => ({
  debug: (entry: unknown, command: unknown) => {
    if (property(entry, "tnx") === "client" && command === "DATA") noticed()
  }
})

export const submit = Effect.fn("mail.submit")(function* (account: MailAccount, { raw, recipients }: Parcel) {
  const { createTransport } = yield* Effect.promise(() => import("./mailClients.ts"))
  const { smtp_host: host, smtp_port: port } = account.config
  const isLocal = isThisMachine(host)
  let isOffered = false
  const transport = yield* Effect.acquireRelease(
    Effect.sync(() =>
      createTransport({
        host,
        port,
        secure: port === SMTPS_PORT,
        requireTLS: !isLocal,
        tls: { rejectUnauthorized: !isLocal },
        auth: { user: account.user, pass: Redacted.value(account.password) },
        connectionTimeout: MAIL_ANSWER_MS_MAX,
        greetingTimeout: MAIL_ANSWER_MS_MAX,
        socketTimeout: SMTP_DATA_MS_MAX,
        disableFileAccess: true,
        disableUrlAccess: true,
        transactionLog: true,
        logger: noticeData(() => {
          isOffered = true
        })
      })
    ),
    (open) => Effect.sync(() => open.close())
  )
  const info = yield* Effect.tryPromise({
    try: () => transport.sendMail({ envelope: { from: account.address, to: [...recipients] }, raw }),
    catch: (error) => failure(error, account, isOffered)
  })
  const rejected = [...info.rejected]
  const done: Submitted = { rejected, response: REPLY_CODES.exec(info.response)?.[0] ?? "taken" }
  return done
}, Effect.scoped)

const DRAFT_FLAG = String.raw`\Draft`

/** The copies of a message in a folder, with whether they are still marked. Deleted ones do not count. */
const copies = (client: ImapFlow, account: MailAccount, folder: string, message_id: string) =>
  inFolder(client, account, folder, true, async () => {
    const uids = await client.search({ header: { "message-id": message_id }, deleted: false }, { uid: true })
    if (uids === false || uids === undefined || uids.length === 0) return []
    const found = await client.fetchAll(uids.join(","), { flags: true, envelope: true }, { uid: true })
    // Servers search for a part of the header.
    return found
      .filter(({ envelope }) => envelope?.messageId === message_id)
      .map(({ flags, uid }) => ({ uid, isDraft: flags?.has(DRAFT_FLAG) === true }))
  })

/** The fate of a call's mail, by the copy of it. */
export type Fate = "not_sent" | "sent" | "unknown"

const fateIn = Effect.fnUntraced(function* (
  client: ImapFlow,
  account: MailAccount,
  folder: string,
  message_id: string
) {
  const found = yield* copies(client, account, folder, message_id)
  if (found.length === 0) return "not_sent"
  return found.some(({ isDraft }) => !isDraft) ? "sent" : "unknown"
})

/** The fate of the mail of a call that a crash cut off. */
export const fateOf = Effect.fn("mail.fateOf")(function* (account: MailAccount, call_id: CallId) {
  const client = yield* openImap(account)
  const folder = yield* sentFolder(client, account)
  const fate: Fate = yield* fateIn(client, account, folder, messageIdOf(call_id, account.address))
  return fate
}, Effect.scoped)

export interface Sent extends Submitted {
  readonly message_id: string
  /** The copy is where sent mail is, without the mark. */
  readonly copied: boolean
}

/** Sends a mail once: one that has a copy already is never offered again. */
export const sendMail: (
  account: MailAccount,
  call_id: CallId,
  draft: Draft
) => Effect.Effect<Sent, MailProblem | SubmissionFailed> = Effect.fn("mail.sendMail")(function* (
  account,
  call_id,
  draft
) {
  const message_id = messageIdOf(call_id, account.address)
  const client = yield* openImap(account)
  const folder = yield* sentFolder(client, account)
  const before = yield* fateIn(client, account, folder, message_id)
  if (before !== "not_sent")
    return yield* new SubmissionFailed({ problem: `a mail of this call is already in ${folder}`, in_doubt: true })
  const raw = yield* draftBytes(draft, account, call_id)
  yield* keepCopy(client, account, folder, message_id, raw)
  const handed = yield* Effect.tapErrorTag(
    submit(account, { recipients: recipientsOf(draft), raw }),
    "SubmissionFailed",
    (error) => (error.in_doubt ? Effect.void : Effect.ignore(withdraw(client, account, folder, message_id)))
  )
  // The mail has been sent, whether or not the mark succeeds.
  const copied = yield* Effect.isSuccess(confirm(client, account, folder, message_id))
  return { ...handed, message_id, copied }
}, Effect.scoped)

/** The folder is selected for writing, since the library leaves out flags that the selected folder does not keep. */
const keepCopy = Effect.fnUntraced(function* (
  client: ImapFlow,
  account: MailAccount,
  folder: string,
  message_id: string,
  raw: Buffer
) {
  const kept = yield* inFolder(client, account, folder, false, () =>
    client.append(folder, raw, [String.raw`\Seen`, DRAFT_FLAG])
  )
  const found = kept === false ? [] : yield* copies(client, account, folder, message_id)
  if (found.length > 0 && found.every(({ isDraft }) => isDraft)) return
  // Without the mark nobody could tell afterwards that it was not sent.
  yield* Effect.ignore(withdraw(client, account, folder, message_id))
  const name = JSON.stringify(folder)
  return yield* new MailProblem({ problem: `the server cannot keep a copy marked as a draft in ${name}` })
})

const uidsOf = (found: ReadonlyArray<{ readonly uid: number }>): string => found.map(({ uid }) => uid).join(",")

const withdraw = Effect.fnUntraced(function* (
  client: ImapFlow,
  account: MailAccount,
  folder: string,
  message_id: string
) {
  const found = yield* copies(client, account, folder, message_id)
  if (found.length === 0) return
  yield* inFolder(client, account, folder, false, () => client.messageDelete(uidsOf(found), { uid: true }))
})

const confirm = Effect.fnUntraced(function* (
  client: ImapFlow,
  account: MailAccount,
  folder: string,
  message_id: string
) {
  const found = yield* copies(client, account, folder, message_id)
  if (found.length === 0) return yield* new MailProblem({ problem: "the copy is gone" })
  yield* inFolder(client, account, folder, false, () =>
    client.messageFlagsRemove(uidsOf(found), [DRAFT_FLAG], { uid: true })
  )
})
