/** The phone of a test: which lines it shows for what happened at the Telegram double. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { makeTelegram, type TelegramBot } from "../support/testing/Telegram.ts"
import { Phone } from "./Phone.ts"

const ADA = 4711
const TOKEN = "1000:secret"

/** A bot with a way to call its methods as choird does. */
const atBot = (
  body: (
    bot: TelegramBot,
    call: (method: string, parameters: object) => Effect.Effect<{ readonly message_id: number }>
  ) => Effect.Effect<void, never, Scope.Scope>
) =>
  Effect.gen(function* () {
    const telegram = yield* makeTelegram
    const bot = telegram.bot(TOKEN)
    yield* bot.name(ADA, "Ada")
    yield* body(bot, (method, parameters) =>
      Effect.promise(async () => {
        const response = await fetch(`${telegram.url}/bot${TOKEN}/${method}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ chat_id: ADA, ...parameters })
        })
        const { ok, result } = (await response.json()) as { ok: boolean; result: { message_id: number } }
        assert.isTrue(ok, method)
        return result
      })
    )
  }).pipe(Effect.scoped)

const shown = (bot: TelegramBot) =>
  Effect.map(bot.changes.all, (changes) => {
    const phone = new Phone()
    phone.readAll(changes)
    return { lines: phone.bubbles.map(({ from = "bot", lines }) => [from, ...lines]), isTyping: phone.isTyping(ADA) }
  })

describe("the phone of a test", () => {
  it.live("shows words, the answer that quotes them, and typing until it comes", () =>
    atBot((bot, call) =>
      Effect.gen(function* () {
        yield* bot.text(ADA, "how are you?")
        yield* call("setMessageReaction", { message_id: 1, reaction: [{ type: "emoji", emoji: "👀" }] })
        yield* call("sendChatAction", { action: "typing" })
        assert.deepStrictEqual(yield* shown(bot), { lines: [["Ada", "how are you?", "👀"]], isTyping: true })
        yield* call("sendMessage", { text: "Fine.\nAnd you?", reply_parameters: { message_id: 1 } })
        yield* call("setMessageReaction", { message_id: 1, reaction: [] })
        assert.deepStrictEqual(yield* shown(bot), {
          lines: [
            ["Ada", "how are you?"],
            ["bot", "↩ how are you?", "Fine.", "And you?"]
          ],
          isTyping: false
        })
      })
    )
  )

  it.live("shows buttons, what an edit makes of them, and the note that a tap gets", () =>
    atBot((bot, call) =>
      Effect.gen(function* () {
        const inline_keyboard = [
          [
            { text: "Approve", callback_data: "a" },
            { text: "Reject", callback_data: "r" }
          ]
        ]
        const { message_id } = yield* call("sendMessage", { text: "May I?", reply_markup: { inline_keyboard } })
        assert.deepStrictEqual((yield* shown(bot)).lines, [["bot", "May I?", "( Approve ) ( Reject )"]])
        const card = yield* bot.message(message_id)
        yield* bot.tap(ADA, card ?? assert.fail("no card"), "a")
        const [{ callback_query } = assert.fail("no tap")] = (yield* call(
          "getUpdates",
          {}
        )) as unknown as ReadonlyArray<{
          readonly callback_query: { readonly id: string }
        }>
        yield* call("answerCallbackQuery", { callback_query_id: callback_query.id, text: "Approved." })
        yield* call("editMessageText", { message_id, text: "May I? Approved." })
        assert.deepStrictEqual((yield* shown(bot)).lines, [
          ["bot", "May I? Approved."],
          ["bot", "(a note pops up: Approved.)"]
        ])
      })
    )
  )

  it.live("shows photos and files by name, and no message that was deleted", () =>
    atBot((bot, call) =>
      Effect.gen(function* () {
        const bytes = Uint8Array.from([1])
        yield* bot.file(ADA, "photo", { name: "p.jpg", mime: "image/jpeg", bytes })
        yield* bot.file(ADA, "document", { name: "plan.txt", mime: "text/plain", bytes })
        const { message_id } = yield* call("sendMessage", { text: "one moment" })
        yield* call("deleteMessage", { message_id })
        assert.deepStrictEqual((yield* shown(bot)).lines, [
          ["Ada", "[photo]"],
          ["Ada", "[plan.txt]"]
        ])
      })
    )
  )
})
