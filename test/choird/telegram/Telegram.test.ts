import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { PHONE } from "../../support/stores.ts"
import { AGENT, BOT, DMS, nthPoll, polls, SESSION, texts, USER } from "../../support/telegramBot.ts"
import { refusalsIn } from "../../support/audited.ts"
import { setUpTelegram } from "../../support/telegramWorld.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"

const start = Effect.forkChild({ startImmediately: true })

describe("Telegram inbound", () => {
  it.effect("confirms nothing that the database did not take, and stores it when the database is back (R42)", () =>
    Effect.gen(function* () {
      const { bot, health, run, stored, world } = yield* setUpTelegram
      world.away = true
      yield* start(run)
      yield* nthPoll(bot, 1)
      const id = yield* bot.text(USER, "hello")
      yield* health.first((line) => line.startsWith("false"))
      world.away = false
      yield* TestClock.adjust("1 second")
      assert.isUndefined((yield* nthPoll(bot, 2)).parameters["offset"])
      assert.propertyVal(yield* stored.at(0), "text", "hello")
      assert.strictEqual((yield* nthPoll(bot, 3)).parameters["offset"], id + 1)
    })
  )

  it.effect("says of a defect where the log has it, never that the database is away, and tries again (R78)", () =>
    Effect.gen(function* () {
      const { bot, health, run, stored, world } = yield* setUpTelegram
      world.broken = true
      yield* start(run)
      yield* nthPoll(bot, 1)
      yield* bot.text(USER, "hello")
      const line = yield* health.first((line) => line.startsWith("false"))
      assert.match(line, /choird failed; the log of choird says why under ref [0-9a-f]{8}$/u)
      world.broken = false
      yield* TestClock.adjust("1 second")
      assert.propertyVal(yield* stored.at(0), "text", "hello")
    })
  )

  it.effect("stores a text of a configured person, and confirms it with the next poll (E6)", () =>
    Effect.gen(function* () {
      const { bot, run, stored } = yield* setUpTelegram
      yield* start(run)
      yield* nthPoll(bot, 1)
      const id = yield* bot.text(USER, "hello")
      const message = {
        gateway: BOT,
        client_id: `1000:${id}`,
        agent_id: AGENT,
        dm: PHONE,
        text: "hello",
        forwarded: false,
        attachments: [],
        message_id: 1
      }
      const { join, ...rest } = yield* stored.at(0)
      assert.deepStrictEqual(rest, message)
      assert.propertyVal(join, "quiet_ms", 0)
      const next = yield* nthPoll(bot, 2)
      assert.strictEqual(next.parameters["offset"], id + 1)
      assert.deepStrictEqual(next.parameters["allowed_updates"], [
        "message",
        "edited_message",
        "callback_query",
        "stopped_message_generation"
      ])
      yield* bot.text(USER, "second")
      yield* stored.at(1)
      assert.isAtMost(yield* bot.pending, 1)
      yield* bot.calls.first(({ method }) => method === "setMyCommands")
    })
  )

  it.effect("tells Telegram the menu where it shows another one, and not again at the next connection (E6)", () =>
    Effect.gen(function* () {
      const { bot, run } = yield* setUpTelegram
      const menus = Effect.map(bot.calls.all, (calls) => calls.filter(({ method }) => method.endsWith("MyCommands")))
      const first = yield* start(run)
      yield* bot.calls.first(({ method }) => method === "setMyCommands")
      yield* Fiber.interrupt(first)
      yield* start(run)
      // The look at the person's own menu comes after the second look at that of all chats.
      yield* bot.calls.first(({ method, parameters }) => method === "getMyCommands" && "scope" in parameters)
      assert.strictEqual((yield* menus).filter(({ method }) => method === "setMyCommands").length, 1)
      assert.isUndefined(yield* bot.commandsOf(USER))
    })
  )

  it.effect("gives an admin's chat a menu of its own, and takes it away with the right", () =>
    Effect.gen(function* () {
      const { as, bot } = yield* setUpTelegram
      const first = yield* start(as([{ name: PHONE, user_id: String(USER), admin: true }]))
      yield* Effect.repeat(Effect.yieldNow, {
        until: () => Effect.map(bot.commandsOf(USER), (menu) => menu !== undefined)
      })
      const names = (menu: unknown) =>
        (menu as ReadonlyArray<{ readonly command: string }>).map(({ command }) => command)
      assert.include(names(yield* bot.commandsOf(USER)), "update_all")
      assert.notInclude(names(yield* bot.commands), "update_all")
      yield* Fiber.interrupt(first)
      yield* start(as(DMS))
      yield* bot.calls.first(({ method }) => method === "deleteMyCommands")
    })
  )

  it.effect("drops strangers, groups, bots and nonsense without a word, and answers what it cannot take", () =>
    Effect.gen(function* () {
      const { bot, refusals, run, stored } = yield* setUpTelegram
      const chat = { id: USER, type: "private" }
      const odd: ReadonlyArray<Record<string, unknown>> = [
        { message: { chat: { id: -5, type: "group" }, from: { id: USER, is_bot: false }, text: "in a group" } },
        { message: { chat, from: { id: 2, is_bot: false }, text: "in another's name" } },
        { message: { chat, from: { id: USER, is_bot: true }, text: "from a bot" } },
        { message: { chat, text: 5 } },
        { message: "text" },
        { edited_message: { chat, from: { id: USER, is_bot: false }, text: "edited" } },
        { callback_query: { id: "1" } }
      ]
      for (const content of odd) yield* bot.update(content)
      yield* bot.text(2, "a stranger")
      yield* bot.text(USER, "/nonsense")
      yield* bot.update({ message: { chat, from: { id: USER, is_bot: false }, location: {} } })
      yield* bot.text(USER, "/status")
      yield* bot.text(USER, "the only one")
      yield* start(run)
      assert.strictEqual((yield* stored.at(0)).text, "the only one")
      yield* Effect.forEach([1, 2, 3], () => TestClock.adjust("1 second"))
      yield* bot.sent.at(0)
      yield* TestClock.adjust("1 second")
      yield* bot.sent.at(1)
      yield* TestClock.adjust("1 second")
      yield* bot.sent.at(2)
      const answers = yield* texts(bot)
      assert.match(answers[0] ?? "", /Unknown command \/nonsense\./u)
      assert.match(answers[1] ?? "", /only read text/u)
      assert.match(
        answers[2] ?? "",
        /^◆ helper has been running since .*\d\d:\d\d UTC\.\nIt is idle\.\nUsed: 0 of [\d,]+ tokens, 0 of [\d,]+ tool calls\.$/u
      )
      assert.strictEqual((yield* stored.all).length, 1)
      // What is from nobody, or of no person's chat, is no action of anybody's (R77).
      assert.deepStrictEqual(refusalsIn(refusals), ["STRANGER", "NO_TEXT"])
    })
  )

  it.effect("takes a command to the session of the person's agent, after what was said before it", () =>
    Effect.gen(function* () {
      const { bot, orders, run, stored } = yield* setUpTelegram
      yield* bot.text(USER, "first")
      const id = yield* bot.text(USER, "/inject@double_bot  use the\nother branch")
      yield* bot.text(2, "/inject from a stranger")
      yield* bot.text(USER, "/inject")
      yield* bot.text(USER, "/compact")
      yield* bot.text(USER, "last")
      yield* start(run)
      const injected = yield* orders.at(0)
      assert.strictEqual((yield* stored.all).length, 1)
      const request = { session_id: SESSION, request_id: `bot:1000:${id}`, who: "gateway:bot", wait_ms: 0 }
      assert.deepStrictEqual(injected, { request, order: { type: "Inject", content: "use the\nother branch" } })
      assert.deepStrictEqual((yield* orders.at(1)).order, { type: "Compact" })
      assert.strictEqual((yield* stored.at(1)).text, "last")
      for (const index of [0, 1, 2]) {
        yield* bot.sent.at(index)
        yield* TestClock.adjust("1 second")
      }
      assert.deepStrictEqual(yield* texts(bot), [
        "◆ Noted. The agent is idle and will read this with your next message.",
        "◆ Usage: /inject <message>",
        "◆ The older part of the conversation is being summarised."
      ])
      assert.strictEqual((yield* orders.all).length, 2)
    })
  )

  it.effect("refuses politely when the agent's queue is full (R45)", () =>
    Effect.gen(function* () {
      const { bot, refusals, run, world } = yield* setUpTelegram
      world.full = true
      yield* bot.text(USER, "one more")
      yield* start(run)
      assert.match((yield* bot.sent.at(0)).text ?? "", /^◆ My queue is full \(500 messages\)/u)
      assert.deepStrictEqual(refusalsIn(refusals), ["QUEUE_FULL"])
    })
  )

  it.effect("waits 1, 2, 4 … 60 s after 409, 401 and 5xx, says so, and goes on by itself (R44)", () =>
    Effect.gen(function* () {
      const { bot, health, run, stored, telegram } = yield* setUpTelegram
      const other = telegram.bot("2000:other")
      yield* bot.fail("getUpdates", fault.conflict, 3)
      yield* bot.fail("getUpdates", fault.unauthorized, 3)
      yield* bot.fail("getUpdates", fault.badGateway, 2)
      yield* start(run)
      yield* nthPoll(bot, 1)
      const pauses_s = [1, 2, 4, 8, 16, 32, 60, 60]
      for (const [index, pause_s] of pauses_s.entries()) {
        yield* health.at(index)
        yield* TestClock.adjust(pause_s * 1000 - 1)
        assert.strictEqual((yield* polls(bot)).length, index + 1)
        yield* TestClock.adjust(1)
        yield* nthPoll(bot, index + 2)
      }
      const said = yield* health.all
      assert.match(said[0] ?? "", /^false .*409 .*another program is polling with the same token/u)
      assert.match(said[3] ?? "", /^false .*401 .*choirctl secret set/u)
      assert.match(said[6] ?? "", /^false .*no usable answer/u)
      assert.notInclude(said.join(), bot.token)
      yield* bot.text(USER, "again")
      assert.strictEqual((yield* stored.at(0)).text, "again")
      assert.match((yield* health.at(8)) ?? "", /^true/u)
      assert.deepStrictEqual(yield* other.calls.all, [])
    })
  )

  it.effect("gives up a poll that is silent for 90 s and starts another (R44)", () =>
    Effect.gen(function* () {
      const { bot, health, run, stored } = yield* setUpTelegram
      yield* bot.fail("getUpdates", fault.silence)
      yield* start(run)
      yield* nthPoll(bot, 1)
      yield* TestClock.adjust("90 seconds")
      assert.match(yield* health.at(0), /no answer within 90 s/u)
      yield* TestClock.adjust("1 second")
      yield* nthPoll(bot, 2)
      yield* bot.text(USER, "awake")
      assert.strictEqual((yield* stored.at(0)).text, "awake")
    })
  )
})

