/** One request to a service's API with its key, and the answer, read within limits; the caller checks its shape. */
import { Clock, Context, Effect, Layer, Option, Schema, Stream } from "effect"
import { HttpClient, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { inTheClearText, isInTheClear } from "#src/shared/config/clearText.ts"
import { type Source, Sources } from "#schema/Source.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { foreignText, oneLine } from "#src/shared/text/foreignText.ts"
import { pageIn } from "#src/shared/model/providerWords.ts"
import { errorMessage } from "#src/shared/wire/errorMessage.ts"

/** An answer as a whole, and the time for it. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024
/** An answer that is a file, such as a sound. */
const FILE_BYTES_MAX = 16 * 1024 * 1024
export const OUTSIDE_ANSWER_MS_MAX = 20_000
/** The longest wait that a limit of the service may impose on one request, and how often one may. */
export const OUTSIDE_WAIT_MS_MAX = 10_000
const WAITS_MAX = 2

export interface OutsideRequest {
  readonly service: string
  /** The label of what the service says. */
  readonly source: Source
  readonly method: "GET" | "POST" | "PATCH"
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Schema.Json
  /** The time for the answer, where it is not OUTSIDE_ANSWER_MS_MAX. */
  readonly ms_max?: number
  /** Milliseconds until the service takes requests again, by the headers of an answer that says too many came. */
  waitOf(headers: Readonly<Record<string, string | undefined>>, now_ms: number): number | undefined
}

/** A request that the service did not carry out, or whose outcome is unknown (`in_doubt`). */
export class OutsideProblem extends Schema.TaggedError<OutsideProblem>()("OutsideProblem", {
  problem: Schema.String,
  status: Schema.optionalKey(Schema.Int),
  /** No answer came to a request that was sent. */
  in_doubt: Schema.Boolean,
  /** Of what the service said, where it is repeated. */
  sources: Schema.optionalKey(Sources)
}) {
  override get message() {
    return this.problem
  }
}

const notHere = ({ service }: OutsideRequest) =>
  Effect.fail(new OutsideProblem({ problem: `${service} is not available here`, in_doubt: false }))

/** Asks services of the agent's resources. */
export class OutsideApi extends Context.Service<
  OutsideApi,
  {
    /** The JSON of a success. A limit is waited for, within the limits here; redirects are not followed, since the key would go along. */
    ask(request: OutsideRequest): Effect.Effect<Schema.Json, OutsideProblem>
    /** The same for an answer that is a file. */
    bytes(request: OutsideRequest): Effect.Effect<Uint8Array, OutsideProblem>
  }
>()("choir/agent/OutsideApi") {
  static readonly layer = Layer.effect(
    OutsideApi,
    Effect.gen(function* () {
      return make(yield* HttpClient.HttpClient, yield* AgentSettings)
    })
  )
  /** For agents that reach nobody. */
  static readonly layerNone = Layer.succeed(OutsideApi, OutsideApi.of({ ask: notHere, bytes: notHere }))
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

const readBody = (service: string, response: HttpClientResponse.HttpClientResponse, bytes_max: number) => {
  let received = 0
  const chunks: Array<Uint8Array> = []
  const broken = (words: string) => new OutsideProblem({ problem: `${service}: ${words}`, in_doubt: true })
  return response.stream.pipe(
    Stream.mapError(({ message }) => broken(`the answer broke off: ${message}`)),
    Stream.runForEach((chunk) => {
      received += chunk.byteLength
      if (received > bytes_max) return Effect.fail(broken(`the answer is larger than ${bytes_max} bytes`))
      chunks.push(chunk)
      return Effect.void
    }),
    Effect.andThen(Effect.sync(() => Buffer.concat(chunks)))
  )
}

const statusProblem = ({ service, source }: OutsideRequest, status: number, said: string): OutsideProblem => {
  const words = pageIn(said) ?? oneLine(errorMessage(said) ?? said)
  const foreign = words === "" ? undefined : foreignText(source, words)
  const hint =
    status === 401 || status === 403
      ? " (is the secret right, and may it do this?)"
      : status >= 300 && status < 400
        ? " (a redirect, which is not followed: is the endpoint right?)"
        : ""
  return new OutsideProblem({
    problem: `${service} answered ${status}${hint}${foreign === undefined ? "" : `: ${foreign.text}`}`,
    status,
    in_doubt: status >= 500,
    ...(foreign === undefined ? {} : { sources: foreign.sources })
  })
}

const OVERLOADED: ReadonlySet<number> = new Set([429, 503, 529])

const make = (client: HttpClient.HttpClient, settings: AgentSettings["Service"]): OutsideApi["Service"] => {
  const send = Effect.fnUntraced(function* (request: OutsideRequest, accept: string, bytes_max: number) {
    const { body, headers, method, ms_max = OUTSIDE_ANSWER_MS_MAX, service, url } = request
    // Each of these requests has the service's key.
    if (isInTheClear(url, new Set(settings.current().config.own_addresses ?? [])))
      return yield* new OutsideProblem({ problem: `${service}: ${inTheClearText(url)}`, in_doubt: false })
    const plain = HttpClientRequest.make(method)(url, { headers: { accept, ...headers } })
    const ready = body === undefined ? plain : HttpClientRequest.bodyJsonUnsafe(plain, body)
    return yield* client.execute(ready).pipe(
      Effect.flatMap((response) => Effect.map(readBody(service, response, bytes_max), (got) => ({ response, got }))),
      Effect.catchTag("HttpClientError", ({ message }) =>
        Effect.fail(new OutsideProblem({ problem: `${service} did not answer: ${oneLine(message)}`, in_doubt: true }))
      ),
      Effect.timeoutOrElse({
        duration: ms_max,
        orElse: () =>
          Effect.fail(new OutsideProblem({ problem: `${service} did not answer in ${ms_max} ms`, in_doubt: true }))
      })
    )
  })

  /** The body of a success. */
  const get = (
    request: OutsideRequest,
    accept: string,
    bytes_max: number,
    waits = 0
  ): Effect.Effect<Buffer, OutsideProblem> =>
    Effect.gen(function* () {
      const { got, response } = yield* send(request, accept, bytes_max)
      const { headers, status } = response
      if (status >= 200 && status < 300) return got
      const wait_ms = OVERLOADED.has(status) ? request.waitOf(headers, yield* Clock.currentTimeMillis) : undefined
      if (wait_ms === undefined) return yield* statusProblem(request, status, got.toString("utf8"))
      if (wait_ms > OUTSIDE_WAIT_MS_MAX || waits >= WAITS_MAX)
        return yield* new OutsideProblem({
          problem: `${request.service} accepts no more requests for ${Math.ceil(wait_ms / 1000)} s: try again then`,
          status,
          in_doubt: false
        })
      yield* Effect.sleep(Math.max(0, wait_ms))
      return yield* get(request, accept, bytes_max, waits + 1)
    })

  const ask = Effect.fnUntraced(function* (request: OutsideRequest) {
    const got = yield* get(request, "application/json", ANSWER_BYTES_MAX)
    const json = decodeJson(got.toString("utf8"))
    if (Option.isSome(json)) return json.value
    return yield* new OutsideProblem({
      problem: `${request.service} answered with something other than JSON`,
      in_doubt: true
    })
  })
  return OutsideApi.of({ ask, bytes: (request) => get(request, "*/*", FILE_BYTES_MAX) })
}
