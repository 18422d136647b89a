/** An embedding model behind an API that is compatible with OpenAI's. */
import { Clock, Effect, Option, Redacted, Schema, Stream } from "effect"
import { Headers, HttpClient, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { knownEmbedding, routedEmbedding } from "#schema/knownEmbeddings.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { openAiUsage, estimateTokens } from "#src/shared/model/usage.ts"
import { errorMessage } from "#src/shared/wire/errorMessage.ts"
import { retryAfterMs } from "#src/shared/wire/retryAfterMs.ts"
import { inTheClearText, isInTheClear } from "#src/shared/config/clearText.ts"
import {
  Embedder,
  EMBEDDING_BATCH_MAX,
  EmbeddingFailed,
  EmbeddingMeter,
  type EmbeddingUse,
  unitVector
} from "./Embedder.ts"
import { modelName, type RemoteModel } from "./embeddingSettings.ts"

// Vectors are checked by hand: there may be a hundred thousand numbers.
const Answer = Schema.Struct({
  data: Schema.Array(Schema.Struct({ index: Schema.optionalKey(Schema.Natural), embedding: Schema.Unknown })),
  usage: Schema.optionalKey(Schema.Unknown)
})
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Answer))

interface EmbeddingAnswer {
  readonly vectors: ReadonlyArray<Float32Array>
  readonly usage: unknown
}

const numbersOf = (value: unknown): ReadonlyArray<number> | undefined =>
  Array.isArray(value) && value.every((one) => typeof one === "number") ? value : undefined

/**
 * The vectors of an answer, which may be wrong in every way, in the order of their texts, or the problem in words. `dimensions` is for another
 * length than was asked for.
 */
const readAnswer = (
  body: string,
  count: number,
  dimensions: number
): EmbeddingAnswer | { readonly problem: string; readonly dimensions?: number } => {
  const answer = Option.getOrUndefined(decode(body))
  if (answer === undefined) return { problem: "it returned something other than embeddings" }
  const { data } = answer
  if (data.length !== count) return { problem: `it returned ${data.length} vectors for ${count} texts` }
  const places = data.map(({ index }, place) => index ?? place)
  if (new Set(places).size !== count || Math.max(-1, ...places) >= count)
    return { problem: "it returned vectors that belong to no text" }
  const vectors: Array<Float32Array> = []
  for (const [place, { embedding }] of data.entries()) {
    const numbers = numbersOf(embedding)
    if (numbers === undefined) return { problem: "it returned vectors that are not numbers" }
    if (numbers.length !== dimensions)
      return {
        problem: `its vectors have ${numbers.length} dimensions, but ${dimensions} are configured`,
        dimensions: numbers.length
      }
    const unit = unitVector(numbers)
    if (unit === undefined) return { problem: "it returned a vector whose length is zero or not finite" }
    vectors[places[place] ?? 0] = unit
  }
  return { vectors, usage: answer.usage }
}

/** Bytes of one text that are embedded. A token has at least one byte, and the models take 8,191 tokens. */
const EMBEDDING_TEXT_BYTES_MAX = 8000
/** One request to an embeddings API, answer included. */
const EMBEDDING_REQUEST_MS_MAX = 30_000
/** Bytes of an answer for each number of its vectors, and for the rest of it. */
const BYTES_A_NUMBER = 32
const ANSWER_REST_BYTES_MAX = 64 * 1024
/** Characters of a provider's own words about a failure. */
const PROBLEM_CHARS_MAX = 200
/** The longest wait that a provider may ask for. */
const RETRY_AFTER_MS_MAX = 900_000

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Providers refuse an empty text, and half a character. */
const cutText = (text: string): string => {
  const whole = text.toWellFormed()
  if (whole.trim() === "") return "(empty)"
  const bytes = encoder.encode(whole)
  if (bytes.length <= EMBEDDING_TEXT_BYTES_MAX) return whole
  let end = EMBEDDING_TEXT_BYTES_MAX
  // Back to the first byte of a character.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return decoder.decode(bytes.subarray(0, end))
}

const CONFLICT = 409
const TOO_MANY = 429
const TIMED_OUT = 408
/** Statuses about the content of a request: another one may succeed. */
const ABOUT_TEXTS = new Set([400, 413, 422])

const isPassing = (status: number) => status >= 500 || [CONFLICT, TIMED_OUT, TOO_MANY].includes(status)

/** The text of a body of at most so many bytes; undefined for a longer one, which is not read to its end. */
const readBody = (response: HttpClientResponse.HttpClientResponse, bytes_max: number) =>
  Effect.gen(function* () {
    const parts: Array<Uint8Array> = []
    let length = 0
    yield* response.stream.pipe(
      Stream.takeWhile((part) => {
        length += part.length
        return length <= bytes_max
      }),
      Stream.runForEach((part) => Effect.sync(() => void parts.push(part)))
    )
    return length > bytes_max ? undefined : Buffer.concat(parts).toString("utf8")
  })

const retryAfter = Effect.fnUntraced(function* (headers: Headers.Headers) {
  const wait = retryAfterMs(headers, yield* Clock.currentTimeMillis)
  return wait === undefined ? {} : { retry_after_ms: Math.min(wait, RETRY_AFTER_MS_MAX) }
})

