/** A login at the servers of an e-mail account, as agents log in, and nothing else: no mail is read and none is sent. */
import { connect, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { isLoopback } from "#schema/Transport.ts"

/** A connection, and each answer of a mail server. */
export const MAIL_LOGIN_MS_MAX = 20_000
/** The bytes of a mail server between two of our lines. */
const MAIL_SAID_BYTES_MAX = 64 * 1024
/** The ports on which a connection begins with TLS; on others STARTTLS comes first. */
const TLS_PORTS = { imap: 993, smtp: 465 } as const

export interface MailServer {
  readonly protocol: "imap" | "smtp"
  readonly host: string
  readonly port: number
}

/** A server that does not let the account in. The words are Choir's own, or the code of a failed connection. */
export class LoginFailed extends Error {
  readonly reason: "unreachable" | "certificate" | "no_tls" | "refused" | "unknown_answer"
  constructor(reason: LoginFailed["reason"], detail: string) {
    super(detail)
    this.reason = reason
  }
}

/** Lines to a server and its answers, over a socket that may become an encrypted one. */
class Conversation {
  #socket: Socket
  #said = ""
  #ended: LoginFailed | undefined
  #heard: () => void = () => undefined

  constructor(socket: Socket) {
    this.#socket = socket
    this.#listen()
  }

  #listen() {
    const end = (error?: NodeJS.ErrnoException) => {
      const code = error?.code ?? "the connection ended"
      this.#ended ??= new LoginFailed(
        /CERT|SELF_SIGNED|TLS|SSL|ALTNAME/u.test(code) ? "certificate" : "unreachable",
        code
      )
      this.#heard()
    }
    this.#socket.setTimeout(MAIL_LOGIN_MS_MAX, () =>
      this.#socket.destroy(Object.assign(new Error(), { code: "ETIMEDOUT" }))
    )
    this.#socket.on("error", end).once("close", () => end())
    this.#socket.on("data", (bytes: Buffer) => {
      this.#said += bytes.toString("latin1")
      if (this.#said.length > MAIL_SAID_BYTES_MAX) this.#socket.destroy()
      this.#heard()
    })
  }

  /** The words of the server up to a line that fits. */
  async hear(last: RegExp): Promise<string> {
    while (!last.test(this.#said)) {
      if (this.#ended !== undefined) throw this.#ended
      await new Promise<void>((resolve) => {
        this.#heard = resolve
      })
    }
    const said = this.#said
    this.#said = ""
    return said
  }

  async say(line: string, last: RegExp): Promise<string> {
    this.#socket.write(`${line}\r\n`)
    return await this.hear(last)
  }

  /** Continues with TLS, whose certificate counts unless the server is this machine. What was said before it counts no more. */
  encrypt(host: string) {
    const plain = this.#socket
    plain.removeAllListeners("data").removeAllListeners("close").removeAllListeners("error")
    this.#said = ""
    this.#socket = connectTls({
      socket: plain,
      servername: /^[\d.]+$|:/u.test(host) ? "" : host,
      host,
      rejectUnauthorized: !isLoopback(host)
    })
    this.#listen()
  }

  close() {
    this.#socket.destroy()
  }
}

const base64 = (text: string) => Buffer.from(text).toString("base64")
const quoted = (text: string) => `"${text.replaceAll(/["\\]/gu, String.raw`\$&`)}"`

const SMTP_END = /^\d{3} .*\r\n$/mu
const TAGGED = /^a (?:OK|NO|BAD)\b.*\r\n/imu

const refused = (said: string, isIn: RegExp) => {
  if (!isIn.test(said)) throw new LoginFailed("refused", "the server refuses the user or the password")
}

const needTls = (said: string, offered: RegExp, host: string): boolean => {
  if (offered.test(said)) return true
  if (isLoopback(host)) return false
  throw new LoginFailed("no_tls", "the server offers no TLS on this port, and credentials go nowhere without it")
}

const imap = async (talk: Conversation, { host, port }: MailServer, user: string, password: string) => {
  await talk.hear(/^\* .*\r\n/mu)
  const ask = (line: string) => talk.say(`a ${line}`, TAGGED)
  let able = await ask("CAPABILITY")
  if (port !== TLS_PORTS.imap && needTls(able, /\bSTARTTLS\b/iu, host)) {
    await ask("STARTTLS")
    talk.encrypt(host)
    able = await ask("CAPABILITY")
  }
  if (/\bAUTH=PLAIN\b/iu.test(able)) {
    await talk.say("a AUTHENTICATE PLAIN", /^(?:\+|a (?:NO|BAD)\b).*\r\n/imu)
    refused(await talk.say(base64(`\0${user}\0${password}`), TAGGED), /^a OK\b/imu)
  } else refused(await ask(`LOGIN ${quoted(user)} ${quoted(password)}`), /^a OK\b/imu)
}

const smtp = async (talk: Conversation, { host, port }: MailServer, user: string, password: string) => {
  await talk.hear(SMTP_END)
  let able = await talk.say("EHLO choir.invalid", SMTP_END)
  if (port !== TLS_PORTS.smtp && needTls(able, /^250[- ]STARTTLS\b/imu, host)) {
    await talk.say("STARTTLS", SMTP_END)
    talk.encrypt(host)
    able = await talk.say("EHLO choir.invalid", SMTP_END)
  }
  if (/^250[- ]AUTH\b.*\bPLAIN\b/imu.test(able))
    return refused(await talk.say(`AUTH PLAIN ${base64(`\0${user}\0${password}`)}`, SMTP_END), /^235 /mu)
  if (!/^250[- ]AUTH\b.*\bLOGIN\b/imu.test(able))
    throw new LoginFailed("unknown_answer", "the server offers no login by a password")
  await talk.say("AUTH LOGIN", SMTP_END)
  await talk.say(base64(user), SMTP_END)
  refused(await talk.say(base64(password), SMTP_END), /^235 /mu)
}

/** Logs in and leaves. Rejects with {@link LoginFailed}. */
export const mailLogin = async (
  server: MailServer,
  user: string,
  password: string,
  signal: AbortSignal
): Promise<void> => {
  const { host, port, protocol } = server
  const isTls = port === TLS_PORTS[protocol]
  const socket = isTls
    ? connectTls({
        host,
        port,
        servername: /^[\d.]+$|:/u.test(host) ? "" : host,
        rejectUnauthorized: !isLoopback(host)
      })
    : connect(port, host)
  const talk = new Conversation(socket)
  const stop = () => talk.close()
  signal.addEventListener("abort", stop)
  try {
    await (protocol === "imap" ? imap : smtp)(talk, server, user, password)
  } finally {
    signal.removeEventListener("abort", stop)
    talk.close()
  }
}
