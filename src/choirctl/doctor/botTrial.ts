/** One getMe: whether a Telegram bot's token works, and whose it is. */
import { Effect, Redacted, Result, Schema } from "effect"
import { ask, TrialFailed } from "./trialHttp.ts"

/** Telegram's own servers, where config.json names no others. */
export const TELEGRAM_API_ROOT = "https://api.telegram.org"

const Me = Schema.fromJsonString(
  Schema.Struct({ result: Schema.Struct({ username: Schema.String.check(Schema.isPattern(/^\w{1,64}$/u)) }) })
)
const decode = Schema.decodeUnknownResult(Me)

/** A token as @BotFather hands it out. Anything else would only end up in an address. */
export const looksLikeToken = (token: string): boolean => /^\d+:[\w-]+$/u.test(token)

const wrongToken = (problem: string) =>
  new TrialFailed({ obstacle: "key", problem, fix: "Copy the bot's token again from @BotFather" })

/** Asks Telegram who the bot is; answers its name, without the @. */
export const tryBot = Effect.fn("tryBot")(function* (api_root: string, token: Redacted.Redacted) {
  const value = Redacted.value(token)
  if (!looksLikeToken(value)) return yield* wrongToken("this is not a bot's token, which looks like 123456789:AAE...")
  const { host } = new URL(api_root)
  const { status, text } = yield* ask(`${api_root.replace(/\/+$/u, "")}/bot${value}/getMe`, {})
  if (status === 401 || status === 404) return yield* wrongToken(`Telegram refuses the bot's token (${status})`)
  if (status === 429 || status >= 500)
    return yield* new TrialFailed({
      obstacle: "busy",
      problem: `${host} cannot answer at the moment (${status})`,
      fix: "Try again later"
    })
  const me = decode(text)
  if (status !== 200 || Result.isFailure(me))
    return yield* new TrialFailed({
      obstacle: "address",
      problem: `${host} does not answer as Telegram does (${status})`,
      fix: "Check api_root of the gateway"
    })
  return me.success.result.username
})
