/**
 * One HTTP request to a model's endpoint and its answer before the content is looked at, which is hostile in size, speed and status. A failed
 * request says what the provider may have charged for.
 */
import { withoutStop } from "#src/shared/text/sentences.ts"
import { Clock, Effect, Predicate, Redacted, Stream } from "effect"
import { type HttpClient, HttpClientError, HttpClientRequest, type HttpClientResponse } from "effect/http"
import type { Model } from "#schema/Config.ts"
import type { ModelError } from "#schema/Event.ts"
import type { SecretName } from "#schema/Ids.ts"
import { type Answer, excerpt, KIND_OF, problem } from "#src/shared/model/Answer.ts"
import type { Codec, Delta } from "#src/shared/model/Codec.ts"
import { inTheClearText, isInTheClear } from "#src/shared/config/clearText.ts"
import { detailOf, isSpent, SPENT } from "#src/shared/model/providerWords.ts"
import { retryAfterMs, waitInWords } from "#src/shared/wire/retryAfterMs.ts"
import { endedBySilence } from "./answerSilence.ts"
import { CODECS, MODEL_REPLY_BYTES_MAX, readStream, readWhole } from "#src/shared/model/codecs.ts"

/** The parts of a request besides its body. */
export interface Endpoint {
  readonly model: Model
  readonly key: Redacted.Redacted | undefined
  /** The addresses of choird's host. */
  readonly own: ReadonlySet<string>
  /** Takes secrets out of what the provider said. */
  readonly redact: (text: string) => string
}

/** How long a provider may say nothing at all, not even that it took the question. A model that thinks has said so by then. */
export const FIRST_BYTE_MS_MAX = 90_000

const mute = problem("timeout", `it took the question and said nothing for ${FIRST_BYTE_MS_MAX / 1000} s`)

/** A failed request. */
export interface RequestFailed {
  readonly error: ModelError
  /** The characters that came of an answer, for which the provider has worked; absent where none began. */
  readonly answered?: number
  /** Whether the answer was not whole, so that the provider may have written more than came. */
  readonly unfinished?: true
}

/** Connections that broke once they stood. Of one that never stood nobody can know that a second try helps. */
const BREAKS = new Set<unknown>(["ECONNRESET", "ECONNABORTED", "EPIPE", "UND_ERR_SOCKET"])

const isBroken = ({ reason }: HttpClientError.HttpClientError): boolean =>
  reason._tag === "TransportError" && Predicate.hasProperty(reason.cause, "code") && BREAKS.has(reason.cause.code)

const noSecret = (secret: string): RequestFailed => ({
  error: problem("http", `its secret "${secret}" no longer has a value; the operator can set it: choirctl secret set`)
})

/** The system's own words where it has some: the client's say nothing but the address, which already precedes them. */
const causeOf = ({ message, reason }: HttpClientError.HttpClientError): string => {
  const cause = reason._tag === "TransportError" ? reason.cause : undefined
  return cause instanceof Error && cause.message !== "" ? cause.message : message
}

const unreachable = ({ model, redact }: Endpoint, error: HttpClientError.HttpClientError): RequestFailed => ({
  error: problem(
    "unreachable",
    `it cannot be reached at ${model.endpoint} (is it running, and is the endpoint in config.json right?): ${excerpt(redact(causeOf(error)))}`
  )
})

/** A listener of an answer while it is written. */
export type Heard = (delta: Delta) => Effect.Effect<void>

const whole = Effect.fnUntraced(function* (
  codec: Codec,
  response: HttpClientResponse.HttpClientResponse,
  redact: Endpoint["redact"]
) {
  const text = yield* Effect.mapError(bodyText(response, "answer"), ({ error, received }): RequestFailed => ({
    error,
    answered: received,
    unfinished: true
  }))
  return yield* Effect.mapError(Effect.fromResult(readWhole(codec, text, redact)), (error): RequestFailed => ({
    error,
    answered: text.length
  }))
})

