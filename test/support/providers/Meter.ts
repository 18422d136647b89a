/**
 * The count of a provider: tokens of each prompt in o200k, and how many of them it finds in its cache, as OpenAI counts them (from 1,024 tokens,
 * in steps of 128, the best prefix of the last 60 requests) or as Anthropic does (up to the breakpoints that the client set).
 */
import { encode } from "gpt-tokenizer/encoding/o200k_base"
import type { Dialect } from "#demo/dialects/Dialect.ts"
import { isObject, type Keys, listOf } from "#demo/dialects/jsonKeys.ts"
import { family } from "#demo/dialects/Rule.ts"

/** https://platform.openai.com/docs/guides/prompt-caching */
const CACHED_TOKENS_MIN = 1024
const CACHED_TOKENS_STEP = 128
const REQUESTS_KEPT_MAX = 60
/** Blocks before a breakpoint among which Anthropic looks for an earlier one. */
const LOOKBACK_BLOCKS_MAX = 20
/** Longer pieces take the encoder a time that grows with their square where they repeat themselves. */
const ENCODED_CHARS_MAX = 1000

/** Tokens of one request. */
export interface Tally {
  /** The whole prompt, cached or not. */
  readonly input: number
  readonly cached: number
  /** Tokens that went into the cache, where the provider says so. */
  readonly written: number
  /** With those of reasoning. */
  readonly output: number
  readonly reasoning: number
}

/** Sums over the requests of a provider that were not refused. */
export interface Summary {
  readonly calls: number
  readonly refusals: number
  readonly input: number
  readonly cached: number
  readonly output: number
  /** Cached tokens a token of all prompts. */
  readonly prefix_share: number
  /** The smallest share of one prompt behind the first, 1 where there is none. */
  readonly smallest_share: number
  readonly largest_prompt: number
}

interface Part {
  readonly text: string
  readonly isBreakpoint: boolean
}

/** A part of a prompt: its JSON without the marks of the cache, which are no part of what is cached. */
const partOf = (value: unknown): Part => {
  let isBreakpoint = false
  const text =
    JSON.stringify(value, (key, inner: unknown) => {
      if (key !== "cache_control") return inner
      isBreakpoint = true
      return undefined
    }) ?? ""
  return { text, isBreakpoint }
}

const blocksOf = (message: unknown): ReadonlyArray<Part> =>
  isObject(message) && Array.isArray(message["content"])
    ? message["content"].map((block, index) => {
        const { isBreakpoint, text } = partOf(block)
        return { text: index === 0 ? `${String(message["role"])}${text}` : text, isBreakpoint }
      })
    : [partOf(message)]

/** The parts of a prompt in the order in which a model reads them. */
export const promptParts = (dialect: Dialect, body: Keys): ReadonlyArray<Part> => {
  const { cache_control, input, instructions, messages, system, tools } = body
  const own = (value: unknown) => (value === undefined ? [] : typeof value === "string" ? [partOf(value)] : [])
  const parts = [
    ...listOf(tools).map(partOf),
    ...own(system),
    ...listOf(system).map(partOf),
    ...own(instructions),
    ...own(input),
    ...listOf(input).map(partOf),
    ...listOf(messages).flatMap((message) => (dialect.api === "messages" ? blocksOf(message) : [partOf(message)]))
  ]
  const last = parts.at(-1)
  return cache_control === undefined || last === undefined
    ? parts
    : [...parts.slice(0, -1), { ...last, isBreakpoint: true }]
}

const encoded = new Map<string, ReadonlyArray<number>>()

const tokensOf = (text: string): ReadonlyArray<number> => {
  const known = encoded.get(text)
  if (known !== undefined) return known
  const tokens: Array<number> = []
  for (let at = 0; at < text.length; at += ENCODED_CHARS_MAX)
    tokens.push(...encode(text.slice(at, at + ENCODED_CHARS_MAX), { disallowedSpecial: new Set() }))
  encoded.set(text, tokens)
  return tokens
}

