/**
 * Models behind the three APIs: one call with its retry after a rate limit and its fallback models. The response is
 * hostile input: sizes, counts and times are capped, tool calls are structured or nothing, redirects are not followed. A failure is data:
 * it becomes an event.
 */
import { Context, Duration, Effect, Layer, Result } from "effect"
import { HttpClient } from "effect/http"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { Model } from "#schema/Config.ts"
import type { Continuation } from "#schema/Continuation.ts"
import type { ModelError, Usage } from "#schema/Event.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { type AnsweredCall, problem } from "#src/shared/model/Answer.ts"
import type { Asked } from "#src/shared/model/Asked.ts"
import { continuationOf } from "#src/shared/model/continuation.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"
import { isPassing } from "#src/shared/model/passing.ts"
import { shownSize } from "#src/shared/model/pictures.ts"
import type { PictureData } from "#src/shared/model/Asked.ts"
import { outputTokensMax } from "#src/shared/model/requestParameters.ts"
import { CHARS_A_TOKEN, NO_USAGE, sumOfUsage, usageOf } from "#src/shared/model/usage.ts"
import { withServices } from "#src/shared/withServices.ts"
import { boundModel } from "#src/agent/settings/AgentSettings.ts"
import { meantCalls } from "./meantCalls.ts"
import { type Heard, OVERLOADED, type RequestFailed } from "./modelRequest.ts"
import { type Candidate, negotiate, type Prompt, Refusals } from "./negotiate.ts"
import { makeRequestBodies, RequestBodies } from "./RequestBodies.ts"
import { makeVisibleText } from "./visibleText.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"

/** How long a whole answer may take. */
export const MODEL_TOTAL_MS_MAX = 600_000
/**
 * Output tokens that a model is taken to write in a second where nobody knows how many it wrote: above what models that think reach, so
 * that a call that ended early is rather counted too high (D28).
 */
export const OUTPUT_TOKENS_PER_SECOND_MAX = 300
/** The wait for an overloaded model without a fallback, whose provider does not say when to come back. */
const OVERLOADED_RETRY_MS = 5000
/** The longest Retry-After that is obeyed (R26). */
const MODEL_RETRY_AFTER_MS_MAX = 60_000

export interface Completion {
  /** The name of config.json that answered; a fallback's when one took over. */
  readonly model: string
  readonly text?: string
  readonly tool_calls: ReadonlyArray<AnsweredCall>
  readonly finish_reason: string
  /** The reasoning behind the calls, for the model that wrote it. */
  readonly continuation?: Continuation
  /** Of all attempts together that a provider may have worked for. */
  readonly usage: Usage
  /** The prompt's tokens as the provider counted them; absent where it said nothing or nonsense. */
  readonly prompt_tokens?: number
  readonly latency_ms: number
  readonly error?: ModelError
}

/** The possible cost of a call that was interrupted before its end. */
export type Unanswered = Pick<Completion, "latency_ms" | "model" | "usage">

/** A step of an answer for those who watch it being written: no secret is in it, and no thought. */
export type Spoken =
  /** A model begins to answer; what was said before, by an earlier attempt or as thoughts, is void. */
  | { readonly type: "begin"; readonly model: string }
  | { readonly type: "thinking" }
  | { readonly type: "call"; readonly name: string }
  | { readonly type: "text"; readonly text: string }

/** The listeners of a call that has not ended, and what its prompts have in common with those before. */
export interface Asking {
  announce(wait: Duration.Duration): Effect.Effect<void>
  /** Takes what an interrupted call may have cost, before the interruption is done. */
  interrupted?(cost: Unanswered): Effect.Effect<void>
  /** Takes the answer while it comes; the call waits for it. */
  heard?(step: Spoken): Effect.Effect<void>
  /** Names the prompts that begin alike, for the caches of providers. */
  readonly cache_key?: string
  /** The bytes of the pictures in the messages. */
  readonly pictures?: PictureData
}

/** Sends a conversation to a model of the configuration, with retries and fallback models, and returns one answer or one error. */
export class Llm extends Context.Service<
  Llm,
  {
    /**
     * One completion by a model of `config`. A connection that broke before any byte of an answer is tried once more. After a 429, or a 503
     * or 529 that says when to come back, it announces the wait, obeys Retry-After up to a minute and asks once
     * more (R26), and so it does 5 s after a 503 or 529 that does not say when, if the model has no fallback; after that, or after a timeout or a 5xx, the model's fallbacks take over (E9). All attempts use `config` and
     * the secrets of the call's beginning (R35). Never fails: the last attempt's error is in the completion.
     */
    complete(
      model: string,
      messages: ReadonlyArray<Message>,
      tools: ReadonlyArray<Tool>,
      config: AgentConfig,
      asking: Asking
    ): Effect.Effect<Completion>
  }
