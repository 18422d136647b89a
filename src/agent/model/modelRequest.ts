/** One request to a model's endpoint, and what its provider may have worked for although nothing useful came back. */
import { Effect, Predicate, Redacted } from "effect"
import { type HttpClient, HttpClientError, HttpClientRequest } from "effect/http"
import type { Model } from "#schema/Config.ts"
import type { ModelError } from "#schema/Event.ts"
import { excerpt, interpret, problem } from "./chatCompletion.ts"
import { bodyText, statusProblem, statusWords } from "./modelResponse.ts"

/** What a request needs besides its body. */
export interface Endpoint {
  readonly model: Model
  readonly key: Redacted.Redacted | undefined
  /** Takes secrets out of what the provider said. */
  readonly redact: (text: string) => string
}

/** A failed request. */
export interface RequestFailed {
  readonly error: ModelError
  /** The bytes that came of an answer, for which the provider has worked; absent where none began. */
  readonly answered?: number
  /** Whether the answer was not whole, so that the provider may have written more than came. */
  readonly unfinished?: true
}

/** Connections that broke once they stood. Of one that never stood nobody can know that a second try helps. */
const BREAKS = new Set<unknown>(["ECONNRESET", "ECONNABORTED", "EPIPE", "UND_ERR_SOCKET"])

const isBroken = ({ reason }: HttpClientError.HttpClientError): boolean =>
  reason._tag === "TransportError" && Predicate.hasProperty(reason.cause, "code") && BREAKS.has(reason.cause.code)

const noSecret = (secret: string): RequestFailed => ({
  error: problem("http", `its secret "${secret}" has no value any more; the operator can set it: choirctl secret set`)
})

const unreachable = ({ model, redact }: Endpoint, { message }: HttpClientError.HttpClientError): RequestFailed => ({
  error: problem(
    "unreachable",
    `it cannot be reached at ${model.endpoint} (is it running, and is the endpoint in config.json right?): ${excerpt(redact(message))}`
  )
})

/**
 * Sends a request and reads its answer. A connection that broke before any byte of the answer is tried once more (D49); `broken` hears of
 * each, since a provider may bill the question that it took. A 400 is an answer of its own: it may name a parameter to leave out.
 */
export const request = Effect.fnUntraced(function* (
  http: HttpClient.HttpClient,
  endpoint: Endpoint,
  body: string,
  broken: Effect.Effect<void>
) {
  const { key, model, redact } = endpoint
  // Without its key it would be asked as a stranger, and the answer would blame the wrong thing.
  if (key === undefined && model.secret !== undefined) return yield* Effect.fail(noSecret(model.secret))
  const bare = HttpClientRequest.post(`${model.endpoint.replace(/\/+$/u, "")}/chat/completions`).pipe(
    HttpClientRequest.bodyText(body, "application/json"),
    HttpClientRequest.acceptJson
  )
  const response = yield* http
    .execute(key === undefined ? bare : HttpClientRequest.bearerToken(bare, Redacted.value(key)))
    .pipe(
      Effect.tapError((error) => (isBroken(error) ? broken : Effect.void)),
      Effect.retry({ times: 1, while: isBroken }),
      Effect.mapError((error) => unreachable(endpoint, error))
    )
  if (response.status === 400) {
    const said = yield* Effect.orElseSucceed(bodyText(response), () => "")
    return { refused: said, error: statusWords(400, redact(said)) }
  }
  if (response.status < 200 || response.status > 299)
    return yield* Effect.fail<RequestFailed>({ error: yield* statusProblem(response, redact) })
  const text = yield* Effect.mapError(bodyText(response), ({ error, received }): RequestFailed => ({
    error,
    answered: received,
    unfinished: true
  }))
  return yield* Effect.mapError(interpret(text, redact), (error): RequestFailed => ({ error, answered: text.length }))
})
