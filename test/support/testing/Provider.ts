/**
 * A scripted double of a model provider on a real loopback socket. It checks each request as the strictest of the real ones do, and answers
 * 400 to what they refuse, before any script is asked. A refusal that no test took fails the test at the end of its scope.
 *
 * A reply is an effect that makes one HTTP response, so that a test can combine replies (`after("1 second", answer("x"))`)
 * and add its own. Waits follow the clock of the test.
 */
import type { ServerResponse } from "node:http"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Clock, type Duration, Effect, Result, Schema, Stream, type Scope } from "effect"
import { encode } from "gpt-tokenizer/encoding/o200k_base"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { ChatRequest } from "#demo/offline-model/ChatCompletion.ts"
import { listen } from "#demo/offline-model/HttpListener.ts"
import { parseJson } from "#demo/offline-model/looseJson.ts"
import { type Dialect, type Refusal, refusalOf } from "#demo/offline-model/requestRules.ts"
import { respond } from "#demo/offline-model/respond.ts"
import { type Journal, makeJournal } from "./Journal.ts"

const REQUEST_BYTES_MAX = 64 * 1024 * 1024

/** One reply to one request. */
export type Reply = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

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
}

/** Longer pieces take the encoder a time that grows with their square where they repeat themselves. */
const COUNTED_CHARS = 1000

const countTokens = (text: string): number => {
  let tokens = 0
  for (let at = 0; at < text.length; at += COUNTED_CHARS)
    tokens += encode(text.slice(at, at + COUNTED_CHARS), { disallowedSpecial: new Set() }).length
  return tokens
}

/** A model of 128k tokens that takes every parameter, counted by o200k_base. */
export const DIALECT: Dialect = {
  context_window: 128_000,
  refuses: [],
  extensions: [],
  count: (text) => countTokens(text)
}

/** A request that a provider refuses, in words that show up where the defect does. */
export class RefusedRequests extends Schema.TaggedError<RefusedRequests>()("RefusedRequests", {
  refusals: Schema.Array(Schema.Struct({ message: Schema.String, param: Schema.NullOr(Schema.String) }))
}) {
  override get message() {
    return `the provider refused requests:\n${this.refusals.map(({ message, param }) => `${message} (${param})`).join("\n")}`
  }
}

/** A tool call of a reply. A string as `input` is sent as it is, valid JSON or not. */
export interface ScriptedCall {
  readonly name: string
  readonly input: unknown
  readonly id?: string
}

const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }

const completion = (
  message: Readonly<Record<string, unknown>>,
  finish_reason: string,
  overrides?: Readonly<Record<string, unknown>>
) => ({
  id: "chatcmpl-scripted",
  object: "chat.completion",
  created: 1,
  model: "scripted",
  choices: [{ index: 0, message: { role: "assistant", content: null, ...message }, finish_reason }],
  usage: USAGE,
  ...overrides
})

const json = (body: unknown, options?: HttpServerResponse.Options.WithContentType): Reply =>
  Effect.sync(() => HttpServerResponse.jsonUnsafe(body, options))

const failure = (
  status: number,
  message: string,
  code: string,
  headers: Readonly<Record<string, string>> = {}
): Reply => json({ error: { message, type: "provider_error", param: null, code } }, { status, headers })

/** A final text. `overrides` replace keys of the completion, for instance `usage` by a wrong one. */
export const answer = (content: string, overrides?: Readonly<Record<string, unknown>>): Reply =>
  json(completion({ content }, "stop", overrides))

export const callTools = (calls: ReadonlyArray<ScriptedCall>, content: string | null = null): Reply => {
  const tool_calls = calls.map(({ id, input, name }, index) => ({
    id: id ?? `call_${index}`,
    type: "function",
    function: { name, arguments: typeof input === "string" ? input : JSON.stringify(input) }
  }))
  return json(completion({ content, tool_calls }, "tool_calls"))
}

