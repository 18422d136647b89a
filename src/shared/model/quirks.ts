/**
 * The differences between providers and families of models within one API, as one table: agents write requests by it, `choirctl model test` tries
 * them, and a load of config.json warns by it. What the table does not know is learned from a 400 (`requestParameters.ts`).
 */
import { weakMemoize } from "#src/shared/weakMemoize.ts"
import type { ModelApi } from "#schema/Continuation.ts"
import { CONTEXT_WINDOW_DEFAULT, type Model, TEMPERATURE_DEFAULT } from "#schema/Config.ts"

export interface Quirks {
  /** The key that limits the tokens of an answer. */
  readonly limit: "max_tokens" | "max_completion_tokens" | "max_output_tokens"
  readonly temperature: boolean
  /** How a reasoning effort is said; `none` is the only one that the model takes beside tools, `alone` has to be left out beside tools. */
  readonly effort: "reasoning_effort" | "reasoning" | "adaptive" | "budget" | "none" | "alone" | "refused"
  /** Whether a stream has to be asked for its usage, and may be. */
  readonly stream_options: boolean
  /** `short` are nine letters and digits. */
  readonly call_ids: "any" | "short"
  /** `joined`: no two messages of the assistant in a row. `answered`: no message of the user right behind a result. */
  readonly turns: "free" | "joined" | "answered"
  /** Where a call has to bring reasoning, even one whose reasoning nobody has. */
  readonly reasoning: "optional" | "reasoning_content" | "reasoning_details" | "thought_signature"
  readonly cache: "none" | "key" | "breakpoints"
  readonly key: "bearer" | "x-api-key"
  /** Whether reasoning can be asked for in encrypted form. */
  readonly encrypted: boolean
  /** Whether a turn that began without thinking has to continue without it. */
  readonly unbroken: boolean
  /** Whether the model takes images; where nothing is known, it is not shown any. */
  readonly images: "taken" | "refused" | "unknown"
  /** The room for an answer where config.json says nothing: no more than each model of the family writes. */
  readonly answer_tokens: number
}

/** The parts of a model's entry that the table looks at. */
export type Named = Pick<Model, "endpoint" | "model"> & Partial<Pick<Model, "api" | "provider">>

interface Row {
  readonly api?: ModelApi
  /** Host of the endpoint, or provider by its label, as one behind a proxy has it. */
  readonly service?: Service
  readonly model?: RegExp
  readonly has: Partial<Quirks>
}

interface Service {
  readonly host: RegExp
  readonly label: string
}

const OPENAI: Service = { host: /^(?:api\.openai\.com|[^.]+\.openai\.azure\.com)$/u, label: "openai" }
const OPENROUTER: Service = { host: /^openrouter\.ai$/u, label: "openrouter" }

/** GPT-5 and the o-series think always, and take the newer name of the limit alone. */
const THINKS_ALWAYS = /(?:^|\/)(?:gpt-[5-9](?!.*chat)|o[134](?:-|$))/iu
/** These think in tokens of their own choice; a budget is refused from 4.7 on. */
const ADAPTIVE = /(?:^|\/)claude-(?:[a-z]+-(?:4[.-](?:[6-9]|\d\d)(?!\d)|[5-9])|mythos)/iu
/** Opus from 4.7 on, and every Claude from 5 on. */
const REFUSES_TEMPERATURE = /(?:^|\/)claude-(?:opus-4[.-](?:[7-9]|\d\d)(?!\d)|[a-z]+-[5-9]|mythos)/iu
/** Ollama where it usually is. */
const OLLAMA = /^https?:\/\/[^/]*:11434(?:\/|$)/u
const KIMI_THINKS = /(?:^|\/)kimi-(?:k2(?:\.[5-9]|-thinking)|k[3-9]|thinking|latest)/iu
const MISTRAL = /(?:^|\/)(?:mi(?:s|nis)tral|magistral|codestral|devstral|pixtral)/iu

