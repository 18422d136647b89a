/** The answers that the flags of `choirctl init` give, so that nobody is asked for them. */
import type { Setup } from "./initHome.ts"
import type { Price } from "./knownPrices.ts"
import type { Provider } from "./modelChoices.ts"

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
