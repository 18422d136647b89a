/**
 * Chat completions of an OpenAI-compatible endpoint (spec 21). What comes back is hostile input: sizes, counts and times are
 * capped, tool calls are structured or nothing, redirects are not followed. A failure is data: it becomes an event.
 */
import { Clock, Context, Duration, Effect, Layer, Redacted, Result, Schema, Stream } from "effect"
import { Headers, HttpClient, HttpClientRequest, type HttpClientResponse } from "effect/http"
import type { Model } from "#schema/Config.ts"
import type { ModelError, Usage } from "#schema/Event.ts"
import {
  MODEL_IDLE_MS_MAX,
  MODEL_REPLY_BYTES_MAX,
  MODEL_RETRY_AFTER_MS_MAX,
  MODEL_TOTAL_MS_MAX
} from "#src/shared/limits.ts"
import { AgentSettings } from "./AgentSettings.ts"
import {
  type ChatMessage,
  type ChatTool,
  reported,
  estimateTokens,
  problem,
  excerpt,
  interpret,
  requestBody
} from "./chatCompletion.ts"
import { SecretStore } from "./SecretStore.ts"

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
