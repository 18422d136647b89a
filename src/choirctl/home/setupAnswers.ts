/** The models that `choirctl init` offers, and the answers that its flags give. */

import type { Setup } from "./initHome.ts"
import type { Price } from "./knownPrices.ts"

/** The answers that the flags of `choirctl init` give, so that nobody is asked for them. */
export interface Given {
  readonly provider: Provider | undefined
  readonly endpoint: string | undefined
  readonly name: string | undefined
  readonly fallback?: string | undefined
  readonly price: Price | undefined
  readonly telegram_user_id: string | undefined
  readonly telegram_api_root: string | undefined
  readonly runtime: Setup["runtime"] | undefined
  readonly allow_unmapped_root: boolean
}

/** A Telegram user id, as @userinfobot tells it. */
export const isTelegramId = (text: string): boolean => /^[1-9][0-9]{0,15}$/u.test(text)

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

/** Why a text is not the address of an API. */
export const addressProblem = (text: string): string | undefined =>
  /^https?:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/u.test(text) && URL.canParse(text)
    ? undefined
    : "Enter an address such as http://127.0.0.1:11434/v1 or https://llm.example.org/v1"

/** Why a text is not the name of a model. */
export const nameProblem = (provider: Provider, text: string): string | undefined => {
  if (/^https?:/iu.test(text)) return `This is an address. Enter the model's name, such as ${MODEL_EXAMPLES[provider]}`
  if (/\s/u.test(text)) return `A model name has no spaces. Enter one such as ${MODEL_EXAMPLES[provider]}`
  return text === "" ? `Enter the provider's name of the model, such as ${MODEL_EXAMPLES[provider]}` : undefined
}
