/** Kills of a process that sends a mail, each at another piece of what it says to its servers and hears from them. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { connect, createServer, type Server, type Socket } from "node:net"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { EmailAccount } from "#schema/EmailAccount.ts"
import { accountOf } from "../../support/mailAccount.ts"
import { MAIL_DOMAIN, MAIL_PASSWORD, type MailServer } from "../../support/mailServer.ts"

const CHILD = join(import.meta.dirname, "mailChild.ts")

/** A relay that hands on piece by piece, and asks before each whether that may go on. */
const relay = async (port: number, mayPass: () => boolean) => {
  const ends: Array<Promise<unknown>> = []
  const pass = (from: Socket, to: Socket) => {
    from.on("data", (piece) => {
      if (mayPass()) to.write(piece)
    })
    from.on("end", () => to.end())
    from.on("error", () => to.end())
  }
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1")
    // The server has taken or dropped all of it once it has closed its side.
    ends.push(once(far, "close").catch(() => undefined))
    pass(near, far)
    pass(far, near)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return { server, ends, port: portOf(server) }
}

const portOf = (server: Server): number => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

const encode = Schema.encodeSync(EmailAccount)

/** Lets a process send a mail and kills it before the piece of this number, counted over all its connections; returns the pieces that passed. */
export const sendUntil = (mail: MailServer, call_id: string, kill_at: number): Effect.Effect<number> =>
  Effect.promise(async () => {
    let pieces = 0
    let kill = () => {}
    const mayPass = () => {
      pieces += 1
      if (pieces === kill_at) kill()
      return pieces < kill_at
    }
    const imap = await relay(mail.imap_port, mayPass)
    const smtp = await relay(mail.smtp_port, mayPass)
    const config = accountOf({ ...mail, imap_port: imap.port, smtp_port: smtp.port }, "ada")
    const given = { config: encode(config), user: `ada@${MAIL_DOMAIN}`, password: MAIL_PASSWORD }
    const child = spawn(process.execPath, [CHILD, JSON.stringify(given), call_id], { stdio: "ignore" })
    kill = () => child.kill("SIGKILL")
    await once(child, "exit")
    for (const { ends, server } of [imap, smtp]) {
      server.close()
      await Promise.all(ends)
    }
    return pieces
  })
