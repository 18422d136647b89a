/** Prices of common models as their providers published them, so that costs and `max_cost_usd` count from the first message. */
import type { Model } from "#schema/Config.ts"

export type Price = NonNullable<Model["price"]>

/** The month of the price lists that the table was last compared with. Prices change; the wizard shows the date and asks. */
export const PRICES_AS_OF = "March 2026"

/** USD per million tokens of input and output. */
const OPENAI: Readonly<Record<string, readonly [number, number]>> = {
  "gpt-5.1": [1.25, 10],
  "gpt-5": [1.25, 10],
  "gpt-5-mini": [0.25, 2],
  "gpt-5-nano": [0.05, 0.4],
  "gpt-4.1": [2, 8],
  "gpt-4.1-mini": [0.4, 1.6],
  "gpt-4.1-nano": [0.1, 0.4],
  "gpt-4o": [2.5, 10],
  "gpt-4o-mini": [0.15, 0.6],
  o3: [2, 8],
  "o4-mini": [1.1, 4.4]
}

const OPENROUTER: Readonly<Record<string, readonly [number, number]>> = {
  ...Object.fromEntries(Object.entries(OPENAI).map(([name, price]) => [`openai/${name}`, price])),
  "anthropic/claude-sonnet-4.5": [3, 15],
  "anthropic/claude-sonnet-4": [3, 15],
  "anthropic/claude-haiku-4.5": [1, 5],
  "anthropic/claude-3.5-haiku": [0.8, 4],
  "anthropic/claude-opus-4.5": [5, 25],
  "anthropic/claude-opus-4.1": [15, 75],
  "anthropic/claude-opus-4": [15, 75],
  // Of prompts up to 200,000 tokens; longer ones cost 2.50 and 15.
  "google/gemini-2.5-pro": [1.25, 10],
  "google/gemini-2.5-flash": [0.3, 2.5]
}

const TABLES: Readonly<Record<string, Readonly<Record<string, readonly [number, number]>>>> = {
  openai: OPENAI,
  openrouter: OPENROUTER
}

/** The published price of a model, or `undefined`. The offline model costs nothing. */
export const knownPrice = (provider: string, model: string): Price | undefined => {
  if (provider === "offline") return { input: 0, output: 0 }
  const table = TABLES[provider]
  const price = table !== undefined && Object.hasOwn(table, model) ? table[model] : undefined
  return price === undefined ? undefined : { input: price[0], output: price[1] }
}

/** A price as people type it, such as `3/15`; `undefined` for anything else. */
export const parsePrice = (text: string): Price | undefined => {
  const match = /^\s*(\d+(?:\.\d+)?)\s*[/ ]\s*(\d+(?:\.\d+)?)\s*$/u.exec(text)
  return match === null ? undefined : { input: Number(match[1]), output: Number(match[2]) }
}
