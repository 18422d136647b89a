/**
 * The phone of a person who sets up a home: they send a code to their bot, which choirctl reads itself, since choird does not run yet. Others who write
 * to the bot meanwhile hear nothing, and what they wrote before the code is not read again.
 */
import { Effect, Redacted, Result, Schema } from "effect"
import { ask } from "#src/choirctl/doctor/checkHttp.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { PAIRING_BOT_TRIES_MAX, PAIRING_TRIES_MAX, pairingCodeIn } from "#src/shared/text/pairingCode.ts"

/** How long Telegram holds one request open, in seconds. */
const POLL_S = 20
/** The pause after a request that failed. */
const AGAIN_MS = 3000
const CONFLICT = 409
const GREETING = "◆ You are in. Finish the setup at your terminal; then write here."

/** Why no code is waited for any longer: somebody else reads the bot's messages, or strangers guess. */
class NotPaired extends Schema.TaggedError<NotPaired>()("NotPaired", { problem: Schema.String }) {
  override get message() {
    return this.problem
  }
}

const Updates = Schema.fromJsonString(
  Schema.Struct({
    result: Schema.Array(
      Schema.Struct({
        update_id: Schema.Int,
        message: Schema.optionalKey(
          Schema.Struct({
            text: Schema.optionalKey(Schema.String),
            chat: Schema.Struct({ id: Schema.Int, type: Schema.String }),
            from: Schema.optionalKey(Schema.Struct({ id: Schema.Int, first_name: Schema.optionalKey(Schema.String) }))
          })
        )
      })
    )
  })
)
const decode = Schema.decodeUnknownResult(Updates)

interface Bot {
  readonly api_root: string
  readonly token: Redacted.Redacted
}

const callBot = ({ api_root, token }: Bot, method: string, parameters: object) =>
  ask(`${api_root.replace(/\/+$/u, "")}/bot${Redacted.value(token)}/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(parameters)
  })

/** Tells a wrong code from the right one, until there were too many. */
const makeGuesses = (code: string) => {
  let wrong = 0
  const wrongOf = new BoundedMap<number, number>(PAIRING_BOT_TRIES_MAX)
  return {
    areTooMany: () => wrong >= PAIRING_BOT_TRIES_MAX,
    isCode: (user: number, text: string) => {
      const found = pairingCodeIn(text)
      const tries = wrongOf.get(user) ?? 0
      if (found === undefined || tries >= PAIRING_TRIES_MAX) return false
      if (found === code) return true
      wrong += 1
      wrongOf.set(user, tries + 1)
      return false
    }
  }
}

/** Waits until somebody sends the code to the bot in a private chat, and answers who it is. The bot greets them. */
export const awaitCode = Effect.fn("awaitCode")(function* (bot: Bot, code: string) {
  const guesses = makeGuesses(code)
  let offset = 0
  const poll = (timeout: number) => callBot(bot, "getUpdates", { offset, timeout, allowed_updates: ["message"] })
  while (!guesses.areTooMany()) {
    const answer = yield* Effect.result(poll(POLL_S))
    if (Result.isSuccess(answer) && answer.success.status === CONFLICT)
      return yield* new NotPaired({ problem: "another program reads the messages of this bot" })
    const updates = Result.isSuccess(answer) ? decode(answer.success.text) : undefined
    if (updates === undefined || Result.isFailure(updates)) {
      yield* Effect.sleep(AGAIN_MS)
      continue
    }
    for (const { message, update_id } of updates.success.result) {
      offset = update_id + 1
      const user = message?.from?.id
      if (message?.chat.type !== "private" || user === undefined || !guesses.isCode(user, message.text ?? "")) continue
      // Confirms what was read, so that choird does not take the code for a message.
      yield* Effect.ignore(poll(0))
      yield* Effect.ignore(callBot(bot, "sendMessage", { chat_id: message.chat.id, text: GREETING }))
      return { id: String(user), first_name: message.from?.first_name }
    }
  }
  return yield* new NotPaired({ problem: "strangers sent too many wrong codes to this bot" })
})