describe("a file on Telegram", () => {
  it.effect("comes with its caption, which is never a command; what did not reach the agent is told to both", () =>
    Effect.gen(function* () {
      const { bot, run, stored } = yield* setUpTelegram
      const place = { chat: { id: USER, type: "private" }, from: { id: USER, is_bot: false } }
      const document = { file_id: "nothing", file_name: "a.txt" }
      yield* bot.update({ message: { ...place, caption: "/stop", document } })
      yield* start(run)
      const why = 'The document "a.txt" did not reach the agent: Bad Request: wrong file_id'
      const message = yield* stored.at(0)
      assert.isTrue(message.text.startsWith(`/stop\n${why}`), message.text)
      assert.deepStrictEqual(message.attachments, [])
      yield* TestClock.adjust("1 second")
      assert.include((yield* bot.sent.at(0)).text, why)
    })
  )
})

describe("Telegram outbound", () => {
  it.effect("sends in order, one message a second to a chat (R43)", () =>
    Effect.gen(function* () {
      const { bot, put, run } = yield* setUpTelegram
      for (const text of ["one", "two", "three"]) yield* put(text)
      yield* start(run)
      yield* bot.sent.at(0)
      for (const index of [1, 2]) {
        yield* TestClock.adjust(999)
        assert.strictEqual((yield* bot.sent.all).length, index)
        yield* TestClock.adjust(1)
        yield* bot.sent.at(index)
      }
      assert.deepStrictEqual(yield* texts(bot), ["one", "two", "three"])
    })
  )

  it.effect("obeys retry_after, and keeps what a person who blocked the bot has not got (R43)", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      yield* bot.fail("sendMessage", fault.tooManyRequests(30))
      yield* put("first")
      yield* put("second")
      yield* start(run)
      assert.strictEqual(yield* outcomes.at(0), "failed 1")
      yield* TestClock.adjust("29 seconds")
      assert.strictEqual((yield* bot.sent.all).length, 0)
      yield* bot.fail("sendMessage", fault.blocked)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* outcomes.at(1), "failed 1")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* outcomes.at(2), "delivered 1")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* outcomes.at(3), "delivered 2")
      assert.deepStrictEqual(yield* texts(bot), ["first", "second"])
    })
  )

  it.effect("sends again what it cannot know to have arrived, and gives up what Telegram will never take (R43)", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      yield* bot.fail("sendMessage", fault.cutAfterAccept)
      yield* put("cut")
      yield* put("refused")
      yield* put("after")
      yield* start(run)
      assert.match(yield* outcomes.at(0), /^failed 1$/u)
      yield* TestClock.adjust("1 second")
      assert.match(yield* outcomes.at(1), /^delivered 1$/u)
      // Plain, and then as a file.
      yield* bot.fail("sendMessage", fault.refusedContent)
      yield* bot.fail("sendDocument", fault.refusedContent)
      const expected = [/^failed 2$/u, /^failed 2$/u, /^given up 2: .* 400 /u, /^delivered 3$/u]
      yield* Effect.repeat(TestClock.adjust("1 second"), {
        until: () => Effect.map(outcomes.all, (all) => all.length >= expected.length + 2)
      })
      for (const [index, outcome] of expected.entries()) assert.match(yield* outcomes.at(index + 2), outcome)
      yield* bot.sent.at(3)
      const [cut, again, after, told] = yield* texts(bot)
      assert.deepStrictEqual([cut, again, after], ["cut", "cut", "after"])
      assert.match(told ?? "", /^◆ A message from helper to the DM phone could not be delivered: Bad Request/u)
    })
  )

  it.effect("keeps what a person gets who has not written to the bot yet", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      yield* bot.fail("sendMessage", fault.unknownChat)
      yield* put("welcome")
      yield* start(run)
      yield* outcomes.at(0)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* outcomes.at(1), "delivered 1")
    })
  )

  it.effect("gives up after a day what a person gets who has blocked the bot, and then goes on", () =>
    Effect.gen(function* () {
      const { bot, outcomes, put, run } = yield* setUpTelegram
      const day_ms = 24 * 60 * 60 * 1000
      yield* TestClock.setTime(2 * day_ms)
      yield* bot.fail("sendMessage", fault.blocked)
      yield* put("old", { created_ms: 0 })
      yield* put("new", { created_ms: 2 * day_ms })
      yield* start(run)
      assert.strictEqual(yield* outcomes.at(0), "failed 1")
      assert.match(yield* outcomes.at(1), /^given up 1: .*403 Forbidden: bot was blocked/u)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* outcomes.at(2), "delivered 2")
      assert.deepStrictEqual(yield* texts(bot), ["new"])
    })
  )

  it.effect("sends a reply before the notices that wait", () =>
    Effect.gen(function* () {
      const { bot, put, run } = yield* setUpTelegram
      for (const id of [1, 2]) {
        yield* put(`card ${id}`, { kind: "notice", source: "choird", source_id: `approval/${id}` })
      }
      yield* put("the answer")
      yield* start(run)
      for (const index of [0, 1, 2]) {
        yield* bot.sent.at(index)
        yield* TestClock.adjust("1 second")
      }
      assert.deepStrictEqual(yield* texts(bot), ["the answer", "◆ card 1", "◆ card 2"])
    })
  )
})