/** Reads the events of an answer as they come; each byte is a sign of life, those of comments included. */
const streamed = Effect.fnUntraced(function* (
  codec: Codec,
  response: HttpClientResponse.HttpClientResponse,
  redact: Endpoint["redact"],
  heard: Heard
) {
  const reading = readStream(codec, redact)
  const decoder = new TextDecoder()
  const unfinished = (error: ModelError): RequestFailed => ({ error, answered: reading.chars(), unfinished: true })
  let received = 0
  yield* endedBySilence((sign) =>
    response.stream.pipe(
      Stream.mapError(brokenOff),
      Stream.runForEachWhile((chunk) =>
        Effect.gen(function* () {
          received += chunk.byteLength
          if (received > MODEL_STREAM_BYTES_MAX)
            return yield* Effect.fail(problem("too_large", `the stream is larger than ${MODEL_STREAM_BYTES_MAX} bytes`))
          const deltas = yield* Effect.fromResult(reading.feed(decoder.decode(chunk, { stream: true })))
          yield* Effect.forEach(deltas, heard, { discard: true })
          const last = deltas.at(-1)
          yield* sign(last === undefined ? undefined : last.type !== "thinking")
          return !reading.isDone()
        })
      )
    )
  ).pipe(Effect.mapError(unfinished))
  return yield* Effect.mapError(Effect.fromResult(reading.answer()), unfinished)
})

/** A 204 has no body, whatever its headers say. */
const isStream = ({ headers, status }: HttpClientResponse.HttpClientResponse): boolean =>
  status !== 204 && /^text\/event-stream(?:;|$)/iu.test(headers["content-type"] ?? "")

/** The statuses of a request that the provider does not understand. */
const NOT_UNDERSTOOD: ReadonlySet<number> = new Set([400, 422])

/**
 * Sends a request and reads its answer, whole or as a stream, whichever comes. A connection that broke before any byte of the answer is tried
 * once more (D49); `broken` hears of each, since a provider may bill the question that it took. A 400 is an answer of its own: it may name a
 * parameter to leave out.
 */
export const request = Effect.fnUntraced(function* (
  http: HttpClient.HttpClient,
  endpoint: Endpoint,
  body: Uint8Array,
  broken: Effect.Effect<void>,
  heard: Heard
): Effect.fn.Return<Answer | { readonly refused: string; readonly error: ModelError }, RequestFailed> {
  const { key, model, own, redact } = endpoint
  const codec = CODECS[model.api]
  // Without its key it would be asked as a stranger, and the answer would blame the wrong thing.
  if (key === undefined && model.secret !== undefined) return yield* Effect.fail(noSecret(model.secret))
  if (key !== undefined && isInTheClear(model.endpoint, own))
    return yield* Effect.fail<RequestFailed>({ error: problem("unreachable", inTheClearText(model.endpoint)) })
  const asked = HttpClientRequest.post(`${model.endpoint.replace(/\/+$/u, "")}${codec.path}`).pipe(
    HttpClientRequest.bodyUint8Array(body, "application/json"),
    HttpClientRequest.setHeaders({
      accept: "application/json, text/event-stream",
      ...codec.headers(model, key === undefined ? undefined : Redacted.value(key))
    })
  )
  const response = yield* http.execute(asked).pipe(
    Effect.tapError((error) => (isBroken(error) ? broken : Effect.void)),
    Effect.retry({ times: 1, while: isBroken }),
    Effect.mapError((error) => unreachable(endpoint, error)),
    Effect.timeoutOrElse({
      duration: FIRST_BYTE_MS_MAX,
      // It took the question, so it may have worked on it.
      orElse: () => Effect.fail<RequestFailed>({ error: mute, answered: 0, unfinished: true })
    })
  )
  if (NOT_UNDERSTOOD.has(response.status)) {
    const said = yield* Effect.orElseSucceed(bodyText(response), () => "")
    const error = statusWords(response.status, redact(said), model.secret, response.headers["server"])
    return { refused: said, error }
  }
  if (response.status < 200 || response.status > 299)
    return yield* Effect.fail<RequestFailed>({ error: yield* statusProblem(response, redact, model.secret) })
  return yield* isStream(response) ? streamed(codec, response, redact, heard) : whole(codec, response, redact)
})

/** A stream in bytes, of which only the text is kept: most of it is the envelopes of single words. */
const MODEL_STREAM_BYTES_MAX = 64 * 1024 * 1024
/** A model's answer that is read in one piece when it says its length. */
const MODEL_WHOLE_REPLY_BYTES_MAX = 1024 * 1024
/** A body that did not come to its end, with the bytes that the server sent or, by the length that it gave, had ready. */
interface BodyFailed {
  readonly error: ModelError
  readonly received: number
}

