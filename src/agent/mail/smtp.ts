/** The handover of a message to the account's SMTP server. */
import { Effect, Redacted, Schema } from "effect"
import { isThisMachine, MAIL_ANSWER_MS_MAX, type MailAccount, serverWords } from "./MailAccount.ts"

/** The port on which a connection begins with TLS; on others STARTTLS comes first. */
const SMTPS_PORT = 465
/** Time to take and check a whole message. */
const SMTP_DATA_MS_MAX = 60_000

/** A message as it goes over the wire, and to whom. */
export interface Parcel {
  readonly recipients: ReadonlyArray<string>
  readonly raw: Buffer
}

/** The server's answer to a message that it took, perhaps not for everybody. */
export interface Submitted {
  readonly rejected: ReadonlyArray<string>
  readonly response: string
}

/** The message was not taken, or nobody knows. */
export class SubmissionFailed extends Schema.TaggedError<SubmissionFailed>()("SubmissionFailed", {
  problem: Schema.String,
  /** The connection ended while the server may have had all of it. */
  in_doubt: Schema.Boolean
}) {
  override get message() {
    return this.problem
  }
}

const property = (error: unknown, name: string): unknown =>
  typeof error === "object" && error !== null && name in error ? (error as Record<string, unknown>)[name] : undefined

const REFUSAL_CODE_MIN = 400

/** Only a refusal by the server, or an end before it was asked for the content, proves that it did not take the mail. */
const failure = (error: unknown, account: MailAccount, isOffered: boolean): SubmissionFailed => {
  const code = property(error, "responseCode")
  const in_doubt = isOffered && !(typeof code === "number" && code >= REFUSAL_CODE_MIN)
  const hint = code === 535 ? ` (is the secret right? choirctl secret set ${account.config.secret})` : ""
  const { smtp_host, smtp_port } = account.config
  const what = in_doubt ? "broke off while it took the mail" : "did not take the mail"
  return new SubmissionFailed({
    problem: `${smtp_host}:${smtp_port} ${what}${hint}: ${serverWords(error, account)}`,
    in_doubt
  })
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
  const done: Submitted = { rejected, response: serverWords(new Error(info.response), account) }
  return done
}, Effect.scoped)