/** Families that are known to take images, and those that are known to refuse them. */
const SEES =
  /(?:^|\/)(?:gpt-(?:4o|4\.[15]|4-turbo|[5-9])|chatgpt-4o|o[134](?:-|$)|claude-|gemini-|gemma-3|kimi-(?:k2\.[5-9]|k[3-9]|latest)|qwen3\.[5-9]|llama-4|grok-[4-9]|pixtral|mistral-(?:medium|small|large)-(?:latest|2[5-9]|3)|llava)|(?:^|[-_])(?:vl|vision)(?:[-_:]|$)/iu
const BLIND =
  /(?:^|\/)(?:gpt-3|gpt-4(?:-0|-1106|-32k|$)|gpt-oss|o1-mini|o1-preview|o3-mini|claude-(?:2|instant)|deepseek-|kimi-k2(?!\.)|codestral|devstral|qwen[\d.]*-coder|offline-model$)/iu

/** Room for an answer of models that write and think at length. */
export const LONG_ANSWER_TOKENS = 16_000
/** For those that write at most 8,192, and for models that nobody knows: enough to think a little and write a file. */
const SHORT_ANSWER_TOKENS = 8000
/** For those that write at most 4,096, and for small contexts. */
const LEAST_ANSWER_TOKENS = 4096
/** The share of a context that an answer takes at most where config.json does not say. */
const ANSWER_SHARE_MAX = 1 / 4

