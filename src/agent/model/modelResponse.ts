/** An answer of a model's endpoint as HTTP gives it, before its content is looked at: hostile in size, speed and status. */
import { Clock, Duration, Effect, Result, Stream } from "effect"
import { Headers, type HttpClientResponse } from "effect/http"
import type { ModelError } from "#schema/Event.ts"
import { excerpt, problem } from "./chatCompletion.ts"

/** A model's answer in bytes (threat model, LLM endpoint). */
export const MODEL_REPLY_BYTES_MAX = 8 * 1024 * 1024
/** A model's answer that is read in one piece when it says its length. */
const MODEL_WHOLE_REPLY_BYTES_MAX = 1024 * 1024
/** How long a model may send nothing once its answer began. */
export const MODEL_IDLE_MS_MAX = 60_000

/** A body that did not come to its end, with the bytes that the server sent or, by the length that it gave, had ready. */
export interface BodyFailed {
  readonly error: ModelError
  readonly received: number
}

const silent = problem("timeout", `nothing came for ${MODEL_IDLE_MS_MAX / 1000} s`)
const brokenOff = (error: Error) => problem("unreachable", `the answer broke off: ${error.message}`)

/**
 * The body as text, within the limits of size and of silence. One that says its length, as most do, is short enough to be read whole in
 * the time that silence may last; the server cannot send more than it said.
 */
export const bodyText = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<string, BodyFailed> => {
  const length = Number(response.headers["content-length"] ?? Number.NaN)
  return length <= MODEL_WHOLE_REPLY_BYTES_MAX
    ? response.text.pipe(
        Effect.mapError(brokenOff),
        Effect.timeoutOrElse({ duration: MODEL_IDLE_MS_MAX, orElse: () => Effect.fail(silent) }),
        Effect.mapError((error) => ({ error, received: length }))
      )
    : streamedText(response)
}

const streamedText = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<string, BodyFailed> => {
  let received = 0
  const chunks: Array<Uint8Array> = []
  return response.stream.pipe(
    Stream.mapError(brokenOff),
    Stream.timeoutOrElse({
      duration: MODEL_IDLE_MS_MAX,
      orElse: () => Stream.fail(silent)
    }),
    Stream.runForEach((chunk) => {
      received += chunk.byteLength
      if (received > MODEL_REPLY_BYTES_MAX)
        return Effect.fail(problem("too_large", `the answer is larger than ${MODEL_REPLY_BYTES_MAX} bytes`))
      chunks.push(chunk)
      return Effect.void
    }),
    Effect.mapError((error) => ({ error, received })),
    Effect.andThen(Effect.sync(() => Buffer.concat(chunks).toString("utf8")))
  )
}

/** Overload, which a provider that says when to come back treats as a limit of its rate. */
const OVERLOADED: ReadonlySet<number> = new Set([503, 529])

const retryAfter = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined) return undefined
  const parsed = Headers.parseRetryAfter(header)
  if (Result.isFailure(parsed)) return undefined
  const wait = Math.ceil(Duration.toMillis(Headers.retryAfterDelay(parsed.success, now)))
  return Math.min(wait, Number.MAX_SAFE_INTEGER)
}

/** What an answer that is no success says; `redact` takes secrets out of it. */
export const statusProblem = Effect.fnUntraced(function* (
  response: HttpClientResponse.HttpClientResponse,
  redact: (text: string) => string
) {
  const { status } = response
  const said = redact(yield* Effect.orElseSucceed(bodyText(response), () => ""))
  const wait = retryAfter(response.headers["retry-after"], yield* Clock.currentTimeMillis)
  if (status === 429 || (OVERLOADED.has(status) && wait !== undefined)) {
    const detail = said === "" ? "" : `: ${excerpt(said)}`
    const what = status === 429 ? "the provider's rate limit is reached" : `the provider is overloaded (${status})`
    return problem("rate_limited", what + detail, wait === undefined ? { status } : { status, retry_after_ms: wait })
  }
  return statusWords(status, said)
})

/** The problem that a status is, with the provider's words. */
export const statusWords = (status: number, said: string): ModelError => {
  const detail = said === "" ? "" : `: ${excerpt(said)}`
  const hint =
    status === 401 || status === 403
      ? " (is the model's secret right? choirctl secret set)"
      : status === 404
        ? " (are the model's endpoint and name right?)"
        : status >= 300 && status <= 399
          ? " (a redirect, which is never followed: is the model's endpoint right?)"
          : ""
  return problem("http", `the provider answered ${status}${hint}${detail}`, { status })
}