>()("choir/agent/Llm") {
  static readonly layer = Layer.effect(
    Llm,
    Effect.gen(function* () {
      // Only these: a caller's loggers and spans stay as they are.
      const services = Context.pick(
        HttpClient.HttpClient,
        SecretStore
      )(yield* Effect.context<HttpClient.HttpClient | SecretStore>())
      const known = withServices(
        services.pipe(Context.add(Refusals, new Map()), Context.add(RequestBodies, makeRequestBodies()))
      )
      return Llm.of({ complete: (...asked) => known(complete(...asked)) })
    })
  )
}

/** Puts on a call's bill what one attempt cost, or may cost: the characters that were sent and that came back, and the provider's count. */
type Bill = (...attempted: Parameters<typeof usageOf>) => void

/** The most characters that a model may have written in a time. */
const writtenIn = (model: Model, ms: number): number =>
  CHARS_A_TOKEN * Math.min(outputTokensMax(model), Math.ceil((ms * OUTPUT_TOKENS_PER_SECOND_MAX) / 1000))

/** One attempt's part of a completion; what all attempts cost is counted apart. */
type Attempt = Omit<Completion, "usage">

const tooLate = problem("timeout", `no complete answer within ${MODEL_TOTAL_MS_MAX / 60_000} minutes`)

/** Passes on what may be heard of one attempt. */
const listening = Effect.fnUntraced(function* (model: string, heard: Asking["heard"]) {
  if (heard === undefined) return () => Effect.void
  const secrets = yield* SecretStore
  let isTakenBack = false
  const visible = makeVisibleText(secrets, () => (isTakenBack = true))
  yield* heard({ type: "begin", model })
  const listen: Heard = (delta) => {
    if (delta.type === "call") return heard({ type: "call", name: secrets.scrub(delta.name.slice(0, 128)) })
    if (delta.type === "thinking") return heard(delta)
    isTakenBack = false
    const text = visible(delta.text)
    const say = text === "" ? Effect.void : heard({ type: "text", text })
    return isTakenBack ? Effect.andThen(heard({ type: "begin", model }), say) : say
  }
  return listen
})

/** One attempt of one model; its failure is part of the answer, and its possible cost is added to the bill. */
const attempt = Effect.fnUntraced(function* (candidate: Candidate, prompt: Prompt, bill: Bill, heard: Asking["heard"]) {
  const secrets = yield* SecretStore
  const { model, name } = candidate
  const started = yield* monotonicMs
  const listen = yield* listening(name, heard)
  let sent = started
  /** Characters that the provider reads of the newest request; pictures count as their tokens do. */
  let asked = 0
  const sending = (request: Asked, chars: number) =>
    Effect.map(monotonicMs, (now) => {
      const shown = shownSize(request)
      asked = chars - shown.chars + CHARS_A_TOKEN * shown.tokens
      sent = now
    })
  /** Bills a request without a whole answer: the provider may have written all the while, and what it writes for itself never comes. */
  const billUnfinished = (came: number) =>
    Effect.map(monotonicMs, (now) => bill(model, asked, Math.max(came, writtenIn(model, now - sent))))
  const outcome = yield* Effect.result(
    negotiate(candidate, prompt, sending, billUnfinished(0), listen).pipe(
      Effect.scoped,
      Effect.timeoutOrElse({
        duration: MODEL_TOTAL_MS_MAX,
        orElse: () => Effect.fail<RequestFailed>({ error: tooLate, answered: 0, unfinished: true })
      }),
      Effect.onInterrupt(() => billUnfinished(0))
    )
  )
  const latency_ms = (yield* monotonicMs) - started
  if (Result.isFailure(outcome)) {
    const { answered, error, unfinished } = outcome.failure
    // What came may be a page of nonsense that no model wrote.
    const came = Math.min(answered ?? 0, CHARS_A_TOKEN * outputTokensMax(model))
    if (unfinished === true) yield* billUnfinished(came)
    // Where no answer began, the price is known to be none.
    else bill(model, answered === undefined ? 0 : asked, came)
    return failed(name, { ...error, message: `the model "${name}": ${error.message}` }, latency_ms)
  }
  const { content, finish_reason, reasoning, tool_calls, usage } = outcome.success
  const written = content + tool_calls.map((call) => JSON.stringify(call)).join("")
  bill(model, asked, written.length, usage)
  // Reasoning cannot be changed. One that quotes a secret is forgotten (R32).
  const continuation = reasoning === secrets.scrub(reasoning ?? "") ? continuationOf(model, reasoning) : undefined
  return {
    model: name,
    // A provider has the key, and others may have told it more: what it says is shown to people, and to tools (R32).
    tool_calls: meantCalls(tool_calls, prompt.tools).map((call) => ({
      ...call,
      name: secrets.scrub(call.name),
      input: secrets.scrubJson(call.input)
    })),
    finish_reason,
    latency_ms,
    ...(usage === undefined || usage.input === 0 ? {} : { prompt_tokens: usage.input }),
    ...(continuation === undefined ? {} : { continuation }),
    ...(content === "" ? {} : { text: secrets.scrub(content) })
  } satisfies Attempt
})

