import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { setUpTelegram } from "../../support/telegramWorld.ts"
import { AGENT, nthPoll, texts, USER } from "../../support/telegramBot.ts"
import { PHONE } from "../../support/stores.ts"
import type { TelegramBot } from "../../support/testing/Telegram.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"

const start = Effect.forkChild({ startImmediately: true })

/** Lets the clock run a second at a time until a number of outcomes is there. */
const until = (outcomes: { readonly all: Effect.Effect<ReadonlyArray<string>> }, count: number, seconds = 120) =>
  Effect.gen(function* () {
    for (let second = 0; second < seconds; second += 1) {
      if ((yield* outcomes.all).length >= count) return
      yield* TestClock.adjust("1 second")
    }
  })

const sentBy = (bot: TelegramBot, method: string) =>
  Effect.map(bot.calls.all, (calls) => calls.filter((call) => call.method === method))

describe("a message to Telegram", () => {
  it.effect("has the marks of its Markdown, quotes what it answers, and stays in its topic", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      yield* bot.text(USER, "hi")
      yield* put("it is **done**", { reply_to: 1, thread_id: 7 })
      yield* start(run)
      yield* until(outcomes, 1)
      const [sent] = yield* bot.sent.all
      assert.strictEqual(sent?.text, "it is done")
      assert.deepStrictEqual(sent?.["entities"], [{ type: "bold", offset: 6, length: 4 }])
      assert.deepStrictEqual([sent?.["reply_to_message_id"], sent?.["message_thread_id"]], [1, 7])
      assert.strictEqual((yield* sentBy(bot, "sendMessage"))[0]?.parameters["parse_mode"], undefined)
    })
  )

  it.effect("goes to the chat when its topic is gone, and says so in the log", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      yield* bot.deleteTopic(7)
      yield* put("still here", { thread_id: 7 })
      yield* start(run)
      yield* until(outcomes, 2)
      assert.deepStrictEqual(yield* outcomes.all, ["failed 1", "delivered 1"])
      assert.isUndefined((yield* bot.sent.at(0))["message_thread_id"])
    })
  )

  it.effect(
    "comes without its quote, as text with its marks, where the message that it quotes is gone or may not be quoted",
    () =>
      Effect.gen(function* () {
        const { bot, outcomes, put, run } = yield* setUpTelegram
        yield* bot.text(USER, "hi")
        yield* start(run)
        const refusals = [
          "message to be replied not found",
          "REPLY_MESSAGE_ID_INVALID",
          "QUOTE_TEXT_INVALID",
          "not enough rights to reply to the message"
        ]
        for (const [index, reason] of refusals.entries()) {
          yield* bot.fail("sendMessage", fault.badRequest(reason))
          yield* put("it is **done**", { reply_to: 1 })
          yield* until(outcomes, 2 * index + 2)
          const sent = (yield* bot.sent.all).at(-1)
          assert.deepStrictEqual(
            [sent?.text, sent?.["reply_to_message_id"], sent?.["entities"]],
            ["it is done", undefined, [{ type: "bold", offset: 6, length: 4 }]],
            reason
          )
        }
        assert.deepStrictEqual([(yield* sentBy(bot, "sendDocument")).length, (yield* bot.sent.all).length], [0, 4])
      })
  )

  it.effect("waits as text, and never becomes a file, while the bot has no right to write in the chat", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      yield* start(run)
      yield* bot.fail("sendMessage", fault.badRequest("not enough rights to send text messages to the chat"), 3)
      yield* put("it is **done**")
      yield* until(outcomes, 4)
      assert.deepStrictEqual(yield* outcomes.all, ["failed 1", "failed 1", "failed 1", "delivered 1"])
      assert.deepStrictEqual(yield* texts(bot), ["it is done"])
      assert.strictEqual((yield* sentBy(bot, "sendDocument")).length, 0)
    })
  )

  it.effect("is sent plain when its marks are refused, then as a file, and fails when nothing is taken", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      yield* bot.fail("sendMessage", fault.refusedContent)
      yield* put("one **two**")
      yield* start(run)
      yield* until(outcomes, 2)
      assert.deepStrictEqual(yield* outcomes.all, ["failed 1", "delivered 1"])
      assert.deepStrictEqual(yield* texts(bot), ["one two"])
      yield* bot.fail("sendMessage", fault.refusedContent, 2)
      yield* put("three **four**")
      yield* until(outcomes, 5)
      assert.strictEqual((yield* outcomes.all).at(-1), "delivered 2")
      const { file_name } = ((yield* bot.sent.at(1))["document"] ?? {}) as { readonly file_name?: string }
      assert.strictEqual(file_name, "message.txt")
      yield* bot.fail("sendMessage", fault.refusedContent, 2)
      yield* bot.fail("sendDocument", fault.refusedContent)
      yield* put("five **six**")
      yield* until(outcomes, 10)
      const ended = (yield* outcomes.all).slice(5)
      assert.deepStrictEqual(ended.slice(0, 3), ["failed 3", "failed 3", "failed 3"])
      assert.match(ended[3] ?? "", /^given up 3: Telegram sendDocument: 400 /u)
      assert.strictEqual(ended[4], "delivered 4")
      assert.match((yield* texts(bot)).at(-1) ?? "", /^◆ A message from helper to the DM phone could not be delivered/u)
    })
  )

  it.effect("is a file without marks where it is very long, and plain messages where that is refused", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      const text = "b*`a` ".repeat(6000).trim()
      yield* put(text)
      yield* start(run)
      yield* until(outcomes, 1)
      const { file_name } = ((yield* bot.sent.at(0))["document"] ?? {}) as { readonly file_name?: string }
      assert.strictEqual(file_name, "message.txt")
      assert.lengthOf(yield* sentBy(bot, "sendMessage"), 0)
      yield* bot.fail("sendDocument", fault.refusedContent)
      yield* put(text)
      yield* until(outcomes, 3)
      assert.deepStrictEqual(yield* outcomes.all, ["delivered 1", "failed 2", "delivered 2"])
      assert.strictEqual((yield* texts(bot)).slice(1).join(" "), text)
    })
  )

  it.effect("is a rich one for those who asked for it, and plain again where Telegram refuses that", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run, world } = yield* setUpTelegram
      world.rich = true
      const table = "| a | b |\n|---|---|\n| 1 | 2 |"
      yield* put(table)
      yield* put("no table")
      yield* start(run)
      yield* until(outcomes, 2)
      const rich = yield* bot.sent.at(0)
      assert.deepInclude(rich["rich_message"], { skip_entity_detection: true })
      assert.strictEqual(rich.rich_shown?.text, `${AGENT}:\na\nb\n1\n2`)
      assert.strictEqual((yield* bot.sent.at(1)).text, "no table")
      yield* bot.fail("sendRichMessage", fault.refusedContent)
      yield* put(table)
      yield* until(outcomes, 4)
      assert.strictEqual((yield* outcomes.all).at(-1), "delivered 3")
      const aligned = "a  b\n─  ─\n1  2"
      assert.deepInclude(yield* bot.sent.at(2), {
        text: aligned,
        entities: [{ type: "pre", offset: 0, length: aligned.length }]
      })
    })
  )

  it.effect("is sent from the part that a death left unsent", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      const text = ["a", "b", "c"].map((letter) => letter.repeat(4000)).join("\n\n")
      yield* put(text)
      const first = yield* start(run)
      yield* bot.sent.at(0)
      yield* TestClock.adjust("1 second")
      yield* bot.sent.at(1)
      yield* Effect.repeat(Effect.yieldNow, { times: 50 })
      yield* Fiber.interrupt(first)
      yield* start(run)
      yield* until(outcomes, 1)
      const sent = (yield* texts(bot)).map((part) => part?.[0])
      // The part that was on its way when it died may come twice.
      assert.include([["a", "b", "c"].join(), ["a", "b", "b", "c"].join()], sent.join())
    })
  )

  it.effect("waits out a storm of 429 for its chat alone, and 5xx with growing pauses, in order and each once", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      yield* bot.fail("sendMessage", fault.tooManyRequests(5), 10)
      for (const text of ["one", "two", "three"]) yield* put(text)
      yield* start(run)
      yield* until(outcomes, 11, 200)
      const calls = yield* sentBy(bot, "sendMessage")
      const gaps = calls.slice(1, 11).map(({ at_ms }, index) => at_ms - (calls[index]?.at_ms ?? 0))
      for (const gap of gaps) assert.isAtLeast(gap, 5000)
      yield* bot.fail("sendMessage", fault.serverError, 3)
      yield* bot.fail("sendMessage", fault.badGateway, 2)
      yield* until(outcomes, 18, 200)
      assert.deepStrictEqual(yield* texts(bot), ["one", "two", "three"])
    })
  )

  it.effect("ends at once where the bot was put out of the group, and follows a group to its new id", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      yield* bot.fail("sendMessage", fault.migrated(-1005))
      yield* put("moved")
      yield* start(run)
      yield* until(outcomes, 2)
      assert.strictEqual((yield* bot.sent.at(0)).chat.id, -1005)
      yield* bot.fail("sendMessage", fault.kicked)
      yield* put("gone")
      yield* until(outcomes, 4)
      assert.match((yield* outcomes.all).at(-1) ?? "", /^given up 2: .*kicked/u)
    })
  )

  it.effect("goes to the new id of its group after a restart, and hears it there", () =>
    Effect.gen(function* () {
      const { as, bot, health, outcomes, put, stored } = yield* setUpTelegram
      const family = [{ name: PHONE, user_id: "-5", admin: false }]
      yield* bot.fail("sendMessage", fault.migrated(-1005))
      yield* put("before")
      const first = yield* start(as(family))
      yield* until(outcomes, 2)
      yield* Fiber.interrupt(first)
      yield* start(as(family))
      yield* put("after")
      yield* until(outcomes, 3)
      assert.deepStrictEqual(
        (yield* bot.sent.all).map(({ chat, text }) => [chat.id, text]),
        [
          [-1005, "before"],
          [-1005, "after"]
        ]
      )
      // The group moves once more, of which only a message tells.
      yield* bot.update({ message: { chat: { id: -1005, type: "group" }, migrate_to_chat_id: -1006, message_id: 9 } })
      yield* health.first((line) => line.startsWith("true"))
      yield* put("last")
      yield* until(outcomes, 4)
      assert.strictEqual((yield* bot.sent.at(2)).chat.id, -1006)
      assert.deepStrictEqual(yield* stored.all, [])
    })
  )

  it.effect("is still there after three hours in which Telegram said nothing", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      yield* bot.fail("*", fault.silence, 100_000)
      yield* bot.fail("getUpdates", fault.silence, 100_000)
      yield* put("late")
      yield* start(run)
      yield* nthPoll(bot, 1)
      for (let minute = 0; minute < 180; minute += 1) yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* texts(bot), [])
      assert.isAbove((yield* outcomes.all).length, 10)
      yield* bot.heal
      const told = /^◆ Telegram could not be reached for 1[789]\d minutes\. Delayed until now: 1 message for you\.$/u
      // Either may be sent first, since the bot polls and sends beside each other.
      yield* Effect.repeat(TestClock.adjust("1 second"), {
        until: () =>
          Effect.map(texts(bot), (sent) => sent.includes("late") && sent.some((text) => told.test(text ?? "")))
      })
      assert.lengthOf(yield* texts(bot), 2)
    })
  )
})
