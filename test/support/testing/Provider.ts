/**
 * A scripted double of a model provider on a real loopback socket, in the dialect of one of the real ones (`demo/dialects`). It checks each
 * request as they do, and answers what they answer to what they refuse, before any script is asked. A refusal that no test took fails the
 * test at the end of its scope.
 *
 * A reply is an effect that makes one HTTP response, so that a test can combine replies (`after("1 second", answer("x"))`)
 * and add its own. Waits follow the clock of the test.
 */
import { Clock, type Duration, Effect, Result, Schema, Stream, type Scope } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { type DialectName, DIALECTS, refusalOf } from "#demo/dialects/Dialect.ts"
import { isObject } from "#demo/dialects/jsonKeys.ts"
import { parseJson } from "#demo/dialects/looseJson.ts"
import type { Refusal, Traits } from "#demo/dialects/Rule.ts"
import { ChatRequest } from "#demo/offline-model/ChatCompletion.ts"
import { listen } from "#demo/offline-model/HttpListener.ts"
import { respond } from "#demo/offline-model/respond.ts"
import { responseOf } from "#demo/offline-model/responseOf.ts"
import type { ScriptedCall } from "../providers/Answer.ts"
import { countTokens, Meter, type Summary } from "../providers/Meter.ts"
import { Asking, fail, type Reply, say } from "../providers/Reply.ts"
import { type Journal, makeJournal } from "./Journal.ts"

export { cut, overloaded, rateLimited, type Reply, say } from "../providers/Reply.ts"

const REQUEST_BYTES_MAX = 64 * 1024 * 1024
/** Every path of the API begins with it. */
const ENDPOINT_PATH = "/v1"

/** A provider's dialect, its model's traits, and how it counts and writes. */
export interface ProviderOptions extends Partial<Traits> {
  /** `openai` where absent. */
  readonly dialect?: DialectName
  /** Counts tokens in o200k and the cached prefix, and reports them; without it each call has 10 tokens in and 5 out. */
  readonly counts?: boolean
  /** The model's speed; it answers at once where absent. */
  readonly tokens_per_second?: number
}

/** A request as the provider received it. */
export interface ProviderRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The parsed JSON, or the text where it is none. */
  readonly body: unknown
  /** When it had arrived whole, by the clock of the test. */
  readonly at_ms: number
}

export interface Provider {
  /** What config.json calls `endpoint`; ends in `/v1`. */
  readonly endpoint: string
  /** Adds replies, each used once, in order. */
  script(...replies: ReadonlyArray<Reply>): Effect.Effect<void>
  /** Answers the requests for which `decide` has a reply, apart from the script, which they leave as it is. */
  aside(decide: (request: ProviderRequest) => Reply | undefined): Effect.Effect<void>
  /** Decides the replies once the script is used up. Without it such a request gets a 500 that says so. */
  otherwise(decide: (request: ProviderRequest, index: number) => Reply): Effect.Effect<void>
  /** What was received, refused or not. */
  readonly requests: Journal<ProviderRequest>
  /** The refusals so far, which a test that wants them takes; those that are left at the end of the scope are a defect. */
  readonly takeRefusals: Effect.Effect<ReadonlyArray<Refusal>>
  /** What was asked so far, summed; zero tokens where the provider does not count. */
  readonly summary: Effect.Effect<Summary>
}

/** A model of 128k tokens that takes every parameter, counted by o200k_base. */
export const TRAITS: Traits = {
  context_window: 128_000,
  refuses: [],
  extensions: [],
  count: (text) => countTokens(text)
}

/** A request that a provider refuses, in words that show up where the defect does. */
export class RefusedRequests extends Schema.TaggedError<RefusedRequests>()("RefusedRequests", {
  refusals: Schema.Array(
    Schema.Struct({ rule: Schema.String, message: Schema.String, param: Schema.NullOr(Schema.String) })
  )
}) {
  override get message() {
    return `the provider refused requests:\n${this.refusals.map(({ message, param, rule }) => `${message} (${param}); ${rule}`).join("\n")}`
  }
}

/** A final text. `overrides` replace keys of the completion, for instance `usage` by a wrong one. */
export const answer = (content: string, overrides: Readonly<Record<string, unknown>> = {}): Reply =>
  say({ text: content }, { overrides })

export const callTools = (calls: ReadonlyArray<ScriptedCall>, content: string | null = null): Reply =>
  say({ calls, ...(content === null ? {} : { text: content }) })

/** A failure in the protocol's shape; 5xx, 401, 404, whatever the test needs. */
export const failing = (status: number, message = "the provider failed"): Reply => fail(status, { message })

/** Any body, with any status. */
export const raw = (body: string, status = 200, contentType = "application/json"): Reply =>
  Effect.sync(() => HttpServerResponse.text(body, { status, contentType }))

/** Never answers; the connection stays open until the client leaves. */
export const hang: Reply = Effect.never

export const after = (wait: Duration.Input, reply: Reply): Reply => Effect.delay(reply, wait)

const PIECE_CHARS = 16