/** The model and its fallbacks as they are now, without those that the agent is not bound to. */
const candidates = Effect.fnUntraced(function* (config: AgentConfig, name: string) {
  const secrets = yield* SecretStore
  const own = new Set(config.own_addresses ?? [])
  const names = [name, ...(boundModel(config, name)?.fallback ?? [])]
  const found = yield* Effect.forEach(names, (name) => {
    const model = boundModel(config, name)
    if (model === undefined) return Effect.succeed([])
    const key = model.secret === undefined ? Effect.undefined : secrets.get(model.secret)
    return Effect.map(key, (key): ReadonlyArray<Candidate> => [{ name, model, key, own }])
  })
  return found.flat()
})

/** The wait for a limited or overloaded provider before it is asked once more; undefined where nothing is won by a wait. */
const waitFor = (
  error: ModelError | undefined,
  config: AgentConfig,
  fallbacks: number
): Duration.Duration | undefined => {
  if (error === undefined) return undefined
  // A fallback answers sooner than a provider that does not say when it is back.
  const overloaded = fallbacks === 0 && OVERLOADED.has(error.status ?? 0) ? OVERLOADED_RETRY_MS : undefined
  const asked = error.kind === "rate_limited" ? (error.retry_after_ms ?? config.rate_limit_retry_ms) : overloaded
  return asked === undefined ? undefined : Duration.millis(Math.min(asked, MODEL_RETRY_AFTER_MS_MAX))
}

/** One model, once more after a rate limit or while it is overloaded, then its fallbacks. */
const attemptAll = Effect.fnUntraced(function* (
  first: Candidate,
  others: ReadonlyArray<Candidate>,
  prompt: Prompt,
  config: AgentConfig,
  { announce, heard }: Asking,
  bill: Bill
) {
  let completion: Attempt = yield* attempt(first, prompt, bill, heard)
  const wait = waitFor(completion.error, config, others.length)
  if (wait !== undefined) {
    yield* announce(wait)
    yield* Effect.sleep(wait)
    completion = yield* attempt(first, prompt, bill, heard)
  }
  const cause = completion.error
  for (const other of others) {
    if (!mayFallBack(completion.error)) break
    yield* Effect.logWarning("a fallback model takes over", {
      from: completion.model,
      to: other.name,
      error: completion.error
    })
    completion = yield* attempt(other, prompt, bill, heard)
  }
  if (cause === undefined || completion.error === undefined || completion.model === first.name) return completion
  // A fallback that is itself wrong must not hide why it was asked, nor that the first model may be back.
  const { error } = completion
  const kept = isPassing(cause) ? cause : error
  return { ...completion, error: { ...kept, message: `${cause.message}; then ${error.message}` } }
})

const complete = Effect.fnUntraced(function* (
  name: string,
  messages: ReadonlyArray<Message>,
  tools: ReadonlyArray<Tool>,
  config: AgentConfig,
  asking: Asking
) {
  const began = yield* monotonicMs
  const [first, ...others] = yield* candidates(config, name)
  const { cache_key, pictures } = asking
  const prompt = {
    messages,
    tools,
    ...(cache_key === undefined ? {} : { cache_key }),
    ...(pictures === undefined ? {} : { pictures })
  }
  let usage: Usage = NO_USAGE
  const bill: Bill = (...attempted) => {
    usage = sumOfUsage(usage, usageOf(...attempted))
  }
  if (first === undefined)
    return { ...failed(name, problem("http", `the model "${name}" is not configured`), 0), usage }
  const attempts = Effect.map(attemptAll(first, others, prompt, config, asking, bill), (completion) => ({
    ...completion,
    usage
  }))
  const reportCost = Effect.flatMap(monotonicMs, (now) =>
    usage.input_tokens + usage.output_tokens === 0
      ? Effect.void
      : (asking.interrupted?.({ model: name, usage, latency_ms: now - began }) ?? Effect.void)
  )
  return yield* Effect.onInterrupt(attempts, () => reportCost)
})

const failed = (model: string, error: ModelError, latency_ms: number): Attempt => ({
  model,
  tool_calls: [],
  finish_reason: "error",
  latency_ms,
  error
})

/** E9: what another provider may do better. A refused key or a malformed answer is for a person to see. */
const mayFallBack = (error: ModelError | undefined): boolean =>
  error !== undefined && (isPassing(error) || (error.kind === "http" && error.status === 429))
