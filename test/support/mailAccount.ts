/** Agents' tools of mail over a real server, with the account of one of its users. */
import { writeFileSync, mkdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Redacted, Schema } from "effect"
import { TestClock } from "effect/testing"
import { EmailAccount } from "#schema/EmailAccount.ts"
import { CallId, EDGE, SecretName } from "#schema/Ids.ts"
import { emailCheck } from "#src/agent/tools/emailCheck.ts"
import { emailReceive } from "#src/agent/tools/emailReceive.ts"
import { emailSend } from "#src/agent/tools/emailSend.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import type { Tool, UsedFiles } from "#src/agent/tools/Tool.ts"
import { MAIL_READER_PROGRAM } from "./mailReader.ts"
import { MAIL_DOMAIN, MAIL_PASSWORD, type MailServer } from "./mailServer.ts"
import { agentConfig } from "./testing/TestAgent.ts"
import { callIdOf, laneThatSaw, temporaryWorkspace, toolServices } from "./workspace.ts"

const SECRET = SecretName.make("mail")
const decode = Schema.decodeUnknownSync(EmailAccount)

/** The account of a user of the server, with further keys of config.json. */
export const accountOf = (
  { imap_port, smtp_port }: Pick<MailServer, "imap_port" | "smtp_port">,
  user: string,
  more: object = {}
) =>
  decode({
    smtp_host: "127.0.0.1",
    smtp_port,
    imap_host: "127.0.0.1",
    imap_port,
    secret: SECRET,
    address: `${user}@${MAIL_DOMAIN}`,
    ...more
  })

const mailCall = (n: number | string) => CallId.make(`s-1-${n}-0`)

/** The three tools as one user has them. */
export const mailTools = Effect.fnUntraced(function* (
  server: Pick<MailServer, "imap_port" | "smtp_port">,
  user: string,
  more: object = {}
) {
  const { root } = yield* temporaryWorkspace
  const services = yield* toolServices(root, { ...agentConfig(), email: accountOf(server, user, more) })
  const secret = Redacted.make(`${user}@${MAIL_DOMAIN}:${MAIL_PASSWORD}`)
  const store = yield* Effect.provideContext(SecretStore, services)
  yield* store.replaceAll(new Map([[SECRET, secret]]))
  const tools = yield* Effect.provideContext(
    Effect.all([emailSend, emailReceive(MAIL_READER_PROGRAM), emailCheck]),
    services
  )
  const [send, receive, check] = tools
  const run = Effect.fnUntraced(function* (tool: Tool, input: unknown, call_id: CallId) {
    const prepared = yield* tool.prepare(input)
    return yield* prepared.run({ ...laneThatSaw(), call_id })
  })
  return {
    root,
    send: (n: number | string, input: unknown) => run(send, input, mailCall(n)),
    // A process reads a mail, and is waited for.
    receive: (input: unknown) => TestClock.withLive(run(receive, input, callIdOf("s-1-0-0"))),
    check: (input: unknown) => run(check, input, callIdOf("s-1-0-0")),
    /** A call that is prepared, with what a person is shown of its files, and not run yet. */
    prepareSend: (n: number | string, input: unknown) =>
      Effect.map(send.prepare(input), ({ files = Effect.succeed<UsedFiles>({ files: [] }), run }) => ({
        files,
        run: run({ ...laneThatSaw(), call_id: mailCall(n) })
      })),
    /** Why a person is asked before it is sent. */
    asks: (input: unknown) =>
      Effect.flatMap(send.prepare(input), ({ confirm }) => confirm ?? Effect.succeed(undefined)),
    settle: (n: number | string) =>
      send.settle?.({ lane: EDGE, call_id: mailCall(n), input: {} }) ?? Effect.die("it settles nothing"),
    put: (path: string, content: string | Uint8Array) => {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), content)
    }
  }
})
