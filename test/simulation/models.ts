/**
 * The models of a seed and the servers behind them. Seeds that 2 divides have models of several providers, each of which speaks its dialect,
 * streams, and wants reasoning back as the real one does; the others have one server of chat completions that answers in one piece.
 */
import { type Dialect, type DialectName, DIALECTS } from "#demo/dialects/Dialect.ts"
import { makeSeed } from "./Seed.ts"

/** What a seed changes of a model's entry in config.json. */
export type ModelEntry = Readonly<Record<string, unknown>>

const THINKS = { reasoning_effort: "high" }

/** Two models of each server, so that one may stand in for the other. */
const SERVERS: Readonly<
  Record<DialectName, { readonly models: readonly [string, string]; readonly has?: ModelEntry }>
> = {
  openai: { models: ["gpt-5.1", "gpt-5"], has: { provider: "openai" } },
  responses: { models: ["gpt-5.6", "gpt-5.1"], has: { provider: "openai", api: "responses" } },
  anthropic: { models: ["claude-opus-4-7", "claude-sonnet-4-6"], has: { api: "messages", ...THINKS } },
  openrouter: {
    models: ["anthropic/claude-opus-4.7", "anthropic/claude-sonnet-4.5"],
    has: { provider: "openrouter", ...THINKS }
  },
  kimi: { models: ["kimi-k2.6", "kimi-k2.5"] },
  deepseek: { models: ["deepseek-v4", "deepseek-v3.2"] },
  gemini: { models: ["gemini-3-pro-preview", "gemini-3-flash-preview"] },
  "qwen-template": { models: ["qwen3.8", "qwen3.5"] },
  mistral: { models: ["mistral-large-latest", "mistral-medium-latest"] }
}
const NAMES = Object.keys(SERVERS) as unknown as readonly [DialectName, ...ReadonlyArray<DialectName>]

const entryOf = (dialect: DialectName, which: 0 | 1): ModelEntry => ({
  ...SERVERS[dialect].has,
  model: SERVERS[dialect].models[which],
  endpoint: `https://provider/${dialect}/v1`
})

/** The entries by the names of config.json; empty where all models are those of the plain server. */
export const modelsOf = (seed: number): Readonly<Record<string, ModelEntry>> => {
  if (seed % 2 !== 0) return {}
  const draw = makeSeed(seed, "models")
  const large = draw.pick(NAMES)
  const spare = draw.chance(0.5) ? large : draw.pick(NAMES)
  return { large: entryOf(large, 0), spare: entryOf(spare, 1), small: entryOf(draw.pick(NAMES), 0) }
}

/** The dialect that is spoken at a path, or nothing at the plain server's. */
export const dialectAt = (path: string): Dialect | undefined => {
  const name = path.split("/")[1] ?? ""
  return Object.hasOwn(DIALECTS, name) ? DIALECTS[name as DialectName] : undefined
}
