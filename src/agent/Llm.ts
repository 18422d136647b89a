/**
 * Chat completions of an OpenAI-compatible endpoint (spec 21). What comes back is hostile input: sizes, counts and times are
 * capped, tool calls are structured or nothing, redirects are not followed. A failure is data: it becomes an event.
 */
import { Context, Duration, Effect, Layer, Redacted, Result, type Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import type { AgentConfig, Model } from "#schema/Config.ts"
import type { ModelError, Usage } from "#schema/Event.ts"
import { MODEL_RETRY_AFTER_MS_MAX, MODEL_TOTAL_MS_MAX } from "#src/shared/limits.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { boundModel } from "./AgentSettings.ts"
import {
  type ChatMessage,
  type ChatTool,
  reported,
  estimateTokens,
  problem,
  excerpt,
  interpret,
  type ParameterChanges,
  requestBody,
  requestParameters
} from "./chatCompletion.ts"
import { bodyText, statusProblem, statusWords } from "./modelResponse.ts"
import { withoutRefused } from "./refusedParameter.ts"
import { makeScrub } from "./scrub.ts"
import { SecretStore } from "./SecretStore.ts"

export interface Completion {
  /** The name of config.json that answered; a fallback's when one took over. */
  readonly model: string
  readonly text?: string
  readonly tool_calls: ReadonlyArray<{ readonly name: string; readonly input: Schema.Json }>
  readonly finish_reason: string
  readonly usage: Usage
  /** The prompt's tokens as the provider counted them; absent where it said nothing or nonsense. */
  readonly prompt_tokens?: number
  readonly latency_ms: number
  readonly error?: ModelError
}

/** What an attempt needs besides the prompt, taken once for a whole call: a switch meanwhile counts for the next one (R35, R58). */
interface Candidate {
  readonly name: string
  readonly model: Model
  readonly key: Redacted.Redacted | undefined
}

/** Asks models. */
export class Llm extends Context.Service<
  Llm,
  {
    /**
     * One completion by a model of `config`. After a 429 it announces the wait, obeys Retry-After up to a minute and asks once
     * more (R26); after that, or after a timeout or a 5xx, the model's fallbacks take over (E9). All attempts use `config` and
     * the secrets of the call's beginning (R35). Never fails: the last attempt's error is in the completion.
     */
    complete(
      model: string,
      messages: ReadonlyArray<ChatMessage>,
      tools: ReadonlyArray<ChatTool>,
      config: AgentConfig,
      announce: (wait: Duration.Duration) => Effect.Effect<void>
    ): Effect.Effect<Completion>
  }
>()("choir/agent/Llm") {
  static readonly layer = Layer.effect(
    Llm,
    Effect.suspend(() => make())
  )
}

/** A provider may quote the request that it refuses; its words reach people and the log, the key must not, nor a part of it. */
const withoutKey = ({ key }: Candidate) => makeScrub(key === undefined ? [] : [Redacted.value(key)])

/** Tokens and money of an attempt that was read to its end, or that a provider probably worked for. */
const usageOf = ({ price }: Model, input_tokens: number, output_tokens: number): Usage => ({
  input_tokens,
  output_tokens,
  ...(price === undefined ? {} : { cost_usd: (input_tokens * price.input + output_tokens * price.output) / 1e6 })
})

const make = Effect.fnUntraced(function* () {
  const http = yield* HttpClient.HttpClient
  const secrets = yield* SecretStore
  // By endpoint and model, of which a configuration has few.
  const refusedParameters = new Map<string, ParameterChanges>()

  const post = Effect.fnUntraced(function* (candidate: Candidate, body: string) {
    const { key, model } = candidate
    // Without its key it would be asked as a stranger, and the answer would blame the wrong thing.
    if (key === undefined && model.secret !== undefined)
      return yield* Effect.fail(
        problem(
          "http",
          `its secret "${model.secret}" has no value any more; the operator can set it: choirctl secret set`
        )
      )
    const redact = withoutKey(candidate)
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
            `it cannot be reached at ${model.endpoint} (is it running, and is the endpoint in config.json right?): ${excerpt(redact(error.message))}`
          )
        )
      )
    if (response.status === 400) {
      const said = yield* Effect.orElseSucceed(bodyText(response), () => "")
      return { refused: said, problem: statusWords(400, redact(said)) }
    }
    if (response.status < 200 || response.status > 299)
      return yield* Effect.fail(yield* statusProblem(response, redact))
    return yield* interpret(yield* bodyText(response), redact)
  })

  /** Asks again without each parameter that the provider names as the one it refuses; what it refused once is not sent any more. */
  const negotiated = Effect.fnUntraced(function* (
    candidate: Candidate,
    messages: ReadonlyArray<ChatMessage>,
    tools: ReadonlyArray<ChatTool>
  ) {
    const { model, name } = candidate
    const kind = `${model.endpoint} ${model.model}`
    while (true) {
      const changes = refusedParameters.get(kind) ?? new Map<string, string | undefined>()
      const answer = yield* post(candidate, requestBody(model, messages, tools, changes))
      if (!("refused" in answer)) return answer
      const sent = requestParameters(model, changes).map(([key]) => key)
      const next = withoutRefused(answer.refused, sent, changes)
      if (next === undefined) return yield* Effect.fail(answer.problem)
      refusedParameters.set(kind, next.changes)
      yield* Effect.logWarning(
        `the model "${name}" refuses the parameter ${next.parameter}; it is left out from here on`,
        {
          parameter: next.parameter,
          instead: next.changes.get(next.parameter)
        }
      )
    }
  })

  /** One attempt of one model; its failure is part of the answer. */
  const attempt = Effect.fnUntraced(function* (
    candidate: Candidate,
    messages: ReadonlyArray<ChatMessage>,
    tools: ReadonlyArray<ChatTool>
  ) {
    const { model, name } = candidate
    const started = yield* monotonicMs
    const body = requestBody(model, messages, tools)
    const outcome = yield* Effect.result(
      negotiated(candidate, messages, tools).pipe(
        Effect.scoped,
        Effect.timeoutOrElse({
          duration: MODEL_TOTAL_MS_MAX,
          orElse: () => Effect.fail(problem("timeout", `no whole answer in ${MODEL_TOTAL_MS_MAX / 60_000} minutes`))
        })
      )
    )
    const latency_ms = (yield* monotonicMs) - started
    if (Result.isFailure(outcome)) {
      const { failure } = outcome
      const usage = usageOf(model, mayBeBilled(failure.kind) ? estimateTokens(body.length) : 0, 0)
      return failed(name, { ...failure, message: `the model "${name}": ${failure.message}` }, usage, latency_ms)
    }
    const { content, finish_reason, tool_calls, usage } = outcome.success
    const prompt_tokens = reported(usage?.prompt_tokens)
    const written = content + tool_calls.map((call) => JSON.stringify(call)).join("")
    return {
      model: name,
      // A provider has the key, and others may have told it more: what it says is shown to people, and to tools (R32).
      tool_calls: tool_calls.map((call) => secrets.scrubJson(call)),
      finish_reason,
      usage: usageOf(
        model,
        Math.max(prompt_tokens, estimateTokens(body.length)),
        Math.max(reported(usage?.completion_tokens), estimateTokens(written.length))
      ),
      latency_ms,
      ...(prompt_tokens === 0 ? {} : { prompt_tokens }),
      ...(content === "" ? {} : { text: secrets.scrub(content) })
    } satisfies Completion
  })

  /** The model and its fallbacks as they are now; those that the agent is not bound to are left out. */
  const candidates = Effect.fnUntraced(function* (config: AgentConfig, name: string) {
    const names = [name, ...(boundModel(config, name)?.fallback ?? [])]
    const found = yield* Effect.forEach(names, (name) => {
      const model = boundModel(config, name)
      if (model === undefined) return Effect.succeed([])
      const key = model.secret === undefined ? Effect.undefined : secrets.get(model.secret)
      return Effect.map(key, (key): ReadonlyArray<Candidate> => [{ name, model, key }])
    })
    return found.flat()
  })

  const complete = Effect.fn("Llm.complete")(function* (
    name: string,
    messages: ReadonlyArray<ChatMessage>,
    tools: ReadonlyArray<ChatTool>,
    config: AgentConfig,
    announce: (wait: Duration.Duration) => Effect.Effect<void>
  ) {
    const [first, ...others] = yield* candidates(config, name)
    if (first === undefined) return failed(name, problem("http", `the model "${name}" is not configured`), NO_USAGE, 0)
    let completion: Completion = yield* attempt(first, messages, tools)
    if (completion.error?.kind === "rate_limited") {
      const asked = completion.error.retry_after_ms ?? config.rate_limit_retry_ms
      const wait = Duration.millis(Math.min(asked, MODEL_RETRY_AFTER_MS_MAX))
      yield* announce(wait)
      yield* Effect.sleep(wait)
      completion = yield* attempt(first, messages, tools)
    }
    for (const other of others) {
      if (!mayFallBack(completion.error)) break
      yield* Effect.logWarning("a fallback model takes over", {
        from: completion.model,
        to: other.name,
        error: completion.error
      })
      completion = yield* attempt(other, messages, tools)
    }
    return completion
  })
  return Llm.of({ complete })
})

const NO_USAGE: Usage = { input_tokens: 0, output_tokens: 0 }

const failed = (model: string, error: ModelError, usage: Usage, latency_ms: number): Completion => ({
  model,
  tool_calls: [],
  finish_reason: "error",
  usage,
  latency_ms,
  error
})

/** Whether the provider read the prompt before it failed, so that a loop of such answers reaches the budget's end. */
const mayBeBilled = (kind: ModelError["kind"]): boolean =>
  kind === "malformed" || kind === "too_large" || kind === "content_filter" || kind === "timeout"

/** E9: what another provider may do better. A refused key or a malformed answer is for a person to see. */
const mayFallBack = (error: ModelError | undefined): boolean =>
  error !== undefined &&
  (error.kind === "rate_limited" ||
    error.kind === "timeout" ||
    error.kind === "unreachable" ||
    (error.kind === "http" && (error.status ?? 0) >= 500))
