/** A connection to the account's IMAP server, for one call: it is closed with the scope, whatever the server does. */
import type { ImapFlow } from "imapflow"
import { Effect, Redacted, type Scope } from "effect"
import { isThisMachine, MAIL_ANSWER_MS_MAX, type MailAccount, MailProblem, serverWords } from "./MailAccount.ts"

/** The port on which a connection begins with TLS; on others STARTTLS comes first. */
const IMAPS_PORT = 993
/** A line of the server, and a message that it sends. */
const IMAP_LINE_BYTES_MAX = 1024 * 1024
export const MAIL_BYTES_MAX = 25 * 1024 * 1024

/** One step of a conversation with the server. An interrupt does not wait for its answer: the connection ends with the scope. */
export const imapStep = <A>(
  account: MailAccount,
  what: string,
  step: () => Promise<A>
): Effect.Effect<A, MailProblem> =>
  Effect.tryPromise({
    try: step,
    catch: (error) => {
      const { text, ...label } = serverWords(error, account, account.config.imap_host)
      return new MailProblem({ problem: `${what} failed: ${text}`, ...label })
    }
  }).pipe(
    Effect.timeoutOrElse({
      duration: MAIL_ANSWER_MS_MAX,
      orElse: () => Effect.fail(new MailProblem({ problem: `${what} failed: no answer in ${MAIL_ANSWER_MS_MAX} ms` }))
    })
  )

export const openImap = (account: MailAccount): Effect.Effect<ImapFlow, MailProblem, Scope.Scope> =>
  Effect.gen(function* () {
    const { ImapFlow } = yield* Effect.promise(() => import("./mailClients.ts"))
    const { imap_host: host, imap_port: port } = account.config
    const isLocal = isThisMachine(host)
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const made = new ImapFlow({
          host,
          port,
          secure: port === IMAPS_PORT,
          // Without it the library would continue in clear text where the server offers nothing else.
          ...(port === IMAPS_PORT || isLocal ? {} : { doSTARTTLS: true }),
          tls: { rejectUnauthorized: !isLocal },
          auth: { user: account.user, pass: Redacted.value(account.password) },
          logger: false,
          disableAutoIdle: true,
          // The server would choose what this process unpacks.
          disableCompression: true,
          connectionTimeout: MAIL_ANSWER_MS_MAX,
          greetingTimeout: MAIL_ANSWER_MS_MAX,
          socketTimeout: MAIL_ANSWER_MS_MAX,
          maxLineLength: IMAP_LINE_BYTES_MAX,
          maxLiteralSize: MAIL_BYTES_MAX
        })
        // What breaks later is the failure of the step that waits for it.
        made.on("error", () => undefined)
        return made
      }),
      (open) => Effect.sync(() => open.close())
    )
    yield* Effect.tryPromise({
      try: () => client.connect(),
      catch: (error) => {
        const isAuth = typeof error === "object" && error !== null && "authenticationFailed" in error
        const hint = isAuth ? ` (is the secret right? choirctl secret set ${account.config.secret})` : ""
        const { text, ...label } = serverWords(error, account, host)
        return new MailProblem({ problem: `${host}:${port} (IMAP) cannot be used${hint}: ${text}`, ...label })
      }
    })
    return client
  })

/** The folder of sent mail: the configured one, else the one that the server marks as such. */
export const sentFolder = Effect.fnUntraced(function* (client: ImapFlow, account: MailAccount) {
  const { sent_folder } = account.config
  if (sent_folder !== undefined) return sent_folder
  const folders = yield* imapStep(account, "listing folders", () => client.list())
  return folders.find(({ specialUse }) => specialUse === String.raw`\Sent`)?.path ?? "Sent"
})

/** Runs with a folder selected; `readOnly` marks nothing as read. */
export const inFolder = <A>(
  client: ImapFlow,
  account: MailAccount,
  folder: string,
  readOnly: boolean,
  use: () => Promise<A>
): Effect.Effect<A, MailProblem> =>
  imapStep(account, `the folder ${JSON.stringify(folder.slice(0, 100))}`, async () => {
    const lock = await client.getMailboxLock(folder, { readOnly })
    try {
      return await use()
    } finally {
      lock.release()
    }
  })
