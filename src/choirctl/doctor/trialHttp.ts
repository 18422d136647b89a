/** One small request to an external service, as the trials of the wizard and `choirctl doctor` send it. */
import { Effect, Schema } from "effect"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { errorMessage } from "#src/shared/wire/errorMessage.ts"

/** How long a service may take for the whole of an answer. */
const TRIAL_MS_MAX = 60_000
/** The most of an answer that is read. */
const TRIAL_BYTES_MAX = 1024 * 1024
/** The most of an answer's words that are shown. */
const QUOTED_CHARS_MAX = 200

/** The obstacle that a trial met; it decides which question the wizard asks again. */
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
export class TrialFailed extends Schema.TaggedError<TrialFailed>()("TrialFailed", {
  obstacle: Obstacle,
  problem: Schema.String,
  fix: Schema.String
}) {
  override get message() {
    return `${this.problem}. ${this.fix}`
  }
}

export interface TrialAnswer {
  readonly status: number
  readonly text: string
}

const readText = async (response: Response) => {
  const parts: Array<Uint8Array> = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.byteLength
    if (bytes > TRIAL_BYTES_MAX) break
    parts.push(part)
  }
  return Buffer.concat(parts).toString("utf8").slice(0, TRIAL_BYTES_MAX)
}

/** The code alone: the error's own words may quote a key in a header or a token in an address. */
const codeOf = (error: unknown): string => {
  const cause: unknown = Reflect.get(Object(error), "cause")
  const code: unknown = Reflect.get(Object(cause), "code")
  return typeof code === "string" && /^[A-Z0-9_]+$/u.test(code) ? code : "the request failed"
}

/** The meaning of a failed connection's code, for a person. */
const reason = (code: string, host: string) => {
  if (/ENOTFOUND|EAI_AGAIN/u.test(code)) return `the host name ${host} cannot be resolved (${code})`
  if (code === "ECONNREFUSED") return `no program answers at ${host}`
  if (/CERT|SELF_SIGNED|SSL|TLS/u.test(code)) return `the certificate of ${host} is not accepted (${code})`
  return `${host} cannot be reached (${code})`
}

/** Sends a request and reads the answer, whatever its status. Redirects are not followed. */
export const ask = Effect.fn("trialHttp.ask")(function* (url: string, init: RequestInit) {
  const { host } = new URL(url)
  const request = Effect.tryPromise({
    try: async (signal): Promise<TrialAnswer> => {
      const response = await fetch(url, { ...init, signal, redirect: "manual" })
      return { status: response.status, text: await readText(response) }
    },
    catch: (error) =>
      new TrialFailed({
        obstacle: "unreachable",
        problem: reason(codeOf(error), host),
        fix: "Check the address and this machine's network"
      })
  })
  return yield* Effect.timeoutOrElse(request, {
    duration: TRIAL_MS_MAX,
    orElse: () =>
      new TrialFailed({
        obstacle: "unreachable",
        problem: `${host} gave no answer in ${TRIAL_MS_MAX / 1000} s`,
        fix: "Check the address, or try again later"
      })
  })
})

/** The service's description of the error; empty for a document without one. */
const wordsOf = (text: string): string => errorMessage(text) ?? (/^\s*[[{]/u.test(text) ? "" : text)

/** The service's own words in one short line, without the secret that it may echo. */
export const quoted = ({ text }: TrialAnswer, secret: string | undefined): string => {
  const words = wordsOf(text)
  const clean = secret === undefined || secret === "" ? words : words.replaceAll(secret, "***")
  const line = safeLine(clean.replaceAll(/\s+/gu, " ").trim()).slice(0, QUOTED_CHARS_MAX)
  return line === "" ? "" : `; it said: ${line.replace(/\.$/u, "")}`
}

export const isWebPage = ({ text }: TrialAnswer): boolean => /^\s*<(?:!doctype|html)/iu.test(text)