export const countTokens = (text: string): number => {
  let tokens = 0
  for (let at = 0; at < text.length; at += ENCODED_CHARS_MAX)
    tokens += encode(text.slice(at, at + ENCODED_CHARS_MAX), { disallowedSpecial: new Set() }).length
  return tokens
}

const commonLength = (one: ReadonlyArray<unknown>, other: ReadonlyArray<unknown>): number => {
  const end = Math.min(one.length, other.length)
  let at = 0
  while (at < end && one[at] === other[at]) at += 1
  return at
}

const sum = (texts: ReadonlyArray<string>): number => texts.reduce((total, text) => total + tokensOf(text).length, 0)

/** Counts the requests of one provider, in their order. */
export class Meter {
  readonly #recent: Array<ReadonlyArray<string>> = []
  readonly #cached = new Set<string>()
  readonly #shares: Array<number> = []
  #input = 0
  #cachedTokens = 0
  #output = 0
  #largest = 0

  /** The tokens of a prompt, and how many of them were cached and are from here on. */
  prompt(dialect: Dialect, body: Keys): Pick<Tally, "input" | "cached" | "written"> {
    const parts = promptParts(dialect, body)
    const texts = parts.map(({ text }) => text)
    const input = sum(texts)
    const byBreakpoints = dialect.api === "messages" || (dialect.name === "openrouter" && family(body["model"]).claude)
    const found = byBreakpoints ? this.#upToBreakpoints(parts) : { cached: this.#bestPrefix(texts), written: 0 }
    this.#input += input
    this.#cachedTokens += found.cached
    this.#shares.push(input === 0 ? 0 : found.cached / input)
    this.#largest = Math.max(this.#largest, input)
    return { input, ...found }
  }

  answered(tokens: number): void {
    this.#output += tokens
  }

  summary(refusals: number): Summary {
    return {
      calls: this.#shares.length,
      refusals,
      input: this.#input,
      cached: this.#cachedTokens,
      output: this.#output,
      prefix_share: this.#input === 0 ? 0 : this.#cachedTokens / this.#input,
      smallest_share: Math.min(1, ...this.#shares.slice(1)),
      largest_prompt: this.#largest
    }
  }

  #bestPrefix(texts: ReadonlyArray<string>): number {
    let best = 0
    for (const earlier of this.#recent) {
      const same = commonLength(texts, earlier)
      const [mine, its] = [texts[same], earlier[same]]
      const within = mine === undefined || its === undefined ? 0 : commonLength(tokensOf(mine), tokensOf(its))
      best = Math.max(best, sum(texts.slice(0, same)) + within)
    }
    this.#recent.push(texts)
    if (this.#recent.length > REQUESTS_KEPT_MAX) this.#recent.shift()
    return best < CACHED_TOKENS_MIN ? 0 : best - (best % CACHED_TOKENS_STEP)
  }

  #upToBreakpoints(parts: ReadonlyArray<Part>): { readonly cached: number; readonly written: number } {
    const texts = parts.map(({ text }) => text)
    const prefix = (end: number) => texts.slice(0, end).join("\u0000")
    const ends = parts.flatMap(({ isBreakpoint }, index) => (isBreakpoint ? [index + 1] : []))
    const looked = ends.flatMap((end) =>
      Array.from({ length: Math.min(LOOKBACK_BLOCKS_MAX, end) }, (_, back) => end - back)
    )
    const read = Math.max(0, ...looked.filter((end) => this.#cached.has(prefix(end))))
    const cached = sum(texts.slice(0, read))
    const last = ends.at(-1) ?? 0
    for (const end of ends) if (sum(texts.slice(0, end)) >= CACHED_TOKENS_MIN) this.#cached.add(prefix(end))
    const total = sum(texts.slice(0, last))
    return { cached, written: total >= CACHED_TOKENS_MIN ? Math.max(0, total - cached) : 0 }
  }
}
