/** The providers that `choirctl init` offers, in the order in which it lists them: where each is, which API it speaks best, and a model to begin with. */
import type { ModelApi } from "#schema/Continuation.ts"

export const PROVIDERS = [
  "offline",
  "openrouter",
  "openai",
  "anthropic",
  "gemini",
  "kimi",
  "deepseek",
  "mistral",
  "local",
  "other"
] as const
export type Provider = (typeof PROVIDERS)[number]

interface Preset {
  /** In the words of the wizard. */
  readonly title: string
  /** Absent where the operator has to say it. */
  readonly endpoint?: string
  readonly api: ModelApi
  /** A model that works well here; for an endpoint of one's own only an example. */
  readonly model: string
  readonly key: "needed" | "optional" | "none"
}

const PRESETS: Readonly<Record<Provider, Preset>> = {
  offline: {
    title: "the offline model: no key, follows plain instructions only",
    // choird chooses the port, and tells its agents alone.
    endpoint: "http://127.0.0.1:0/v1",
    api: "chat",
    model: "offline-model",
    key: "none"
  },
  openrouter: {
    title: "OpenRouter: one key for the models of many providers",
    endpoint: "https://openrouter.ai/api/v1",
    api: "chat",
    model: "anthropic/claude-sonnet-4.6",
    key: "needed"
  },
  openai: {
    title: "OpenAI",
    endpoint: "https://api.openai.com/v1",
    api: "responses",
    model: "gpt-5.4",
    key: "needed"
  },
  anthropic: {
    title: "Anthropic",
    endpoint: "https://api.anthropic.com/v1",
    api: "messages",
    model: "claude-sonnet-4-6",
    key: "needed"
  },
  gemini: {
    title: "Google Gemini",
    endpoint: "https://generativelanguage.googleapis.com/v1beta/openai",
    api: "chat",
    model: "gemini-3.1-pro-preview",
    key: "needed"
  },
  kimi: {
    title: "Moonshot Kimi",
    endpoint: "https://api.moonshot.ai/v1",
    api: "chat",
    model: "kimi-k2.6",
    key: "needed"
  },
  deepseek: {
    title: "DeepSeek",
    endpoint: "https://api.deepseek.com/v1",
    api: "chat",
    model: "deepseek-chat",
    key: "needed"
  },
  mistral: {
    title: "Mistral",
    endpoint: "https://api.mistral.ai/v1",
    api: "chat",
    model: "mistral-medium-latest",
    key: "needed"
  },
  local: {
    title: "a model on this machine: Ollama, llama.cpp, LM Studio, vLLM",
    api: "chat",
    model: "qwen3.5:27b",
    key: "optional"
  },
  other: {
    title: "another API: chat completions, Responses or Messages",
    api: "chat",
    model: "llama3.1",
    key: "optional"
  }
}

export const presetOf = (provider: Provider): Preset => PRESETS[provider]

/** The address at which Ollama serves its models, which the wizard suggests for one on this machine. */
export const LOCAL_ENDPOINT = "http://127.0.0.1:11434/v1"

/** Whether its address is a person's to choose. */
export const hasOwnAddress = (provider: Provider): boolean => PRESETS[provider].endpoint === undefined

/** The API to speak at an address: an address of one's own may be a known provider's. */
export const apiAt = (provider: Provider, endpoint: string): ModelApi => {
  if (!hasOwnAddress(provider)) return PRESETS[provider].api
  const host = URL.canParse(endpoint) ? new URL(endpoint).hostname : ""
  const known = Object.values(PRESETS).find((preset) => preset.endpoint?.includes(`//${host}/`) === true)
  return host === "" ? "chat" : (known?.api ?? "chat")
}
