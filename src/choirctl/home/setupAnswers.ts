/** The answers that the flags of `choirctl init` give, and what is wrong with one. */
import type { ModelApi } from "#schema/Continuation.ts"
import type { Setup } from "./initHome.ts"
import type { Price } from "./knownModels.ts"
import { presetOf, type Provider } from "./providers.ts"

/** The answers that the flags of `choirctl init` give, so that nobody is asked for them. */
export interface Given {
  readonly provider: Provider | undefined
  readonly endpoint: string | undefined
  readonly name: string | undefined
  readonly api?: ModelApi | undefined
  readonly fallback?: string | undefined
  readonly price: Price | undefined
  readonly telegram_user_id: string | undefined
  readonly telegram_api_root: string | undefined
  readonly timezone: string | undefined
  readonly runtime: Setup["runtime"] | undefined
  readonly allow_unmapped_root: boolean
}

/** A Telegram user id, as @userinfobot tells it. */
export const isTelegramId = (text: string): boolean => /^[1-9][0-9]{0,15}$/u.test(text)

export interface ModelAnswers {
  readonly provider: Provider
  readonly endpoint: string | undefined
  readonly name: string | undefined
}

/** The endpoint and the model of a choice as far as they are known. */
export const known = ({ endpoint, name, provider }: ModelAnswers) => ({
  endpoint: endpoint ?? presetOf(provider).endpoint,
  name: name ?? (provider === "offline" ? presetOf(provider).model : undefined)
})

/** Whether the provider asks for a key; that of an endpoint of one's own may be left out. */
export const takesKey = (provider: Provider): boolean => presetOf(provider).key !== "none"
export const needsKey = (provider: Provider): boolean => presetOf(provider).key === "needed"

/** The name of the secret that holds the key. */
export const keyName = (provider: Provider): string => `${provider}-key`

/** Why a text is not the address of an API. */
export const addressProblem = (text: string): string | undefined =>
  /^https?:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/u.test(text) && URL.canParse(text)
    ? undefined
    : "Enter an address such as http://127.0.0.1:11434/v1 or https://llm.example.org/v1"

/** Why a text is not the name of a model. */
export const nameProblem = (provider: Provider, text: string): string | undefined => {
  if (/^https?:/iu.test(text)) return `This is an address. Enter the model's name, such as ${presetOf(provider).model}`
  if (/\s/u.test(text)) return `A model name has no spaces. Enter one such as ${presetOf(provider).model}`
  return text === "" ? `Enter the provider's name of the model, such as ${presetOf(provider).model}` : undefined
}
