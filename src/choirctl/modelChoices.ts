/** The models that `choirctl init` offers, as entries of config.json. */

/** The provider of a model, as its question and flag name it. */
export const PROVIDERS = ["offline", "openrouter", "openai", "other"] as const
export type Provider = (typeof PROVIDERS)[number]

/** The providers in the words of the wizard. */
export const PROVIDER_TITLES: Readonly<Record<Provider, string>> = {
  offline: "the offline model: no key, follows plain instructions only",
  openrouter: "OpenRouter",
  openai: "OpenAI",
  other: "another OpenAI-compatible API"
}

/** A model name that each provider knows. */
export const MODEL_EXAMPLES: Readonly<Record<Provider, string>> = {
  offline: "offline-model",
  openrouter: "anthropic/claude-sonnet-4",
  openai: "gpt-4.1",
  other: "llama3.1"
}

/** Where choird serves the offline model when nothing else is said. */
const OFFLINE_ENDPOINT = "http://127.0.0.1:9411/v1"
const OFFLINE_MODEL = "offline-model"

const ENDPOINTS: Readonly<Partial<Record<Provider, string>>> = {
  offline: OFFLINE_ENDPOINT,
  openrouter: "https://openrouter.ai/api/v1",
  openai: "https://api.openai.com/v1"
}

export interface ModelAnswers {
  readonly provider: Provider
  readonly endpoint: string | undefined
  readonly name: string | undefined
}

/** The endpoint and the model of a choice as far as they are known. */
export const known = ({ endpoint, name, provider }: ModelAnswers) => ({
  endpoint: endpoint ?? ENDPOINTS[provider],
  name: name ?? (provider === "offline" ? OFFLINE_MODEL : undefined)
})

/** Whether the provider asks for a key; that of an endpoint of one's own may be left out. */
export const takesKey = (provider: Provider): boolean => provider !== "offline"

/** The name of the secret that holds the key. */
export const keyName = (provider: Provider): string => `${provider}-key`
