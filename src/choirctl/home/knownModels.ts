/** Common models as their providers published them, so that costs and `max_cost_usd` count from the first message and windows fit. */
import type { Model } from "#schema/Config.ts"
import { LONG_ANSWER_TOKENS } from "#src/shared/model/quirks.ts"
import type { Provider } from "./providers.ts"

export type Price = NonNullable<Model["price"]>

/** The month of the price lists that the table was last compared with. Prices change; the wizard shows the date and asks. */
export const PRICES_AS_OF = "June 2026"

/** Facts for config.json. */
export interface KnownModel {
  readonly price: Price
  readonly context_window: number
  readonly max_tokens: number
}

/** The part of a larger context that costs the usual price, and that steps may read again and again without costing much. */
const USUAL_CONTEXT = 200_000

const model = (
  [input, output, cache_read, cache_write]: readonly [number, number, number?, number?],
  context_window = USUAL_CONTEXT,
  max_tokens = LONG_ANSWER_TOKENS
): KnownModel => ({
  price: {
    input,
    output,
    ...(cache_read === undefined ? {} : { cache_read }),
    ...(cache_write === undefined ? {} : { cache_write })
  },
  context_window,
  max_tokens
})

/** Anthropic reads its cache for a tenth and writes it for a quarter more. */
const claude = (input: number, output: number, max_tokens = LONG_ANSWER_TOKENS): KnownModel =>
  model([input, output, input / 10, input * 1.25], USUAL_CONTEXT, max_tokens)

type Table = Readonly<Record<string, KnownModel>>

/** https://openai.com/api/pricing */
const OPENAI: Table = {
  "gpt-5.5": model([5, 30, 0.5], 270_000),
  "gpt-5.4": model([2.5, 15, 0.25], 270_000),
  "gpt-5.4-mini": model([0.75, 4.5, 0.075]),
  "gpt-5.4-nano": model([0.2, 1.25, 0.02]),
  "gpt-5.1": model([1.25, 10, 0.125], 270_000),
  "gpt-5": model([1.25, 10, 0.125], 270_000),
  "gpt-5-mini": model([0.25, 2, 0.025], 270_000),
  "gpt-5-nano": model([0.05, 0.4, 0.005], 270_000),
  "gpt-4.1": model([2, 8, 0.5]),
  "gpt-4.1-mini": model([0.4, 1.6, 0.1]),
  "gpt-4.1-nano": model([0.1, 0.4, 0.025]),
  "gpt-4o": model([2.5, 10, 1.25], 128_000),
  "gpt-4o-mini": model([0.15, 0.6, 0.075], 128_000),
  o3: model([2, 8, 0.5]),
  "o4-mini": model([1.1, 4.4, 0.275])
}

/** https://docs.claude.com/en/docs/about-claude/pricing; the names are those of its API and, behind a slash, of OpenRouter. */
const ANTHROPIC: Table = {
  "claude-opus-4-8": claude(5, 25),
  "claude-opus-4-7": claude(5, 25),
  "claude-opus-4-6": claude(5, 25),
  "claude-opus-4-5": claude(5, 25),
  "claude-opus-4-1": claude(15, 75),
  "claude-sonnet-4-6": claude(3, 15),
  "claude-sonnet-4-5": claude(3, 15),
  "claude-haiku-4-5": claude(1, 5)
}

/** https://ai.google.dev/gemini-api/docs/pricing: of prompts up to 200,000 tokens. */
const GEMINI: Table = {
  "gemini-3.1-pro-preview": model([2, 12, 0.2]),
  "gemini-3-flash-preview": model([0.5, 3, 0.05]),
  "gemini-2.5-pro": model([1.25, 10, 0.125]),
  "gemini-2.5-flash": model([0.3, 2.5, 0.03])
}

/** https://platform.moonshot.ai/docs/pricing/chat */
const KIMI: Table = {
  "kimi-k2.6": model([0.95, 4, 0.16], 262_144),
  "kimi-k2.5": model([0.6, 3, 0.1], 262_144)
}

const prefixed = (prefix: string, table: Table, spelt = (name: string) => name): Table =>
  Object.fromEntries(Object.entries(table).map(([name, known]) => [`${prefix}/${spelt(name)}`, known]))

/** OpenRouter passes the providers' prices on. */
const OPENROUTER: Table = {
  ...prefixed("openai", OPENAI),
  ...prefixed("anthropic", ANTHROPIC, (name) => name.replace(/-(\d)-(\d)$/u, "-$1.$2")),
  "anthropic/claude-opus-4": claude(15, 75),
  "anthropic/claude-sonnet-4": claude(3, 15),
  "anthropic/claude-3.5-haiku": claude(0.8, 4, 8000),
  ...prefixed("google", GEMINI),
  ...prefixed("moonshotai", KIMI)
}

const TABLES: Partial<Readonly<Record<Provider, Table>>> = {
  offline: { "offline-model": model([0, 0], 128_000, 4096) },
  openai: OPENAI,
  openrouter: OPENROUTER,
  anthropic: ANTHROPIC,
  gemini: GEMINI,
  kimi: KIMI
}

/** The published facts of a model, or `undefined`. */
export const knownModel = (provider: Provider, name: string): KnownModel | undefined => {
  const table = TABLES[provider]
  return table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined
}

/** The published price of a model, or `undefined`. The offline model costs nothing. */
export const knownPrice = (provider: Provider, name: string): Price | undefined =>
  provider === "offline" ? { input: 0, output: 0 } : knownModel(provider, name)?.price

/** A price as people type it, such as `3/15`; `undefined` for anything else. */
export const parsePrice = (text: string): Price | undefined => {
  const match = /^\s*(\d+(?:\.\d+)?)\s*[/ ]\s*(\d+(?:\.\d+)?)\s*$/u.exec(text)
  return match === null ? undefined : { input: Number(match[1]), output: Number(match[2]) }
}
