/**
 * Chat completions of an OpenAI-compatible endpoint (spec 21). What comes back is hostile input: sizes, counts and times are
 * capped, tool calls are structured or nothing, redirects are not followed. A failure is data: it becomes an event.
 */
import { Clock, Context, Duration, Effect, Layer, Redacted, Result, Schema, Stream } from "effect"
import { Headers, HttpClient, HttpClientRequest, type HttpClientResponse } from "effect/http"
import type { Model } from "#schema/Config.ts"
import type { ModelError, Usage } from "#schema/Event.ts"
import { isDeeperThan } from "#src/shared/canonicalJson.ts"
import {
  MODEL_IDLE_MS_MAX,
  MODEL_REPLY_BYTES_MAX,
  MODEL_RETRY_AFTER_MS_MAX,
  MODEL_TOOL_ARGUMENT_BYTES_MAX,
  MODEL_TOOL_ARGUMENT_DEPTH_MAX,
  MODEL_TOOL_CALLS_MAX,
  MODEL_TOTAL_MS_MAX,
  MODEL_USAGE_TOKENS_MAX
} from "#src/shared/limits.ts"
import { AgentSettings } from "./AgentSettings.ts"
import { SecretStore } from "./SecretStore.ts"

/** A message of the chat completions API, as this client sends it. */
export type ChatMessage =
  | { readonly role: "system" | "user"; readonly content: string }
  | {
      readonly role: "assistant"
      readonly content: string | null
      readonly tool_calls?: ReadonlyArray<{
        readonly id: string
        readonly type: "function"
        readonly function: { readonly name: string; readonly arguments: string }
      }>
    }
  | { readonly role: "tool"; readonly tool_call_id: string; readonly content: string }

export interface ChatTool {
  readonly type: "function"
  readonly function: { readonly name: string; readonly description: string; readonly parameters: unknown }
}

export interface Completion {
  /** The name of config.json that answered; a fallback's when one took over. */
  readonly model: string
  readonly text?: string
  readonly tool_calls: ReadonlyArray<{ readonly name: string; readonly input: Schema.Json }>
  readonly finish_reason: string
  readonly usage: Usage
  readonly latency_ms: number
  readonly error?: ModelError
}

/** Asks models. */
export class Llm extends Context.Service<
  Llm,
  {
    /**
     * One completion by a bound model. After a 429 it announces the wait, obeys Retry-After up to a minute and asks once more
     * (R26); after that, or after a timeout or a 5xx, the model's fallbacks take over (E9). Never fails: the last attempt's
     * error is in the completion.
     */
    complete(
      model: string,
      messages: ReadonlyArray<ChatMessage>,
      tools: ReadonlyArray<ChatTool>,
      announce: (wait: Duration.Duration) => Effect.Effect<void>
    ): Effect.Effect<Completion>
  }
>()("choir/agent/Llm") {
  static readonly layer = Layer.effect(
    Llm,
    Effect.suspend(() => make())
  )
}

const Reply = Schema.Struct({
  choices: Schema.NonEmptyArray(
    Schema.Struct({
      finish_reason: Schema.optionalKey(Schema.NullOr(Schema.String)),
      message: Schema.Struct({
        content: Schema.optionalKey(Schema.NullOr(Schema.String)),
        tool_calls: Schema.optionalKey(
          Schema.NullOr(
            Schema.Array(Schema.Struct({ function: Schema.Struct({ name: Schema.String, arguments: Schema.String }) }))
          )
        )
      })
    })
  ),
  usage: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({
        prompt_tokens: Schema.optionalKey(Schema.Unknown),
        completion_tokens: Schema.optionalKey(Schema.Unknown)
      })
    )
  )
})
const decodeReply = Schema.decodeUnknownEffect(Schema.fromJsonString(Reply))
const decodeJson = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

/** A provider's count as far as it can be one; nonsense counts as nothing, so that the estimate stands. */
const reported = (tokens: unknown): number =>
  Schema.is(Schema.Natural)(tokens) ? Math.min(tokens, MODEL_USAGE_TOKENS_MAX) : 0

/** A rough count that errs on the high side for English; the provider's own count wins when it is higher. */
export const estimateTokens = (text: string): number => Math.ceil(text.length / 4)

const problem = (kind: ModelError["kind"], message: string, more: Partial<ModelError> = {}): ModelError => ({
  kind,
  message,
  ...more
})

