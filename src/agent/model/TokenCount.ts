/**
 * How many tokens texts take, exact for models of the o200k_base vocabulary and calibrated for others by what their
 * providers report. The vocabulary is read when something is counted for the first time, and never while prompts are small.
 */
import { hash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { Context, Effect, Layer } from "effect"
import { O200K_TOKEN_SPLIT_REGEX } from "gpt-tokenizer/encodingParams/constants"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"
import { packVocabulary, Vocabulary } from "./Vocabulary.ts"
import { promptBytes, textsOf } from "./partSizes.ts"

/** Characters that are taken for one token where the vocabulary is missing; low, so that prompts rather come out short. */
const GUESSED_CHARS_PER_TOKEN = 3
/** UTF-16 units that are counted into tokens before other lanes may run; a few milliseconds of work. */
export const TOKEN_SLICE_CHARS = 4096
/** Tokens of the vocabulary that are read before other lanes may run. */
const TOKEN_VOCABULARY_SLICE = 20_000
/** Texts whose count is remembered, and the UTF-16 units from which that is worth it; the longest unused go first. */
const TOKEN_COUNTS_MAX = 4096
const TOKEN_COUNTED_CHARS_MIN = 200
/** How far a provider's count of a prompt may be from ours before it is taken for nonsense, as a factor of it. */
export const TOKEN_FACTOR_MIN = 0.5
export const TOKEN_FACTOR_MAX = 4
/** Models whose factor is remembered; the longest unused go first. */
const TOKEN_FACTORS_MAX = 64

/** A part of a prompt. Each message and each tool is counted once. */
export type Part = string | Message | Tool

/** Counts tokens. */
export class TokenCount extends Context.Service<
  TokenCount,
  {
    /** The tokens of parts by o200k_base; other fibers run between slices of a long text. */
    count(parts: ReadonlyArray<Part>): Effect.Effect<number>
    /** Whether messages surely have fewer tokens than this: no token is less than a byte. Needs no vocabulary. */
    certainlyBelow(messages: ReadonlyArray<Message>, tokens: number): boolean
    /** Takes note of a provider's count of a prompt beside this service's own; nonsense is ignored. */
    observe(model: string, counted: number, reported: number): void
    /** By how much a model's own count is greater, from what was observed; 1 before. */
    factor(model: string): number
  }
>()("choir/agent/TokenCount") {
  static readonly layer = Layer.effect(
    TokenCount,
    Effect.suspend(() => make())
  )
}

/** Beside the agent's bundle, made by the build; a sandbox gets it along with the program. */
const FILE = new URL("./choir-agent.o200k", import.meta.url)
/** The share of each observation in a model's factor. */
const WEIGHT = 0.3
/** A piece that ends this close before the end of a slice might be longer with what follows: "don" with "'t" behind it. */
const MARGIN_CHARS = 4

const packed = Effect.tryPromise(() => readFile(FILE)).pipe(
  Effect.catch(() =>
    Effect.map(
      Effect.tryPromise(() => import("gpt-tokenizer/bpeRanks/o200k_base")),
      (ranks) => packVocabulary(ranks.default)
    )
  )
)

/** One waiter may be interrupted while others still need it. */
const load = Effect.gen(function* () {
  const vocabulary = new Vocabulary(yield* packed)
  while (vocabulary.addSome(TOKEN_VOCABULARY_SLICE)) yield* Effect.yieldNow
  return vocabulary
}).pipe(
  Effect.catch((error) =>
    Effect.as(Effect.logWarning("the vocabulary is missing; tokens are estimated", error), undefined)
  ),
  Effect.uninterruptible
)

/** The tokens of a text from a place on, for about a slice, and where the next one begins. */
const makeSlice = (vocabulary: Vocabulary) => {
  const pattern = new RegExp(O200K_TOKEN_SPLIT_REGEX)
  const encoder = new TextEncoder()
  const bytes = new Uint8Array(TOKEN_SLICE_CHARS * 3)
  return (text: string, from: number) => {
    const slice = text.slice(from, from + TOKEN_SLICE_CHARS)
    const end = from + slice.length === text.length ? slice.length : slice.length - MARGIN_CHARS
    let tokens = 0
    let next = 0
    pattern.lastIndex = 0
    for (let match = pattern.exec(slice); match !== null; match = pattern.exec(slice)) {
      // A match that reaches the end may continue in the next slice, unless it fills this one, where it is cut.
      if (pattern.lastIndex > end && next > 0) break
      tokens += vocabulary.count(bytes, encoder.encodeInto(match[0], bytes).written)
      next = pattern.lastIndex
    }
    return { tokens, next: from + Math.max(next, 1) }
  }
}

/** A list of parts, and the tokens up to each. Most lists begin as the lane's one before them, whose parts are not counted again. */
interface Counted {
  readonly parts: ReadonlyArray<Part>
  readonly sums: ReadonlyArray<number>
}

const NOTHING_COUNTED: Counted = { parts: [], sums: [] }

const make = Effect.fnUntraced(function* () {
  const loaded = yield* Effect.cached(Effect.map(load, (found) => found && makeSlice(found)))
  const counts = new BoundedMap<string, number>(TOKEN_COUNTS_MAX)
  const counted = new WeakMap<Message | Tool, number>()
  /** The newest list of a lane, whose second part is the lane's own. */
  const lists = new WeakMap<Message | Tool, Counted>()
  const factors = new BoundedMap<string, number>(TOKEN_FACTORS_MAX)
  /** Characters that were counted since other fibers could run. */
  let since = 0

  const countTexts = Effect.fnUntraced(function* (texts: ReadonlyArray<string>) {
    const slice = yield* loaded
    if (slice === undefined)
      return texts.reduce((total, { length }) => total + Math.ceil(length / GUESSED_CHARS_PER_TOKEN), 0)
    let total = 0
    for (const text of texts) {
      // The digest, so that what is remembered does not keep the texts.
      const key = text.length < TOKEN_COUNTED_CHARS_MIN ? undefined : hash("sha256", text, "base64")
      const known = key === undefined ? undefined : counts.use(key)
      let tokens = known ?? 0
      let from = known === undefined ? 0 : text.length
      while (from < text.length) {
        if (since >= TOKEN_SLICE_CHARS / 2) {
          yield* Effect.yieldNow
          since = 0
        }
        const piece = slice(text, from)
        since += piece.next - from
        from = piece.next
        tokens += piece.tokens
      }
      if (key !== undefined) counts.set(key, tokens)
      total += tokens
    }
    return total
  })

  const count = Effect.fnUntraced(function* (parts: ReadonlyArray<Part>) {
    const [, own] = parts
    const { parts: before, sums } = (typeof own === "object" ? lists.get(own) : undefined) ?? NOTHING_COUNTED
    let same = 0
    while (same < parts.length && before[same] === parts[same]) same++
    let total = sums[same - 1] ?? 0
    if (same === parts.length) return total
    const fresh: Array<number> = []
    for (const part of same === 0 ? parts : parts.slice(same)) {
      const known = typeof part === "string" ? undefined : counted.get(part)
      const tokens = known ?? (yield* countTexts(typeof part === "string" ? [part] : textsOf(part)))
      if (known === undefined && typeof part !== "string") counted.set(part, tokens)
      total += tokens
      fresh.push(total)
    }
    if (typeof own === "object") lists.set(own, { parts, sums: [...sums.slice(0, same), ...fresh] })
    return total
  })

  return TokenCount.of({
    count,
    certainlyBelow: (messages, tokens) => promptBytes(messages) < tokens,
    observe: (model, counted, reported) => {
      const factor = reported / counted
      if (!(factor >= TOKEN_FACTOR_MIN && factor <= TOKEN_FACTOR_MAX)) return
      const before = factors.use(model) ?? factor
      factors.set(model, before + (factor - before) * WEIGHT)
    },
    factor: (model) => factors.use(model) ?? 1
  })
})