const brokenOff = (error: Error) => problem("unreachable", `the answer broke off: ${error.message}`)

/** The kind of a body: a model may think before it begins its answer, and a server says at once what is wrong. */
type Kind = "answer" | "error"

/**
 * The body as text, within the limits of size and of silence. One that says its length, as most do, is already there, and short enough to be read
 * whole in the time that silence may last; the server cannot send more than it said.
 */
const bodyText = (
  response: HttpClientResponse.HttpClientResponse,
  kind: Kind = "error"
): Effect.Effect<string, BodyFailed> => {
  const length = Number(response.headers["content-length"] ?? Number.NaN)
  return length <= MODEL_WHOLE_REPLY_BYTES_MAX
    ? endedBySilence((sign) => Effect.andThen(sign(true), Effect.mapError(response.text, brokenOff))).pipe(
        Effect.mapError((error) => ({ error, received: length }))
      )
    : streamedText(response, kind)
}

const isBlank = (bytes: Uint8Array): boolean =>
  bytes.every((byte) => byte === 9 || byte === 10 || byte === 13 || byte === 32)

const streamedText = (
  response: HttpClientResponse.HttpClientResponse,
  kind: Kind
): Effect.Effect<string, BodyFailed> => {
  let received = 0
  const chunks: Array<Uint8Array> = []
  return endedBySilence((sign) =>
    Effect.andThen(
      sign(kind === "error"),
      response.stream.pipe(
        Stream.mapError(brokenOff),
        Stream.runForEach((chunk) => {
          received += chunk.byteLength
          if (received > MODEL_REPLY_BYTES_MAX)
            return Effect.fail(problem("too_large", `the answer is larger than ${MODEL_REPLY_BYTES_MAX} bytes`))
          chunks.push(chunk)
          // Some servers send blanks while the model works.
          return isBlank(chunk) ? sign() : sign(true)
        })
      )
    )
  ).pipe(
    Effect.mapError((error) => ({ error, received })),
    Effect.andThen(Effect.sync(() => Buffer.concat(chunks).toString("utf8")))
  )
}

/** Overload, which a provider that says when to come back treats as a limit of its rate. */
export const OVERLOADED: ReadonlySet<number> = new Set([503, 529])

/** The problem in an answer that is not a success; `redact` takes secrets out of it. */
export const statusProblem = Effect.fnUntraced(function* (
  response: HttpClientResponse.HttpClientResponse,
  redact: (text: string) => string,
  secret?: SecretName
) {
  const { headers, status } = response
  const said = redact(yield* Effect.orElseSucceed(bodyText(response), () => ""))
  const told = retryAfterMs(headers, yield* Clock.currentTimeMillis)
  const wait = told ?? (status === 429 ? waitInWords(said) : undefined)
  if ((status === 429 && !isSpent(said)) || (OVERLOADED.has(status) && wait !== undefined)) {
    const what = status === 429 ? "the provider's rate limit is reached" : `the provider is overloaded (${status})`
    const error = what + detailOf(said, headers["server"])
    return problem("rate_limited", error, wait === undefined ? { status } : { status, retry_after_ms: wait })
  }
  return statusWords(status, said, secret, headers["server"])
})

/** The problem that a status is, with the provider's words; `server` is the header of that name. */
export const statusWords = (status: number, said: string, secret?: SecretName, server?: string): ModelError => {
  const detail = detailOf(said, server)
  if (status === 429 && isSpent(said)) return problem("http", `${SPENT} (${status}${withoutStop(detail)})`, { status })
  const hint =
    status === 401 || status === 403
      ? ` (is the model's secret right? choirctl secret set${secret === undefined ? "" : ` ${secret}`})`
      : status === 404
        ? " (are the model's endpoint and name right?)"
        : status >= 300 && status <= 399
          ? " (a redirect, which is never followed: is the model's endpoint right?)"
          : ""
  return problem(KIND_OF.get(status) ?? "http", `the provider answered ${status}${hint}${detail}`, { status })
}