const bodyText = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<string, ModelError> => {
  let bytes = 0
  const chunks: Array<Uint8Array> = []
  return response.stream.pipe(
    Stream.mapError((error) => problem("unreachable", `the answer broke off: ${error.message}`)),
    Stream.timeoutOrElse({
      duration: MODEL_IDLE_MS_MAX,
      orElse: () => Stream.fail(problem("timeout", `nothing came for ${MODEL_IDLE_MS_MAX / 1000} s`))
    }),
    Stream.runForEach((chunk) => {
      bytes += chunk.byteLength
      if (bytes > MODEL_REPLY_BYTES_MAX)
        return Effect.fail(problem("too_large", `the answer is larger than ${MODEL_REPLY_BYTES_MAX} bytes`))
      chunks.push(chunk)
      return Effect.void
    }),
    Effect.andThen(Effect.sync(() => Buffer.concat(chunks).toString("utf8")))
  )
}

/** The provider's own words, shortened and in one line, since they may be a whole page. */
const excerpt = (text: string): string => text.replaceAll(/\s+/gu, " ").trim().slice(0, 300)

const retryAfter = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined) return undefined
  const parsed = Headers.parseRetryAfter(header)
  if (Result.isFailure(parsed)) return undefined
  const wait = Math.ceil(Duration.toMillis(Headers.retryAfterDelay(parsed.success, now)))
  return Math.min(wait, Number.MAX_SAFE_INTEGER)
}

const statusProblem = Effect.fnUntraced(function* (response: HttpClientResponse.HttpClientResponse) {
  const { status } = response
  const said = yield* Effect.orElseSucceed(bodyText(response), () => "")
  const detail = said === "" ? "" : `: ${excerpt(said)}`
  if (status === 429) {
    const wait = retryAfter(response.headers["retry-after"], yield* Clock.currentTimeMillis)
    const more = wait === undefined ? { status } : { status, retry_after_ms: wait }
    return problem("rate_limited", `the provider's rate limit is reached${detail}`, more)
  }
  const hint =
    status === 401 || status === 403
      ? " (is the model's secret right? choirctl secret set)"
      : status === 404
        ? " (are the model's endpoint and name right?)"
        : ""
  return problem("http", `the provider answered ${status}${hint}${detail}`, { status })
})

const interpret = Effect.fnUntraced(function* (text: string) {
  const reply = yield* decodeReply(text).pipe(
    Effect.mapError(() => problem("malformed", `the answer is no chat completion: ${excerpt(text)}`))
  )
  const { finish_reason, message } = reply.choices[0]
  const calls = message.tool_calls ?? []
  if (finish_reason === "content_filter")
    return yield* Effect.fail(problem("content_filter", "the provider's content filter stopped the answer"))
  if (calls.length > MODEL_TOOL_CALLS_MAX)
    return yield* Effect.fail(
      problem("malformed", `${calls.length} tool calls in one answer; ${MODEL_TOOL_CALLS_MAX} are allowed`)
    )
  const large = calls.find((call) => Buffer.byteLength(call.function.arguments) > MODEL_TOOL_ARGUMENT_BYTES_MAX)
  if (large !== undefined)
    return yield* Effect.fail(
      problem("too_large", `the arguments of ${large.function.name.slice(0, 64)} are too large`)
    )
  const content = message.content ?? ""
  if (calls.length === 0 && content.trim() === "")
    return yield* Effect.fail(problem("malformed", "the answer has neither text nor tool calls"))
  const tool_calls = calls.map((call) => {
    const parsed = decodeJson(call.function.arguments === "" ? "{}" : call.function.arguments)
    const isUsable = Result.isSuccess(parsed) && !isDeeperThan(parsed.success, MODEL_TOOL_ARGUMENT_DEPTH_MAX)
    return {
      name: call.function.name.slice(0, 128),
      input: isUsable ? parsed.success : call.function.arguments
    }
  })
  return { content, tool_calls, finish_reason: (finish_reason ?? "stop").slice(0, 64), usage: reply.usage ?? undefined }
})

