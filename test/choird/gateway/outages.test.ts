import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { setUpTelegram } from "../../support/telegramWorld.ts"
import { nthPoll, texts, USER } from "../../support/telegramBot.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"

const start = Effect.forkChild({ startImmediately: true })

type Row = { readonly dm: string; readonly text: string }

/** The notices to the console of an admin. */
const atDesk = (rows: ReadonlyArray<Row>) => rows.flatMap(({ dm, text }) => (dm === "desk" ? [text] : []))

/** Lets the time go by in seconds until something is true. */
const until = (isTrue: () => boolean) =>
  Effect.repeat(Effect.andThen(TestClock.adjust("1 second"), Effect.yieldNow), { until: () => Effect.sync(isTrue) })

/** Lets the bot fail this often more. */
const failures = (health: { readonly all: Effect.Effect<ReadonlyArray<string>> }, count: number) =>
  Effect.gen(function* () {
    const failed = Effect.map(health.all, (lines) => lines.filter((line) => line.startsWith("false")).length)
    const before = yield* failed
    yield* Effect.repeat(TestClock.adjust("1 second"), {
      until: () => Effect.map(failed, (now) => now >= before + count)
    })
  })

/** Lets the time go by until a poll succeeds. */
const reached = (health: { readonly all: Effect.Effect<ReadonlyArray<string>> }) =>
  Effect.repeat(TestClock.adjust("1 second"), {
    until: () => Effect.map(health.all, (lines) => lines.some((line) => line.startsWith("true")))
  })

describe("a bot that cannot be reached", () => {
  it.effect("is told to the console after 90 seconds of silence, and once in three hours of it (R44)", () =>
    Effect.gen(function* () {
      const { bot, health, rows, run } = yield* setUpTelegram
      yield* bot.fail("getUpdates", fault.silence, 1000)
      yield* start(run)
      yield* nthPoll(bot, 1)
      yield* TestClock.adjust("89 seconds")
      assert.deepStrictEqual(atDesk(rows), [])
      yield* TestClock.adjust("1 second")
      yield* until(() => atDesk(rows).length === 1)
      assert.match(atDesk(rows)[0] ?? "", /^The bot bot cannot be reached: no successful poll for 9\d s\. /u)
      // Ninety seconds of silence and up to a minute of pause each.
      yield* failures(health, 72)
      assert.strictEqual(atDesk(rows).length, 1)
    })
  )

  it.effect("is told within 90 seconds also while each poll is refused and the pauses grow", () =>
    Effect.gen(function* () {
      const { bot, rows, run } = yield* setUpTelegram
      yield* bot.fail("getUpdates", fault.serverError, 1000)
      yield* start(run)
      yield* nthPoll(bot, 1)
      let seconds = 0
      yield* until(() => ++seconds >= 89)
      assert.deepStrictEqual(atDesk(rows), [])
      yield* until(() => ++seconds >= 91)
      assert.match(atDesk(rows)[0] ?? "", /no successful poll for 9\d s\. Telegram getUpdates: 500/u)
    })
  )

  it.effect("is told at once when its token is refused, with the fix", () =>
    Effect.gen(function* () {
      const { bot, rows, run } = yield* setUpTelegram
      yield* bot.fail("getUpdates", fault.unauthorized, 5)
      yield* start(run)
      yield* nthPoll(bot, 1)
      yield* Effect.repeat(Effect.yieldNow, { until: () => Effect.sync(() => atDesk(rows).length > 0) })
      assert.match(atDesk(rows)[0] ?? "", /401 .*choirctl secret set/u)
    })
  )

  it.effect("is told of another program at its token when the conflict does not pass", () =>
    Effect.gen(function* () {
      const { bot, health, rows, run } = yield* setUpTelegram
      yield* bot.fail("getUpdates", fault.conflict, 2)
      yield* start(run)
      yield* failures(health, 2)
      yield* bot.text(USER, "hello")
      yield* reached(health)
      assert.deepStrictEqual(atDesk(rows), [])
      yield* bot.fail("getUpdates", fault.conflict, 100)
      yield* until(() => atDesk(rows).length > 0)
      assert.match(atDesk(rows)[0] ?? "", /another program is polling with the same token/u)
    })
  )

  it.effect("tells nobody of a short failure", () =>
    Effect.gen(function* () {
      const { bot, health, rows, run } = yield* setUpTelegram
      yield* bot.fail("getUpdates", fault.badGateway, 3)
      yield* start(run)
      yield* failures(health, 3)
      yield* bot.text(USER, "hello")
      yield* reached(health)
      assert.deepStrictEqual(rows, [])
    })
  )

  it.effect("says in its chats after more than two minutes what waited", () =>
    Effect.gen(function* () {
      const { bot, health, put, rows, run, stored } = yield* setUpTelegram
      yield* bot.fail("*", fault.badGateway, 10_000)
      yield* bot.fail("getUpdates", fault.badGateway, 10_000)
      yield* put("one")
      yield* put("two")
      yield* start(run)
      // 1, 2, 4, 8, 16, 32 and 60 seconds of pause.
      yield* failures(health, 8)
      yield* bot.text(USER, "are you there?")
      yield* bot.heal
      yield* until(() => rows.some(({ text }) => text.startsWith("Telegram could not be reached")))
      assert.strictEqual((yield* stored.at(0)).text, "are you there?")
      yield* Effect.repeat(TestClock.adjust("1 second"), {
        until: () => Effect.map(bot.sent.all, (sent) => sent.length === 3)
      })
      const shown = yield* texts(bot)
      assert.deepStrictEqual(shown.slice(0, 2), ["one", "two"])
      assert.match(
        shown[2] ?? "",
        /^◆ Telegram could not be reached for [23] minutes\. Delayed until now: 2 messages for you and 1 from you\.$/u
      )
    })
  )
})
