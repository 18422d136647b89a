/** Mails of parts, encoded as the variants of the mailbox ask. */
import { legacyBytes } from "./legacyBytes.ts"

/** How the texts of a mail are written. */
export interface Writing {
  readonly set: string
  readonly encoding: "7bit" | "8bit" | "quoted-printable" | "base64"
}

export interface Part {
  readonly type: string
  /** Text, which is written as the variant asks, or bytes. */
  readonly body: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
}
export interface Multipart {
  readonly multipart: string
  readonly parts: ReadonlyArray<Part | Multipart>
}

const quoted = (bytes: Buffer): string => {
  const lines = [""]
  const add = (token: string) => {
    const last = lines.length - 1
    if (`${lines[last]}${token}`.length > 75) {
      lines[last] += "="
      lines.push(token)
    } else lines[last] += token
  }
  for (const [at, byte] of bytes.entries()) {
    if (byte === 0x0a) lines.push("")
    else {
      const isEnd = bytes[at + 1] === 0x0a || at + 1 === bytes.length
      const isPlain = (byte > 0x20 && byte < 0x7f && byte !== 0x3d) || (byte === 0x20 && !isEnd)
      add(isPlain ? String.fromCharCode(byte) : `=${byte.toString(16).toUpperCase().padStart(2, "0")}`)
    }
  }
  return lines.join("\n")
}

const base64 = (bytes: Buffer): string => bytes.toString("base64").replaceAll(/.{76}/gu, "$&\n")

const encoded = (bytes: Buffer, encoding: Writing["encoding"]): Buffer =>
  encoding === "quoted-printable"
    ? Buffer.from(quoted(bytes))
    : encoding === "base64"
      ? Buffer.from(base64(bytes))
      : bytes

let boundaries = 0

const headerLines = (headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join("")

/** A part with its headers. */
const partBytes = (part: Part | Multipart, writing: Writing): Buffer => {
  if ("multipart" in part) {
    const boundary = `----=_Part_${(boundaries += 1)}.42`
    const parts = part.parts.flatMap((each) => [
      Buffer.from(`--${boundary}\n`),
      partBytes(each, writing),
      Buffer.from("\n")
    ])
    const [kind = "mixed", ...more] = part.multipart.split(";")
    const type = [`multipart/${kind}`, ...more, ` boundary="${boundary}"`].join(";")
    return Buffer.concat([Buffer.from(`Content-Type: ${type}\n\n`), ...parts, Buffer.from(`--${boundary}--\n`)])
  }
  const { body, headers = {}, type } = part
  const isText = typeof body === "string"
  const isMessage = type.startsWith("message/")
  const set = isText && type.startsWith("text/") ? `; charset=${writing.set === "utf-8" ? '"UTF-8"' : writing.set}` : ""
  const encoding = isText ? (isMessage ? "8bit" : writing.encoding) : "base64"
  const bytes = isText ? legacyBytes(body, writing.set) : body
  const head = { "Content-Type": `${type}${set}`, "Content-Transfer-Encoding": encoding, ...headers }
  return Buffer.concat([Buffer.from(`${headerLines(head)}\n`), encoded(bytes, encoding)])
}

/** A word of a header in another set, as RFC 2047 has it. */
export const word = (text: string, { set }: Writing): string => {
  if (/^[\x20-\x7e]*$/u.test(text)) return text
  const name = set === "us-ascii" ? "utf-8" : set
  return Array.from({ length: Math.ceil(text.length / 12) }, (_, at) => text.slice(12 * at, 12 * at + 12))
    .map((piece) => `=?${name}?B?${legacyBytes(piece, name).toString("base64")}?=`)
    .join("\n ")
}

/** A whole mail, with the line ends of the wire. */
export const mailBytes = (
  headers: Readonly<Record<string, string>>,
  body: Part | Multipart,
  writing: Writing
): Buffer =>
  Buffer.from(
    Buffer.concat([Buffer.from(headerLines(headers)), Buffer.from("MIME-Version: 1.0\n"), partBytes(body, writing)])
      .toString("latin1")
      .replaceAll(/\r?\n/gu, "\r\n"),
    "latin1"
  )
