/** One small request to an external service, as the checks of the wizard and `choirctl doctor` send it. */
import { Effect, Schema } from "effect"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { type PlainInit, plainFetch } from "#src/shared/wire/plainFetch.ts"
import { pageIn } from "#src/shared/model/providerWords.ts"
import { errorMessage } from "#src/shared/wire/errorMessage.ts"

/** How long a service may take for the whole of an answer. */
const CHECK_MS_MAX = 60_000
/** The most of an answer that is read. */
const CHECK_BYTES_MAX = 1024 * 1024
/** The most of an answer's words that are shown. */
const QUOTED_CHARS_MAX = 200

/** The obstacle that a check met; it decides which question the wizard asks again. */
export const Obstacle = Schema.Literals([
  "key",
  "credit",
  "name",
  "address",
  "busy",
  "broken",
  "unreachable",
  "answer",
  "tools"
])
export type Obstacle = typeof Obstacle.Type

/** A service that was tried and cannot be used as it is. */
export class CheckFailed extends Schema.TaggedError<CheckFailed>()("CheckFailed", {
  obstacle: Obstacle,
  problem: Schema.String,
  fix: Schema.String
}) {
  override get message() {
    return `${this.problem}. ${this.fix}`
  }
}

export interface CheckAnswer {
  readonly status: number
  readonly text: string
}

const readText = async (response: Response) => {
  const parts: Array<Uint8Array> = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.byteLength
    if (bytes > CHECK_BYTES_MAX) break
    parts.push(part)
  }
  return Buffer.concat(parts).toString("utf8").slice(0, CHECK_BYTES_MAX)
}

/** The code alone: the error's own words may quote a key in a header or a token in an address. */
const codeOf = (error: unknown): string => {
  const cause: unknown = Reflect.get(Object(error), "cause")
  const code: unknown = Reflect.get(Object(cause), "code")
  return typeof code === "string" && /^[A-Z0-9_]+$/u.test(code) ? code : "the request failed"
}

/** The meaning of a failed connection's code, for a person. */
const reason = (code: string, { host, protocol }: URL) => {
  if (protocol === "https:" && /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|EPROTO/u.test(code))
    return `${host} speaks http there, and the address begins with https`
  if (protocol === "http:" && /^HPE_|UND_ERR_SOCKET|ECONNRESET/u.test(code))
    return `${host} ends the connection, as a server does that speaks https there, and the address begins with http (${code})`
  if (/ENOTFOUND|EAI_AGAIN/u.test(code)) return `the host name ${host} cannot be resolved (${code})`
  if (code === "ECONNREFUSED") return `no program answers at ${host}`
  if (/CERT|SELF_SIGNED|SSL|TLS/u.test(code)) return `the certificate of ${host} is not accepted (${code})`
  return `${host} cannot be reached (${code})`
}

/** Sends a request and reads the answer, whatever its status. Redirects are not followed. */
export const ask = Effect.fn("checkHttp.ask")(function* (url: string, init: PlainInit) {
  const address = new URL(url)
  const { host } = address
  const request = Effect.tryPromise({
    try: async (signal): Promise<CheckAnswer> => {
      const response = await plainFetch(url, { ...init, signal, redirect: "manual" })
      return { status: response.status, text: await readText(response) }
    },
    catch: (error) =>
      new CheckFailed({
        obstacle: "unreachable",
        problem: reason(codeOf(error), address),
        fix: "Check the address and this machine's network"
      })
  })
  return yield* Effect.timeoutOrElse(request, {
    duration: CHECK_MS_MAX,
    orElse: () =>
      new CheckFailed({
        obstacle: "unreachable",
        problem: `${host} gave no answer in ${CHECK_MS_MAX / 1000} s`,
        fix: "Check the address, or try again later"
      })
  })
})

/** The service's description of the error; empty for a document without one, and a page by its name alone. */
const wordsOf = (text: string): string => errorMessage(text) ?? pageIn(text) ?? (/^\s*[[{]/u.test(text) ? "" : text)

/** The service's own words in one short line, without the secret that it may echo. */
export const quoted = ({ text }: CheckAnswer, secret: string | undefined): string => {
  const words = wordsOf(text)
  const clean = secret === undefined || secret === "" ? words : words.replaceAll(secret, "***")
  const line = safeLine(clean.replaceAll(/\s+/gu, " ").trim()).slice(0, QUOTED_CHARS_MAX)
  return line === "" ? "" : `; it said: ${line.replace(/\.$/u, "")}`
}

export const isWebPage = ({ text }: CheckAnswer): boolean => /^\s*<(?:!doctype|html)/iu.test(text)