const make = Effect.fnUntraced(function* () {
  const http = yield* HttpClient.HttpClient
  const secrets = yield* SecretStore
  const settings = yield* AgentSettings

  const post = Effect.fnUntraced(function* (model: Model, body: string) {
    const key = model.secret === undefined ? undefined : yield* secrets.get(model.secret)
    const bare = HttpClientRequest.post(`${model.endpoint.replace(/\/+$/u, "")}/chat/completions`).pipe(
      HttpClientRequest.bodyText(body, "application/json"),
      HttpClientRequest.acceptJson
    )
    const request = key === undefined ? bare : HttpClientRequest.bearerToken(bare, Redacted.value(key))
    const response = yield* http
      .execute(request)
      .pipe(
        Effect.mapError((error) =>
          problem(
            "unreachable",
            `it cannot be reached at ${model.endpoint} (is it running, and is the endpoint in config.json right?): ${excerpt(error.message)}`
          )
        )
      )
    if (response.status < 200 || response.status > 299) return yield* Effect.fail(yield* statusProblem(response))
    return yield* Effect.flatMap(bodyText(response), interpret)
  })

  /** A provider may quote the request that it refuses; its words reach people and the log, the key must not. */
  const withoutKey = Effect.fnUntraced(function* (model: Model, error: ModelError) {
    const key = model.secret === undefined ? undefined : yield* secrets.get(model.secret)
    const value = key === undefined ? "" : Redacted.value(key)
    return value === "" ? error : { ...error, message: error.message.replaceAll(value, "<redacted>") }
  })

  /** One attempt of one model; its failure is part of the answer. */
  const attempt = Effect.fnUntraced(function* (
    name: string,
    messages: ReadonlyArray<ChatMessage>,
    tools: ReadonlyArray<ChatTool>
  ) {
    const started = yield* Clock.currentTimeMillis
    const model = settings.model(name)
    const body = model === undefined ? "" : requestBody(model, messages, tools)
    const outcome =
      model === undefined
        ? Result.fail(problem("http", "it is not configured"))
        : yield* Effect.result(
            post(model, body).pipe(
              Effect.scoped,
              Effect.catch((error) => Effect.flatMap(withoutKey(model, error), Effect.fail)),
              Effect.timeoutOrElse({
                duration: MODEL_TOTAL_MS_MAX,
                orElse: () =>
                  Effect.fail(problem("timeout", `no whole answer in ${MODEL_TOTAL_MS_MAX / 60_000} minutes`))
              })
            )
          )
    const latency_ms = Math.max(0, (yield* Clock.currentTimeMillis) - started)
    if (Result.isFailure(outcome)) {
      const error = { ...outcome.failure, message: `the model "${name}": ${outcome.failure.message}` }
      const usage = { input_tokens: 0, output_tokens: 0 }
      return { model: name, tool_calls: [], finish_reason: "error", usage, latency_ms, error } satisfies Completion
    }
    const { content, finish_reason, tool_calls, usage } = outcome.success
    const input_tokens = Math.max(reported(usage?.prompt_tokens), estimateTokens(body))
    const written = content + tool_calls.map((call) => JSON.stringify(call)).join("")
    const output_tokens = Math.max(reported(usage?.completion_tokens), estimateTokens(written))
    const price = model?.price
    const cost =
      price === undefined ? {} : { cost_usd: (input_tokens * price.input + output_tokens * price.output) / 1e6 }
    return {
      model: name,
      tool_calls,
      finish_reason,
      usage: { input_tokens, output_tokens, ...cost },
      latency_ms,
      ...(content === "" ? {} : { text: content })
    } satisfies Completion
  })

  const complete = Effect.fn("Llm.complete")(function* (
    name: string,
    messages: ReadonlyArray<ChatMessage>,
    tools: ReadonlyArray<ChatTool>,
    announce: (wait: Duration.Duration) => Effect.Effect<void>
  ) {
    let completion: Completion = yield* attempt(name, messages, tools)
    if (completion.error?.kind === "rate_limited") {
      const asked = completion.error.retry_after_ms ?? settings.current().config.rate_limit_retry_ms
      const wait = Duration.millis(Math.min(asked, MODEL_RETRY_AFTER_MS_MAX))
      yield* announce(wait)
      yield* Effect.sleep(wait)
      completion = yield* attempt(name, messages, tools)
    }
    for (const other of settings.model(name)?.fallback ?? []) {
      if (!mayFallBack(completion.error)) break
      yield* Effect.logWarning("a fallback model takes over", {
        from: completion.model,
        to: other,
        error: completion.error
      })
      completion = yield* attempt(other, messages, tools)
    }
    return completion
  })
  return Llm.of({ complete })
})

/** E9: what another provider may do better. A refused key or a malformed answer is for a person to see. */
const mayFallBack = (error: ModelError | undefined): boolean =>
  error !== undefined &&
  (error.kind === "rate_limited" ||
    error.kind === "timeout" ||
    error.kind === "unreachable" ||
    (error.kind === "http" && (error.status ?? 0) >= 500))

const requestBody = (
  { max_tokens, model, reasoning_effort, temperature }: Model,
  messages: ReadonlyArray<ChatMessage>,
  tools: ReadonlyArray<ChatTool>
): string =>
  JSON.stringify({
    model,
    messages,
    max_tokens,
    ...(temperature === null ? {} : { temperature }),
    ...(reasoning_effort === null ? {} : { reasoning_effort }),
    ...(tools.length === 0 ? {} : { tools })
  })