/** Later rows win. */
const TABLE: ReadonlyArray<Row> = [
  { api: "responses", has: { limit: "max_output_tokens", effort: "reasoning" } },
  { api: "responses", model: /(?:^|\/)(?:gpt-[34]|chatgpt-4|gpt-5.*chat)/iu, has: { encrypted: false } },
  { api: "messages", has: { effort: "budget", cache: "breakpoints", key: "x-api-key" } },
  { model: /claude/iu, has: { unbroken: true } },
  { model: ADAPTIVE, has: { unbroken: false } },
  { api: "messages", model: ADAPTIVE, has: { effort: "adaptive" } },
  { api: "messages", service: OPENROUTER, has: { key: "bearer" } },
  { api: "chat", service: OPENAI, has: { limit: "max_completion_tokens" } },
  { api: "chat", model: THINKS_ALWAYS, has: { limit: "max_completion_tokens" } },
  { service: OPENAI, has: { cache: "key" } },
  { api: "chat", service: OPENROUTER, has: { effort: "reasoning" } },
  { api: "chat", model: /(?:^|\/)anthropic\//iu, has: { cache: "breakpoints" } },
  { api: "chat", service: OPENROUTER, model: /claude/iu, has: { cache: "breakpoints" } },
  { api: "chat", model: /^gpt-5\.[45](?!\d)/iu, has: { effort: "alone" } },
  { api: "chat", model: /^gpt-(?:5\.(?:[6-9]|\d\d)|[6-9])/iu, has: { effort: "none" } },
  { model: THINKS_ALWAYS, has: { temperature: false } },
  { model: REFUSES_TEMPERATURE, has: { temperature: false } },
  { model: KIMI_THINKS, has: { temperature: false } },
  { api: "chat", model: /^(?:kimi|moonshot)-/iu, has: { effort: "refused" } },
  { api: "chat", model: /^(?:deepseek|glm)-/iu, has: { reasoning: "reasoning_content" } },
  {
    api: "chat",
    model: /^kimi-(?:k2(?:\.[5-9]|-thinking)|k[3-9]|thinking|latest)/iu,
    has: { reasoning: "reasoning_content" }
  },
  { api: "chat", model: /^gemini-/iu, has: { turns: "joined" } },
  { api: "chat", model: /^gemini-(?:[3-9]|\d\d)/iu, has: { reasoning: "thought_signature" } },
  { api: "chat", model: /^google\/gemini-(?:[3-9]|\d\d)/iu, has: { reasoning: "reasoning_details" } },
  { model: SEES, has: { images: "taken" } },
  { model: BLIND, has: { images: "refused" } },
  // The limits of answers below are those of the makers' own services in models.dev (commit f3fc6922, July 2026), unless another place is named.
  // 32,000 (Opus 4, 4.1), 64,000 (Sonnet 4 and 4.6, all of 4.5) and 128,000 (later ones): https://docs.claude.com/en/docs/about-claude/models/overview
  { model: /(?:^|\/)claude-(?:[a-z]+-[4-9]|mythos)/iu, has: { answer_tokens: LONG_ANSWER_TOKENS } },
  // 128,000 (GPT-5), 100,000 (o1, o3, o4-mini), 65,536 (o1-mini) and 32,768 (o1-preview); the chat models, with 16,384, are not in the family: gpt-tokenizer 4.0.0, src/model
  { model: THINKS_ALWAYS, has: { answer_tokens: LONG_ANSWER_TOKENS } },
  // 65,535, of models that speak 16,384: https://ai.google.dev/gemini-api/docs/models
  { model: /(?:^|\/)gemini-(?:2\.5|[3-9])/iu, has: { answer_tokens: LONG_ANSWER_TOKENS } },
  // 262,144; of other hosts some allow 16,384
  { model: KIMI_THINKS, has: { answer_tokens: LONG_ANSWER_TOKENS } },
  // 384,000 (V4); of V3 8,192 without thinking and 65,536 with it, and many hosts still have it: https://api-docs.deepseek.com/quick_start/pricing
  { model: /(?:^|\/)deepseek-/iu, has: { answer_tokens: SHORT_ANSWER_TOKENS } },
  { model: /(?:^|\/)deepseek-(?:reasoner|v[4-9])/iu, has: { answer_tokens: LONG_ANSWER_TOKENS } },
  // 16,384 and more, Codestral 4,096
  { model: MISTRAL, has: { answer_tokens: LONG_ANSWER_TOKENS } },
  { model: /(?:^|\/)(?:codestral|command-r)/iu, has: { answer_tokens: LEAST_ANSWER_TOKENS } },
  // 8,192 (Qwen3 8B and 14B, QwQ), and 65,536 from 3.5 on
  { model: /(?:^|\/)(?:qwen-?3|qwq)/iu, has: { answer_tokens: SHORT_ANSWER_TOKENS } },
  { model: /(?:^|\/)qwen-?3\.[5-9]/iu, has: { answer_tokens: LONG_ANSWER_TOKENS } },
  // 131,072 with the prompt, of which some hosts allow 16,384: gpt-tokenizer 4.0.0, src/model
  { model: /(?:^|\/)gpt-oss/iu, has: { answer_tokens: LONG_ANSWER_TOKENS } },
  // 98,304 (4.5), 131,072 (from 4.6 on), 32,768 (4.6V) and 16,384 (4.5V)
  { model: /(?:^|\/)glm-(?:4\.[5-9]|[5-9])/iu, has: { answer_tokens: LONG_ANSWER_TOKENS } },
  // 8,192: https://huggingface.co/google/gemma-3-27b-it
  { model: /(?:^|\/)gemma-?[34]/iu, has: { answer_tokens: SHORT_ANSWER_TOKENS } },
  // 4,096: Llama by its maker's service, GPT-3.5, GPT-4 up to Turbo and the first GPT-4o (gpt-tokenizer 4.0.0, src/model), Claude 2 and the first of Claude 3
  {
    model:
      /(?:^|\/)(?:(?:meta-)?llama|gpt-3|gpt-4(?:-|$)|gpt-4o-2024-05|claude-(?:2|instant|3-(?:opus|sonnet|haiku)))/iu,
    has: { answer_tokens: LEAST_ANSWER_TOKENS }
  },
  { api: "chat", model: MISTRAL, has: { call_ids: "short", turns: "answered", stream_options: false } }
]

const USUAL: Quirks = {
  limit: "max_tokens",
  temperature: true,
  effort: "reasoning_effort",
  stream_options: true,
  call_ids: "any",
  turns: "free",
  reasoning: "optional",
  cache: "none",
  key: "bearer",
  encrypted: true,
  unbroken: false,
  images: "unknown",
  answer_tokens: SHORT_ANSWER_TOKENS
}

/** An address that is being typed may be none. */
const hostOf = (endpoint: string): string => (URL.canParse(endpoint) ? new URL(endpoint).hostname : "")

const isAt = ({ endpoint, provider }: Named, { host, label }: Service): boolean =>
  host.test(hostOf(endpoint)) || provider?.toLowerCase() === label

const lookedUp = (named: Named): Quirks =>
  Object.assign(
    {},
    USUAL,
    ...TABLE.filter(
      ({ api, model, service }) =>
        (api === undefined || api === (named.api ?? "chat")) &&
        (service === undefined || isAt(named, service)) &&
        (model === undefined || model.test(named.model))
    ).map(({ has }) => has)
  ) as Quirks

/** The row of a model's entry. Each request asks for it several times, so that an entry is looked up once. */
export const quirksOf = weakMemoize(lookedUp)

/** The tokens that an answer may have, as config.json says or as the table does, which leaves small contexts room for a prompt. */
export const answerTokensOf = (model: Model): number =>
  model.max_tokens ??
  Math.min(
    quirksOf(model).answer_tokens,
    Math.max(LEAST_ANSWER_TOKENS, Math.floor(model.context_window * ANSWER_SHARE_MAX))
  )

/** The least of `max_tokens` with which a model that thinks by a budget does think: half for the thoughts, half for the answer. */
const THINKING_MAX_TOKENS_MIN = 2048

/** A key of a model's entry that does less than it says, or that keeps every request from being answered. */
export interface QuirkWarning {
  readonly key: keyof Model
  readonly message: string
}

/** The objections of the table to a model's entry. */
export const quirkWarnings = (model: Model): ReadonlyArray<QuirkWarning> => {
  const { api, context_window, endpoint, reasoning_effort, temperature } = model
  const max_tokens = answerTokensOf(model)
  const host = hostOf(endpoint)
  const { effort, images, temperature: takesTemperature } = quirksOf(model)
  const thinks = reasoning_effort !== null && reasoning_effort !== "none"
  const isAnthropic = host === "api.anthropic.com"
  const isOpenAi = OPENAI.host.test(host)
  const warn = (applies: boolean, key: keyof Model, message: string): ReadonlyArray<QuirkWarning> =>
    applies ? [{ key, message }] : []
  return [
    ...warn(
      isAnthropic && api !== "messages",
      "api",
      api === "chat"
        ? 'is "chat", with which this provider has neither a cache nor thinking, so calls cost several times as much: set it to "messages"'
        : 'is an API that this provider does not have: set it to "messages"'
    ),
    ...warn(
      isAnthropic && !/\/v1\/*$/u.test(endpoint),
      "endpoint",
      "must end in /v1; every other address is answered with 404"
    ),
    ...warn(isOpenAi && api === "messages", "api", 'is an API that this provider does not have: set it to "responses"'),
    ...warn(
      api === "chat" && (effort === "alone" || effort === "none"),
      "api",
      'is "chat", with which this model does not think when it has tools, and in Choir it always has: set it to "responses"'
    ),
    ...warn(
      effort === "refused" && reasoning_effort !== null,
      "reasoning_effort",
      "is a parameter that this provider refuses, so that it is left out: set it to null"
    ),
    ...warn(
      effort === "budget" && thinks && max_tokens < THINKING_MAX_TOKENS_MIN,
      "max_tokens",
      `leaves no room to think, so that reasoning_effort does nothing: set it to ${THINKING_MAX_TOKENS_MIN} or more`
    ),
    ...warn(
      !takesTemperature && temperature !== null && temperature !== TEMPERATURE_DEFAULT,
      "temperature",
      "is a parameter that this model refuses, so that it is left out: set it to null"
    ),
    ...warn(
      images === "refused" && model.images === true,
      "images",
      "is true, but this model takes no images: set it to false"
    ),
    ...warn(
      OLLAMA.test(endpoint) && context_window === CONTEXT_WINDOW_DEFAULT,
      "context_window",
      "is Choir's default, but Ollama cuts prompts at a context of its own, often 4,096 tokens, and says nothing: start it with OLLAMA_CONTEXT_LENGTH=64000 and set context_window to the same number"
    ),
    ...warn(
      context_window <= max_tokens,
      "context_window",
      `leaves no room for a prompt beside an answer of max_tokens (${max_tokens}): set it to what the model has`
    )
  ]
}
