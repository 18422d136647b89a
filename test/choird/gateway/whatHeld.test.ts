/** Messages of ordinary shapes, each through the Bot API's double, as the agent reads them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { nthPoll, polls, texts, USER } from "../../support/telegramBot.ts"
import { setUpTelegram } from "../../support/telegramWorld.ts"
import { origins } from "../../support/testing/telegramContent.ts"
import type { JsonObject } from "../../support/testing/telegramMethods.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"

const start = Effect.forkChild({ startImmediately: true })

const MARKS = Array.from({ length: 100 }, (_, index) => ({ type: "bold", offset: 2 * index, length: 1 }))

/** Contents of messages, and what the agent reads of them. */
const READ: Readonly<Record<string, readonly [content: JsonObject, text: string]>> = {
  "a hundred marks": [{ text: "a ".repeat(100).trim(), entities: MARKS }, "a ".repeat(100).trim()],
  "marks of every kind but links and code": [
    {
      text: "@ada #tag $USD /x a@b.example +49 bold",
      entities: ["mention", "hashtag", "cashtag", "bot_command", "email", "phone_number", "bold", "italic", "underline"]
        .concat(["strikethrough", "spoiler", "blockquote", "expandable_blockquote", "custom_emoji", "date_time"])
        .map((type) => ({ type, offset: 0, length: 4 }))
    },
    "@ada #tag $USD /x a@b.example +49 bold"
  ],
  "a slash alone": [{ text: "/" }, "/"],
  "a slash behind a word": [{ text: "and/or" }, "and/or"],
  "a command behind a word": [{ text: "send /status please" }, "send /status please"],
  "a path": [{ text: "/usr/bin/node" }, "/usr/bin/node"],
  "a comment of code": [{ text: "// not done" }, "// not done"],
  "another script": [{ text: "שלום עולם" }, "שלום עולם"],
  "emoji alone": [{ text: "👩‍👩‍👧‍👦🇩🇪" }, "👩‍👩‍👧‍👦🇩🇪"],
  "blanks and lines within": [{ text: "a\n\n  b\t c" }, "a\n\n  b\t c"],
  "a text of full length": [{ text: "x".repeat(2000) }, "x".repeat(2000)],
  "a message with protected content": [{ text: "keep", has_protected_content: true }, "keep"],
  "a scheduled message": [{ text: "later", is_from_offline: true }, "later"],
  "an effect": [{ text: "yay", effect_id: "5104841245755180586" }, "yay"],
  "options of a preview": [
    { text: "https://a.example", link_preview_options: { is_disabled: true } },
    "https://a.example"
  ]
}

describe("ordinary messages", () => {
  it.effect("are read as they were written", () =>
    Effect.gen(function* () {
      const { bot, run, stored } = yield* setUpTelegram
      yield* start(run)
      for (const [index, [name, [content, text]]] of Object.entries(READ).entries()) {
        yield* bot.send(USER, content)
        assert.deepStrictEqual([name, (yield* stored.at(index)).text], [name, text])
      }
    })
  )

  it.effect("that are commands are so in any case, and with the bot's name", () =>
    Effect.gen(function* () {
      const { bot, orders, run } = yield* setUpTelegram
      yield* start(run)
      for (const [index, text] of ["/COMPACT", "/Compact@Double_Bot", "/compact"].entries()) {
        yield* bot.text(USER, text)
        assert.deepStrictEqual((yield* orders.at(index)).order, { type: "Compact" })
      }
    })
  )

  it.effect("may have ids that are far apart, and a forwarded command is not a command", () =>
    Effect.gen(function* () {
      const { bot, orders, run, stored } = yield* setUpTelegram
      yield* start(run)
      yield* nthPoll(bot, 1)
      for (let skipped = 0; skipped < 500; skipped += 1) yield* bot.update({ my_chat_member: {} })
      const id = yield* bot.send(USER, { text: "/compact", forward_origin: origins.hidden("Bob") })
      assert.match((yield* stored.at(0)).text, /^\[Forwarded .*\]\n\/compact$/u)
      yield* nthPoll(bot, 2)
      yield* Effect.repeat(Effect.yieldNow, {
        until: () => Effect.map(polls(bot), (all) => all.at(-1)?.parameters["offset"] === id + 1)
      })
      assert.deepStrictEqual(yield* orders.all, [])
    })
  )

  it.effect("are answered in the chat where their topic is gone or closed", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      yield* start(run)
      for (const [index, reason] of ["message thread not found", "TOPIC_CLOSED", "TOPIC_DELETED"].entries()) {
        yield* bot.fail("sendMessage", fault.badRequest(reason))
        yield* put(`answer ${index}`, { thread_id: 40 + index })
        while ((yield* outcomes.all).filter((line) => line.startsWith("delivered")).length <= index)
          yield* TestClock.adjust("1 second")
      }
      assert.deepStrictEqual(yield* texts(bot), ["answer 0", "answer 1", "answer 2"])
      assert.isTrue((yield* bot.sent.all).every((sent) => sent["message_thread_id"] === undefined))
    })
  )
})
