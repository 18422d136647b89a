/**
 * The count of a provider: tokens of each prompt in o200k, and how many of them it finds in its cache, as OpenAI counts them (from 1,024 tokens,
 * in steps of 128, the best prefix of the last 60 requests) or as Anthropic does (up to the breakpoints that the client set).
 */
import { encode } from "gpt-tokenizer/encoding/o200k_base"
import type { Dialect } from "#demo/dialects/Dialect.ts"
import { weighed } from "#demo/dialects/images.ts"
import { isObject, type Keys, listOf } from "#demo/dialects/jsonKeys.ts"
import { family } from "#demo/dialects/Rule.ts"

/** https://platform.openai.com/docs/guides/prompt-caching */
const CACHED_TOKENS_MIN = 1024
/** Tokens in which a cache counts. */
export const CACHED_TOKENS_STEP = 128
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

/** A word of one token, which stands for the tokens of an image. */
const TOKEN = " a"

/** A part of a prompt: its JSON without the marks of the cache, which are no part of what is cached. */
const partOf = (value: unknown): Part => {
  let isBreakpoint = false
  const json =
    JSON.stringify(value, (key, inner: unknown) => {
      if (key !== "cache_control") return inner
      isBreakpoint = true
      return undefined
    }) ?? ""
  const { text, tokens } = weighed(json)
  return { text: text + TOKEN.repeat(tokens), isBreakpoint }
}

const blocksOf = (message: unknown): ReadonlyArray<Part> =>
  isObject(message) && Array.isArray(message["content"])
    ? message["content"].map((block, index) => {
        const { isBreakpoint, text } = partOf(block)
        return { text: index === 0 ? `${String(message["role"])}${text}` : text, isBreakpoint }
      })
    : [partOf(message)]

/** A message of chat completions, whose content is the same as a text and as its one part, which alone can have a mark of the cache. */
const asText = (message: unknown): unknown => {
  if (!isObject(message) || !Array.isArray(message["content"]) || message["content"].length !== 1) return message
  const [part]: ReadonlyArray<unknown> = message["content"]
  if (!isObject(part) || part["type"] !== "text") return message
  const { cache_control, text } = part
  return { ...message, content: text, ...(cache_control === undefined ? {} : { cache_control }) }
}

/** The parts of a prompt in the order in which a model reads them. */
const promptParts = (dialect: Dialect, body: Keys): ReadonlyArray<Part> => {
  const { cache_control, input, instructions, messages, system, tools } = body
  const own = (value: unknown) => (value === undefined ? [] : typeof value === "string" ? [partOf(value)] : [])
  const parts = [
    ...listOf(tools).map(partOf),
    ...own(system),
    ...listOf(system).map(partOf),
    ...own(instructions),
    ...own(input),
    ...listOf(input).map(partOf),
    ...listOf(messages).flatMap((message) =>
      dialect.api === "messages" ? blocksOf(message) : [partOf(asText(message))]
    )
  ]
  const last = parts.at(-1)
  return cache_control === undefined || last === undefined
    ? parts
    : [...parts.slice(0, -1), { ...last, isBreakpoint: true }]
}

const encodeAll = (text: string): ReadonlyArray<number> => {
  const tokens: Array<number> = []
  for (let at = 0; at < text.length; at += ENCODED_CHARS_MAX)
    tokens.push(...encode(text.slice(at, at + ENCODED_CHARS_MAX), { disallowedSpecial: new Set() }))
  return tokens
}

export const countTokens = (text: string): number => encodeAll(text).length

const commonLength = (one: ReadonlyArray<number>, other: ReadonlyArray<number>): number => {
  const end = Math.min(one.length, other.length)
  let at = 0
  while (at < end && one[at] === other[at]) at += 1
  return at
}

/** A prompt as numbers: its parts, the tokens before the end of each, and a number for each prefix. */
interface Prompt {
  readonly parts: ReadonlyArray<number>
  readonly ends: ReadonlyArray<number>
  readonly prefixes: ReadonlyArray<number>
}

/** Counts the requests of one provider, in their order. */
export class Meter {
  /** Texts by their number, which is their place in `#tokens`. */
  readonly #texts = new Map<string, number>()
  readonly #tokens: Array<ReadonlyArray<number>> = []
  /** Prefixes by the one before and the part that follows. */
  readonly #prefixes = new Map<string, number>()
  readonly #recent: Array<Prompt> = []
  readonly #cached = new Set<number>()
  readonly #shares: Array<number> = []
  #input = 0
  #cachedTokens = 0
  #output = 0
  #largest = 0

  /** The tokens of a prompt, and how many of them were cached and are from here on. */
  prompt(dialect: Dialect, body: Keys): Pick<Tally, "input" | "cached" | "written"> {
    const parts = promptParts(dialect, body)
    const prompt = this.#numbered(parts)
    const input = prompt.ends.at(-1) ?? 0
    const byBreakpoints = dialect.api === "messages" || (dialect.name === "openrouter" && family(body["model"]).claude)
    const found = byBreakpoints
      ? this.#upToBreakpoints(parts, prompt)
      : { cached: this.#bestPrefix(prompt), written: 0 }
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

  /** The tokens of a text, which are remembered. */
  count(text: string): number {
    return this.#tokens[this.#numberOf(text)]?.length ?? 0
  }

  #numberOf(text: string): number {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    this.#texts.set(text, this.#tokens.length)
    return this.#tokens.push(encodeAll(text)) - 1
  }

  #numbered(parts: ReadonlyArray<Part>): Prompt {
    let end = 0
    let prefix = -1
    const numbers = parts.map(({ text }) => this.#numberOf(text))
    return {
      parts: numbers,
      ends: numbers.map((part) => (end += this.#tokens[part]?.length ?? 0)),
      prefixes: numbers.map((part) => {
        const key = `${prefix} ${part}`
        prefix = this.#prefixes.get(key) ?? this.#prefixes.size
        this.#prefixes.set(key, prefix)
        return prefix
      })
    }
  }

  #bestPrefix(prompt: Prompt): number {
    let best = 0
    for (const earlier of this.#recent) {
      const same = commonLength(prompt.parts, earlier.parts)
      const [mine, its] = [prompt.parts[same], earlier.parts[same]]
      const within =
        mine === undefined || its === undefined ? 0 : commonLength(this.#tokens[mine] ?? [], this.#tokens[its] ?? [])
      best = Math.max(best, (prompt.ends[same - 1] ?? 0) + within)
    }
    this.#recent.push(prompt)
    if (this.#recent.length > REQUESTS_KEPT_MAX) this.#recent.shift()
    return best < CACHED_TOKENS_MIN ? 0 : best - (best % CACHED_TOKENS_STEP)
  }

  #upToBreakpoints(
    parts: ReadonlyArray<Part>,
    { ends, prefixes }: Prompt
  ): { readonly cached: number; readonly written: number } {
    const marked = parts.flatMap(({ isBreakpoint }, index) => (isBreakpoint ? [index] : []))
    const looked = marked.flatMap((index) =>
      Array.from({ length: Math.min(LOOKBACK_BLOCKS_MAX, index + 1) }, (_, back) => index - back)
    )
    const read = Math.max(-1, ...looked.filter((index) => this.#cached.has(prefixes[index] ?? -1)))
    const cached = ends[read] ?? 0
    for (const index of marked) if ((ends[index] ?? 0) >= CACHED_TOKENS_MIN) this.#cached.add(prefixes[index] ?? -1)
    const total = ends[marked.at(-1) ?? -1] ?? 0
    return { cached, written: total >= CACHED_TOKENS_MIN ? Math.max(0, total - cached) : 0 }
  }
}