/** 429, without Retry-After, with seconds, or with a date that many seconds after the test's now. */
export const rateLimited = (wait?: { readonly seconds: number } | { readonly date_in_seconds: number }): Reply =>
  Effect.flatMap(Clock.currentTimeMillis, (now_ms) => {
    const value =
      wait === undefined
        ? undefined
        : "seconds" in wait
          ? String(wait.seconds)
          : new Date(now_ms + wait.date_in_seconds * 1000).toUTCString()
    return failure(429, "rate limited", "rate_limit_exceeded", value === undefined ? {} : { "retry-after": value })
  })

/** Overload, from which a client is told to come back. */
export const overloaded = (status: 503 | 529, seconds: number): Reply =>
  failure(status, "overloaded", "overloaded_error", { "retry-after": String(seconds) })

/** A failure in the protocol's shape; 5xx, 401, 404, whatever the test needs. */
export const failing = (status: number, message = "the provider failed"): Reply => failure(status, message, "failed")

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
    const text = JSON.stringify(completion({ content }, "stop"))
    const pieces = Array.from({ length: Math.ceil(text.length / PIECE_CHARS) }, (_, index) =>
      text.slice(index * PIECE_CHARS, (index + 1) * PIECE_CHARS)
    )
    const body = Stream.fromIterable(pieces).pipe(
      Stream.rechunk(1),
      Stream.mapEffect((piece, index) => Effect.delay(Effect.succeed(piece), index === 0 ? 0 : pause))
    )
    return HttpServerResponse.stream(Stream.encodeText(body), { contentType: "application/json" })
  })

/** Cuts the connection: before the first byte, or after a part of the announced body. */
export const cut = (part = ""): Reply =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const response = NodeHttpServerRequest.toServerResponse(request) as ServerResponse
    const { socket } = response
    if (part !== "") {
      yield* Effect.callback<void>((resume) => {
        response.writeHead(200, { "content-type": "application/json", "content-length": part.length + 1 })
        response.write(part, () => resume(Effect.void))
      })
    }
    socket?.destroy()
    return yield* Effect.never
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
export const contentFilter = (content = ""): Reply => json(completion({ content }, "content_filter"))

const decodeRequest = Schema.decodeUnknownResult(ChatRequest)

/** The offline model's reply to this request, `latency` later. */
export const offlineModel = (request: ProviderRequest, latency: Duration.Input): Reply =>
  after(
    latency,
    Effect.flatMap(Clock.currentTimeMillis, (now_ms) => {
      const decoded = decodeRequest(request.body)
      return Result.isFailure(decoded)
        ? failing(400, decoded.failure.message)
        : json(respond(decoded.success, Math.floor(now_ms / 1000)))
    })
  )

const refused = ({ code, message, param }: Refusal): Reply =>
  json({ error: { message, type: "invalid_request_error", param, code } }, { status: 400 })

/** Starts a provider on a free loopback port; it ends with the scope. `dialect` is what its model differs in. */
export const makeProviderOf = Effect.fnUntraced(function* (
  dialect: Partial<Dialect>
): Effect.fn.Return<Provider, never, Scope.Scope> {
  const { journal, record } = makeJournal<ProviderRequest>()
  const scripted: Array<Reply> = []
  const rules = { ...DIALECT, ...dialect }
  let refusals: ReadonlyArray<Refusal> = []
  let count = 0
  let apart = (_request: ProviderRequest): Reply | undefined => undefined
  let decide = (_request: ProviderRequest, index: number): Reply =>
    failing(500, `request ${index} has no scripted reply`)
  const app = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const text = yield* request.text
    const body = parseJson(text) ?? text
    const at_ms = yield* Clock.currentTimeMillis
    const entry = { method: request.method, path: request.url, headers: request.headers, body, at_ms }
    const refusal = refusalOf(body, rules)
    if (refusal !== undefined) {
      refusals = [...refusals, refusal]
      record(entry)
      return yield* refused(refusal)
    }
    const reply = apart(entry) ?? scripted.shift() ?? decide(entry, count)
    count += 1
    record(entry)
    return yield* reply
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
    endpoint: `${url}/v1`,
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
    takeRefusals
  }
})

/** The same for a model that takes every parameter. */
export const makeProvider: Effect.Effect<Provider, never, Scope.Scope> = makeProviderOf({})