/** The failures of a model. */
const failedBy =
  (model: string) =>
  (problem: string, rest: Partial<EmbeddingFailed> = {}) =>
    new EmbeddingFailed({
      model,
      problem,
      scope: rest.scope ?? "provider",
      passing: rest.passing ?? false,
      ...(rest.retry_after_ms === undefined ? {} : { retry_after_ms: rest.retry_after_ms })
    })

/** The problem that a refused request had, in the provider's words without the key, and whether another one may succeed. */
const refusalOf = Effect.fnUntraced(function* (response: HttpClientResponse.HttpClientResponse, key: string) {
  const { status } = response
  const body = yield* readBody(response, ANSWER_REST_BYTES_MAX)
  const words = errorMessage(body ?? "")?.replaceAll(/\s+/gu, " ") ?? ""
  const safe = (key === "" ? words : words.replaceAll(key, "…")).slice(0, PROBLEM_CHARS_MAX)
  const rest = {
    scope: ABOUT_TEXTS.has(status) ? "texts" : "provider",
    passing: isPassing(status),
    ...(isPassing(status) ? yield* retryAfter(response.headers) : {})
  } as const
  return [`it answered ${status}${safe === "" ? "" : `: ${safe}`}`, rest] as const
})

const requestOf = (
  { dimensions, endpoint, model, provider }: RemoteModel,
  key: string,
  input: ReadonlyArray<string>,
  shortens: boolean
) =>
  HttpClientRequest.post(`${endpoint.replace(/\/+$/u, "")}/embeddings`).pipe(
    key === "" ? (same) => same : HttpClientRequest.bearerToken(key),
    HttpClientRequest.bodyJsonUnsafe({
      model: provider === "openrouter" ? routedEmbedding(model) : model,
      input,
      encoding_format: "float",
      ...(shortens ? { dimensions } : {})
    })
  )

/** The use that an answer counts, or an estimate of it. @param price USD of a million tokens */
const useOf = (usage: unknown, input: ReadonlyArray<string>, price: number): EmbeddingUse => {
  const { cost_usd, input: counted } = openAiUsage(usage)
  const tokens = counted > 0 ? counted : estimateTokens(input.reduce((sum, { length }) => sum + length, 0))
  return { texts: input.length, tokens, cost_usd: cost_usd ?? (price * tokens) / 1e6 }
}

/** The embedder of one model. Secrets are read for each request, so that a new one counts at once. */
export const makeRemoteEmbedder = Effect.fnUntraced(function* (remote: RemoteModel) {
  const client = yield* HttpClient.HttpClient
  const config = yield* ConfigStore
  const { dimensions, endpoint, model, secret } = remote
  const name = modelName(remote)
  const failed = failedBy(name)
  const known = knownEmbedding(model)
  const bytes_max = EMBEDDING_BATCH_MAX * dimensions * BYTES_A_NUMBER + ANSWER_REST_BYTES_MAX
  // A model that is not known takes the parameter if its vectors are too long without it.
  let shortens = known?.shortens ?? false

  const send = Effect.fnUntraced(function* (input: ReadonlyArray<string>) {
    const key =
      secret === undefined
        ? ""
        : Redacted.value(
            yield* Effect.mapError(config.secret(secret), ({ hint, message }) => failed(`${message}: ${hint}`))
          )
    if (key !== "" && isInTheClear(endpoint)) return yield* failed(inTheClearText(endpoint))
    const response = yield* client.execute(requestOf(remote, key, input, shortens))
    if (response.status < 200 || response.status > 299) return yield* failed(...(yield* refusalOf(response, key)))
    const body = yield* readBody(response, bytes_max)
    return body ?? (yield* failed(`its answer has more than ${bytes_max} bytes`))
  })

  /** One request, in words of its own whatever the client said: its errors repeat addresses and headers. */
  const ask = (input: ReadonlyArray<string>) =>
    send(input).pipe(
      Effect.timeoutOrElse({
        duration: EMBEDDING_REQUEST_MS_MAX,
        orElse: () => failed(`it does not answer within ${EMBEDDING_REQUEST_MS_MAX / 1000} s`, { passing: true })
      }),
      Effect.catchTag("HttpClientError", () => failed("it cannot be reached", { passing: true }))
    )

  const embedBatch = Effect.fnUntraced(function* (texts: ReadonlyArray<string>) {
    const input = texts.map(cutText)
    let answer = readAnswer(yield* ask(input), input.length, dimensions)
    if ("problem" in answer && !shortens && known === undefined && (answer.dimensions ?? 0) > dimensions) {
      shortens = true
      answer = readAnswer(yield* ask(input), input.length, dimensions)
    }
    if ("problem" in answer) return yield* failed(answer.problem, { passing: answer.dimensions === undefined })
    return { vectors: answer.vectors, use: useOf(answer.usage, input, known?.price ?? 0) }
  })

  return Embedder.of({
    model: name,
    dimensions,
    embed: Effect.fn("Embedder.remote")(function* (texts) {
      const meter = yield* EmbeddingMeter
      const vectors: Array<Float32Array> = []
      for (let at = 0; at < texts.length; at += EMBEDDING_BATCH_MAX) {
        const batch = yield* embedBatch(texts.slice(at, at + EMBEDDING_BATCH_MAX))
        yield* meter(batch.use)
        vectors.push(...batch.vectors)
      }
      return vectors
    })
  })
})
