/**
 * Replies of a provider: effects that make one HTTP response each, in the dialect of the provider that was asked and as a stream where a
 * stream was asked for. Waits follow the clock of the test.
 */
import type { ServerResponse } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Clock, Context, Duration, Effect, Stream, type Scope } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Dialect } from "#demo/dialects/Dialect.ts"
import type { Keys } from "#demo/dialects/jsonKeys.ts"
import type { Answer, Occasion, Written } from "./Answer.ts"
import type { Tally } from "./Meter.ts"
import { keepAlive, sse, streamError, writerOf } from "./serverEvents.ts"

/** The request that a reply is for, and the provider that it came to. */
export class Asking extends Context.Service<
  Asking,
  {
    readonly dialect: Dialect
    readonly body: Keys
    readonly number: number
    readonly prompt: Pick<Tally, "input" | "cached" | "written">
    /** How fast the model writes; at once where absent. */
    readonly tokens_per_second: number | undefined
    /** Counts what the model wrote, if the provider counts. */
    wrote(text: string): number
  }
>()("choir/test/support/providers/Asking") {}

/** One reply to one request. */
export type Reply = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest | Scope.Scope | Asking
>

/** How a stream differs from one that arrives whole. An answer in one piece differs likewise. */
export interface StreamOptions {
  /** Keep-alives before the first event: comments, or what the dialect has in their place. */
  readonly comments?: number
  /** Stops after this many events. */
  readonly breaks?: { readonly after: number; readonly how: "cut" | "error" | "silence" }
  /** Waits once, behind this many events. */
  readonly waits?: { readonly after: number; readonly for: Effect.Effect<unknown> }
}

const write = Effect.fnUntraced(function* (answer: Answer, overrides: Keys) {
  const { body, dialect, number, prompt, wrote } = yield* Asking
  const { calls = [], reasoning = "", refusal = "", text = "" } = answer
  const thought = wrote(reasoning)
  const output = thought + wrote(text + refusal + calls.map(({ input, name }) => name + JSON.stringify(input)).join(""))
  const created = Math.floor((yield* Clock.currentTimeMillis) / 1000)
  const occasion: Occasion = {
    dialect,
    body,
    number,
    created,
    model: typeof body["model"] === "string" ? body["model"] : "",
    tally: { ...prompt, output, reasoning: thought, ...answer.usage }
  }
  return writerOf[dialect.api](answer, occasion, overrides)
})

const socketOf = Effect.map(
  HttpServerRequest.HttpServerRequest,
  (request) => (NodeHttpServerRequest.toServerResponse(request) as ServerResponse).socket
)

const streamed = Effect.fnUntraced(function* ({ events }: Written, { breaks, comments = 0, waits }: StreamOptions) {
  const { dialect, tokens_per_second } = yield* Asking
  const socket = yield* socketOf
  const pause = (tokens: number) =>
    tokens_per_second === undefined ? Duration.zero : Duration.millis((tokens * 1000) / tokens_per_second)
  const written = Stream.fromIterable(events().slice(0, breaks?.after).entries()).pipe(
    Stream.rechunk(1),
    Stream.mapEffect(([index, event]) =>
      Effect.as(
        Effect.andThen(index === waits?.after ? waits.for : Effect.void, Effect.sleep(pause(event.tokens))),
        sse(event)
      )
    )
  )
  const ending =
    breaks === undefined
      ? Stream.empty
      : breaks.how === "error"
        ? Stream.make(streamError(dialect))
        : Stream.fromEffect(
            // What was written before goes out first: Node hands it to the socket at the end of this turn.
            Effect.callback<never>(() => {
              if (breaks.how === "cut") setImmediate(() => socket?.destroySoon())
            })
          )
  const opening = Stream.fromIterable(Array.from({ length: comments }, () => keepAlive(dialect)))
  return HttpServerResponse.stream(Stream.encodeText(Stream.concat(Stream.concat(opening, written), ending)), {
    contentType: "text/event-stream"
  })
})

/** An answer in the dialect of the provider. `overrides` replace keys of the whole answer, for instance `usage` by a wrong one. */
export const say = (answer: Answer, options: StreamOptions & { readonly overrides?: Keys } = {}): Reply =>
  Effect.gen(function* () {
    const { body, tokens_per_second } = yield* Asking
    const written = yield* write(answer, options.overrides ?? {})
    if (body["stream"] === true) return yield* streamed(written, options)
    const { breaks } = options
    if (breaks?.how === "silence") return yield* Effect.never
    if (breaks?.how === "error") return yield* fail(500)
    const text = JSON.stringify(written.whole)
    if (breaks?.how === "cut") return yield* cut(text.slice(0, breaks.after))
    if (tokens_per_second !== undefined) {
      const tokens = written.events().reduce((sum, event) => sum + event.tokens, 0)
      yield* Effect.sleep(Duration.millis((tokens * 1000) / tokens_per_second))
    }
    return HttpServerResponse.text(text, { contentType: "application/json" })
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

/** What providers say with a status where a test does not. */
const WORDS: Readonly<Record<number, string>> = {
  401: "Incorrect API key provided.",
  402: "Insufficient Balance",
  404: "The model does not exist or you do not have access to it.",
  413: "Request exceeds the maximum allowed number of bytes.",
  429: "Rate limit reached for requests.",
  500: "The server had an error while processing your request. Sorry about that!",
  502: "Bad gateway.",
  503: "The engine is currently overloaded, please try again later.",
  529: "Overloaded"
}
const CODES: Readonly<Record<number, string>> = {
  401: "invalid_api_key",
  404: "model_not_found",
  429: "rate_limit_exceeded"
}

/** A failure with a status, in the shape of the dialect. */
export const fail = (
  status: number,
  options: { readonly message?: string; readonly headers?: Readonly<Record<string, string>> } = {}
): Reply =>
  Effect.map(Asking, ({ dialect }) =>
    HttpServerResponse.jsonUnsafe(
      dialect.errorBody({
        status,
        message: options.message ?? WORDS[status] ?? "the provider failed",
        code: CODES[status]
      }),
      { status, headers: options.headers ?? {} }
    )
  )

/** 429, without Retry-After, with seconds, or with a date that many seconds after the test's now. */
export const rateLimited = (wait?: { readonly seconds: number } | { readonly date_in_seconds: number }): Reply =>
  Effect.flatMap(Clock.currentTimeMillis, (now_ms) => {
    const value =
      wait === undefined
        ? undefined
        : "seconds" in wait
          ? String(wait.seconds)
          : new Date(now_ms + wait.date_in_seconds * 1000).toUTCString()
    // The server's clock is the one by which it says when to come back.
    const date = new Date(now_ms).toUTCString()
    return fail(429, value === undefined ? {} : { headers: { "retry-after": value, date } })
  })

/** Overload, from which a client is told to come back. */
export const overloaded = (status: 503 | 529, seconds: number): Reply =>
  fail(status, { headers: { "retry-after": String(seconds) } })
