/** A model of each dialect that speaks as its newest do, and the dialects of chat completions. */
import { type DialectName, DIALECTS } from "#demo/dialects/Dialect.ts"

export const MODEL_NAMES: Readonly<Record<DialectName, string>> = {
  openai: "gpt-4.1",
  responses: "gpt-5.6",
  anthropic: "claude-sonnet-4-5",
  openrouter: "anthropic/claude-sonnet-4.5",
  kimi: "kimi-k2.6",
  deepseek: "deepseek-v4",
  gemini: "gemini-3-pro-preview",
  "qwen-template": "qwen3.8",
  mistral: "mistral-large-latest"
}

/** The entry of config.json that such a model needs beside its endpoint. */
export const modelEntry = (dialect: DialectName) => ({ model: MODEL_NAMES[dialect], api: DIALECTS[dialect].api })

export const CHAT_DIALECTS: ReadonlyArray<DialectName> = (Object.keys(DIALECTS) as ReadonlyArray<DialectName>).filter(
  (name) => DIALECTS[name].api === "chat"
)
