/** An SMTP server for what no real one does on demand: it ends the connection, or refuses, at a chosen step of a handover. */
import { once } from "node:events"
import { createServer, type Socket } from "node:net"
import { Effect } from "effect"

/** The steps at which it may end: at a command, or once it has taken the whole message. */
export type SmtpStep = "EHLO" | "MAIL" | "RCPT" | "DATA" | "whole message"

/** Ends a conversation, or answers in place of the server. */
export type SmtpEnd = "closes" | "resets" | "half an answer" | "refuses"

export interface BreakingSmtp {
  readonly port: number
  /** The messages that it had all of. */
  readonly taken: ReadonlyArray<string>
}

interface Plan {
  readonly at: SmtpStep
  readonly end: SmtpEnd
  /** Whether a client may send commands before it has the answers to earlier ones. */
  readonly pipelining?: boolean
}

const END_OF_DATA = "\r\n.\r\n"

const endings: Readonly<Record<SmtpEnd, (socket: Socket) => void>> = {
  closes: (socket) => socket.end(),
  resets: (socket) => socket.resetAndDestroy(),
  "half an answer": (socket) => socket.end("250 2.0"),
  refuses: (socket) => socket.write("554 5.7.1 refused\r\n")
}

const answers = (pipelining: boolean): Readonly<Record<string, string>> => ({
  EHLO: `250-localhost\r\n${pipelining ? "250-PIPELINING\r\n" : ""}250 AUTH PLAIN\r\n`,
  AUTH: "235 2.7.0 ok\r\n",
  MAIL: "250 2.1.0 ok\r\n",
  RCPT: "250 2.1.5 ok\r\n",
  DATA: "354 go ahead\r\n",
  RSET: "250 2.0.0 ok\r\n",
  QUIT: "221 2.0.0 bye\r\n"
})

const converse = (socket: Socket, { at, end, pipelining = false }: Plan, taken: Array<string>) => {
  const answer = answers(pipelining)
  let unread = ""
  let isMessage = false
  let isRefused = false
  const step = (name: string) => {
    if (name === at) {
      isRefused = true
      return endings[end](socket)
    }
    // A mail without a sender or a recipient has no content.
    if (name === "DATA" && isRefused) return socket.write("503 5.5.1 no valid recipients\r\n")
    socket.write(name === "whole message" ? "250 2.0.0 taken\r\n" : (answer[name] ?? "500 5.5.1 unknown command\r\n"))
    isMessage = name === "DATA"
  }
  socket.on("error", () => undefined)
  socket.on("data", (piece) => {
    unread += piece.toString("latin1")
    while (socket.writable) {
      const mark = isMessage ? END_OF_DATA : "\r\n"
      const found = unread.indexOf(mark)
      if (found === -1) return
      const said = unread.slice(0, found)
      unread = unread.slice(found + mark.length)
      if (isMessage) taken.push(said)
      step(isMessage ? "whole message" : (said.split(" ")[0] ?? "").toUpperCase())
    }
  })
  socket.write("220 localhost ESMTP\r\n")
}

/** Starts one on loopback; it is gone with the scope. */
export const breakingSmtp = (plan: Plan) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const taken: Array<string> = []
      const open = new Set<Socket>()
      const server = createServer((socket) => {
        open.add(socket)
        converse(socket, plan, taken)
      })
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      return { server, open, running: { port, taken } satisfies BreakingSmtp }
    }),
    ({ open, server }) =>
      Effect.promise(async () => {
        for (const socket of open) socket.destroy()
        await new Promise((closed) => server.close(closed))
      })
  ).pipe(Effect.map(({ running }) => running))
