/** The tokens and the money of one call as providers report them, in five spellings, and as they are priced. */
import type { Model } from "#schema/Config.ts"
import type { Usage } from "#schema/Event.ts"
import { MODEL_USAGE_TOKENS_MAX } from "./requestParameters.ts"

/** US dollars that a provider may report for one call; a higher amount is nonsense. */
const MODEL_USAGE_USD_MAX = 10_000

/** A provider's count. `input` is the whole prompt; what is absent or nonsense is 0. */
export interface Counted {
  readonly input: number
  readonly output: number
  /** The parts of `input` that came out of the provider's cache and went into it. */
  readonly cache_read: number
  readonly cache_write: number
  /** The part of `output` that nobody reads. */
  readonly reasoning: number
  readonly cost_usd?: number
}

const isCount = (tokens: unknown): tokens is number => Number.isSafeInteger(tokens) && (tokens as number) >= 0

/** A count as far as it can be one. */
const count = (tokens: unknown): number => (isCount(tokens) ? Math.min(tokens, MODEL_USAGE_TOKENS_MAX) : 0)

/** The first of the counts that says something. */
const first = (...counts: ReadonlyArray<unknown>): number => counts.map(count).find((tokens) => tokens > 0) ?? 0

/** The keys of a JSON object; none of anything else. */
const keysOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {}

const isCost = (cost: unknown): cost is number => typeof cost === "number" && cost >= 0 && cost <= MODEL_USAGE_USD_MAX

/** The price that a provider took for a call: a router also names what a person's own key was billed behind it. */
const costOf = (usage: Readonly<Record<string, unknown>>): number | undefined => {
  const { cost, is_byok } = usage
  if (!isCost(cost)) return undefined
  const behind = is_byok === true ? keysOf(usage["cost_details"])["upstream_inference_cost"] : 0
  return isCost(behind) ? cost + behind : cost
}

const counted = (
  input: number,
  output: number,
  parts: { readonly read: number; readonly write: number; readonly reasoning: number },
  cost: number | undefined
): Counted => {
  const cache_read = Math.min(parts.read, input)
  return {
    input,
    output,
    cache_read,
    cache_write: Math.min(parts.write, input - cache_read),
    reasoning: Math.min(parts.reasoning, output),
    ...(cost === undefined ? {} : { cost_usd: cost })
  }
}

/**
 * Chat completions and Responses, as OpenAI, OpenRouter, DeepSeek (`prompt_cache_hit_tokens`) and Moonshot (`cached_tokens`) spell them. Some
 * leave reasoning out of the answer's tokens, but not out of their sum.
 */
export const openAiUsage = (value: unknown): Counted => {
  const usage = keysOf(value)
  const input = first(usage["prompt_tokens"], usage["input_tokens"])
  const said = first(usage["completion_tokens"], usage["output_tokens"])
  const before = { ...keysOf(usage["prompt_tokens_details"]), ...keysOf(usage["input_tokens_details"]) }
  const after = { ...keysOf(usage["completion_tokens_details"]), ...keysOf(usage["output_tokens_details"]) }
  const output = Math.max(said, input === 0 ? 0 : count(usage["total_tokens"]) - input)
  const parts = {
    read: first(before["cached_tokens"], usage["prompt_cache_hit_tokens"], usage["cached_tokens"]),
    write: first(before["cache_write_tokens"], before["cache_creation_tokens"]),
    reasoning: first(after["reasoning_tokens"], output - said)
  }
  return counted(input, output, parts, costOf(usage))
}

/** Messages: the prompt is split into what was fresh, read and written. */
export const anthropicUsage = (value: unknown): Counted => {
  const usage = keysOf(value)
  const read = count(usage["cache_read_input_tokens"])
  const write = count(usage["cache_creation_input_tokens"])
  const input = Math.min(count(usage["input_tokens"]) + read + write, MODEL_USAGE_TOKENS_MAX)
  const reasoning = count(keysOf(usage["output_tokens_details"])["thinking_tokens"])
  return counted(input, count(usage["output_tokens"]), { read, write, reasoning }, costOf(usage))
}

/** The characters of text that are taken for one token where nobody counted; errs on the high side for English. */
export const CHARS_A_TOKEN = 4
/** More characters than any text has for each token: a provider's count below that is nonsense. */
const CHARS_A_TOKEN_MAX = 16

export const estimateTokens = (chars: number): number => Math.ceil(chars / CHARS_A_TOKEN)

/** The provider's count where it can be one, and else the estimate. */
const believed = (tokens: number, chars: number): number =>
  tokens * CHARS_A_TOKEN_MAX >= chars && tokens > 0 ? tokens : Math.max(tokens, estimateTokens(chars))

type Price = NonNullable<Model["price"]>

const priced = (price: Price, { cache_read, cache_write, input, output }: Counted): number => {
  const fresh = input - cache_read - cache_write
  const read = cache_read * (price.cache_read ?? price.input)
  const write = cache_write * (price.cache_write ?? price.input)
  return (fresh * price.input + read + write + output * price.output) / 1e6
}

const NOTHING: Counted = { input: 0, output: 0, cache_read: 0, cache_write: 0, reasoning: 0 }

/**
 * Tokens and money of a call whose request has `sent` characters and whose answer has `came`. What the provider counted and what it took
 * stand; what it said nothing about, or nonsense, is estimated.
 */
export const usageOf = (
  { price }: Pick<Model, "price">,
  sent: number,
  came: number = 0,
  counted: Counted = NOTHING
): Usage => {
  const input = believed(counted.input, sent)
  const output = believed(counted.output, came)
  const sum = { ...counted, input, output }
  const cost = counted.cost_usd ?? (price === undefined ? undefined : priced(price, sum))
  const part = (key: "cache_read" | "cache_write" | "reasoning") => (sum[key] === 0 ? {} : { [key]: sum[key] })
  return {
    input_tokens: input,
    output_tokens: output,
    ...part("cache_read"),
    ...part("cache_write"),
    ...part("reasoning"),
    ...(cost === undefined ? {} : { cost_usd: cost })
  }
}

export const NO_USAGE: Usage = { input_tokens: 0, output_tokens: 0 }

/** The usage of two calls together; a part that neither has stays absent. */
export const sumOfUsage = (a: Usage, b: Usage): Usage => {
  const part = (key: "cache_read" | "cache_write" | "reasoning" | "cost_usd") =>
    a[key] === undefined && b[key] === undefined ? {} : { [key]: (a[key] ?? 0) + (b[key] ?? 0) }
  return {
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    ...part("cache_read"),
    ...part("cache_write"),
    ...part("reasoning"),
    ...part("cost_usd")
  }
}

/** The tokens of a session's limit that a call took: a cache read is worth a tenth (D48). */
export const limitTokens = ({ cache_read = 0, input_tokens, output_tokens }: Usage): number => {
  const read = Math.min(cache_read, input_tokens)
  return input_tokens - read + Math.ceil(read / 10) + output_tokens
}

/** The most that a call of so many prompt tokens may cost, whatever of them a cache holds. */
export const costMax = ({ price }: Pick<Model, "price">, prompt_tokens: number, output_tokens: number): number =>
  price === undefined
    ? 0
    : (prompt_tokens * Math.max(price.input, price.cache_write ?? 0) + output_tokens * price.output) / 1e6