/** A valid answer that arrives in pieces of 16 bytes: the first at once, each other after a pause. */
export const dripping = (content: string, pause: Duration.Input): Reply =>
  Effect.sync(() => {
    const text = JSON.stringify({ choices: [{ message: { content }, finish_reason: "stop" }] })
    const pieces = Array.from({ length: Math.ceil(text.length / PIECE_CHARS) }, (_, index) =>
      text.slice(index * PIECE_CHARS, (index + 1) * PIECE_CHARS)
    )
    const body = Stream.fromIterable(pieces).pipe(
      Stream.rechunk(1),
      Stream.mapEffect((piece, index) => Effect.delay(Effect.succeed(piece), index === 0 ? 0 : pause))
    )
    return HttpServerResponse.stream(Stream.encodeText(body), { contentType: "application/json" })
  })

/** A valid answer whose text has this many bytes. */
export const oversize = (bytes: number): Reply => Effect.suspend(() => answer("a".repeat(bytes)))

export const manyToolCalls = (count: number, name: string): Reply =>
  Effect.suspend(() => callTools(Array.from({ length: count }, (_, index) => ({ name, input: { index } }))))

/** A body that never ends. */
export const endless: Reply = Effect.sync(() =>
  HttpServerResponse.stream(Stream.encodeText(Stream.forever(Stream.make("a".repeat(64 * 1024)))), {
    contentType: "application/json"
  })
)

export const redirect = (location: string, status: 301 | 302 | 303 | 307 | 308 = 307): Reply =>
  Effect.sync(() => HttpServerResponse.redirect(location, { status }))

/** A completion that the provider's filter cut off. */
export const contentFilter = (content = ""): Reply => say({ text: content, finish: "filter" })

const decodeRequest = Schema.decodeUnknownResult(ChatRequest)

/** The offline model's reply to this request, `latency` later. */
export const offlineModel = (request: ProviderRequest, latency: Duration.Input): Reply =>
  after(
    latency,
    Effect.flatMap(Clock.currentTimeMillis, (now_ms) => {
      const decoded = decodeRequest(request.body)
      return Result.isFailure(decoded)
        ? failing(400, decoded.failure.message)
        : Effect.succeed(responseOf(decoded.success, respond(decoded.success, Math.floor(now_ms / 1000))))
    })
  )

/** Tokens of a call where nothing is counted. */
const UNCOUNTED = { input: 10, cached: 0, written: 0 }
const UNCOUNTED_OUTPUT = 5

/** Starts a provider on a free loopback port; it ends with the scope. */
export const makeProviderOf = Effect.fnUntraced(function* (
  options: ProviderOptions
): Effect.fn.Return<Provider, never, Scope.Scope> {
  const { counts = false, dialect: name = "openai", tokens_per_second, ...traits } = options
  const dialect = DIALECTS[name]
  const { journal, record } = makeJournal<ProviderRequest>()
  const meter = new Meter()
  const rules = { ...TRAITS, ...(counts ? { count: (text: string) => meter.count(text) } : {}), ...traits }
  const scripted: Array<Reply> = []
  let refusals: ReadonlyArray<Refusal> = []
  let refused = 0
  let count = 0
  let apart = (_request: ProviderRequest): Reply | undefined => undefined
  let decide = (_request: ProviderRequest, index: number): Reply =>
    failing(500, `request ${index} has no scripted reply`)
  const wrote = (text: string) => {
    if (!counts) return text === "" ? 0 : UNCOUNTED_OUTPUT
    const tokens = countTokens(text)
    meter.answered(tokens)
    return tokens
  }
  const app = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    // Clients of the process that had this port before may still ask here.
    if (!request.url.startsWith(ENDPOINT_PATH)) return HttpServerResponse.empty({ status: 404 })
    const text = yield* request.text
    const body = parseJson(text) ?? text
    const at_ms = yield* Clock.currentTimeMillis
    const entry = { method: request.method, path: request.url, headers: request.headers, body, at_ms }
    const place = `${request.method} ${request.url}`
    const asked = { place, headers: request.headers, bytes: Buffer.byteLength(text), body }
    const refusal = refusalOf(dialect, asked, rules)
    if (refusal !== undefined) {
      refusals = [...refusals, refusal]
      refused += 1
      record(entry)
      return HttpServerResponse.jsonUnsafe(refusal.body, { status: refusal.status })
    }
    const keys = isObject(body) ? body : {}
    const prompt = counts ? meter.prompt(dialect, keys) : UNCOUNTED
    const reply = apart(entry) ?? scripted.shift() ?? decide(entry, count)
    const asking = { dialect, body: keys, number: count, prompt, tokens_per_second, wrote }
    count += 1
    record(entry)
    return yield* Effect.provideService(reply, Asking, asking)
  })
  const takeRefusals = Effect.sync(() => {
    const taken = refusals
    refusals = []
    return taken
  })
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(takeRefusals, (left) =>
      left.length === 0 ? Effect.void : Effect.die(new RefusedRequests({ refusals: left }))
    )
  )
  const address = { host: "127.0.0.1", port: 0, body_bytes_max: REQUEST_BYTES_MAX }
  const url = yield* Effect.orDie(listen(app, address))
  return {
    endpoint: `${url}${ENDPOINT_PATH}`,
    script: (...replies) => Effect.sync(() => void scripted.push(...replies)),
    aside: (next) =>
      Effect.sync(() => {
        apart = next
      }),
    otherwise: (next) =>
      Effect.sync(() => {
        decide = next
      }),
    requests: journal,
    takeRefusals,
    summary: Effect.sync(() => meter.summary(refused))
  }
})

/** The same for a model that takes every parameter. */
export const makeProvider: Effect.Effect<Provider, never, Scope.Scope> = makeProviderOf({})
