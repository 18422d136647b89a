import { assert, describe, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { InboxId } from "#schema/Ids.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { runTelegram } from "#src/choird/telegram/Telegram.ts"
import { TelegramApi } from "#src/choird/telegram/TelegramApi.ts"
import { database } from "../../support/choird.ts"
import { PHONE, stores } from "../../support/stores.ts"
import { AGENT, BOT, DMS, gateways, lifecycle, nthPoll, SESSION, texts, USER } from "../../support/telegramBot.ts"
import { makeTelegram } from "../../support/testing/Telegram.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

const allDelivered = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const undelivered = sql`SELECT 1 FROM choir_control.outbox WHERE delivered_at IS NULL`
  yield* Effect.repeat(undelivered, { until: (rows) => rows.length === 0 })
})

const start = Effect.forkChild({ startImmediately: true })

describe("Telegram over the stores", () => {
  layer(stores.pipe(Layer.provideMerge(database)), { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    /** A bot of its own for each test, since choird keeps what it read of each. */
    const real = Effect.fnUntraced(function* (id: number) {
      const telegram = yield* makeTelegram
      const bot = telegram.bot(`${id}:secret`)
      const api = TelegramApi.layer(Redacted.make(bot.token), telegram.url)
      const services = gateways.pipe(
        Layer.provideMerge(
          Layer.mergeAll(api, lifecycle, Layer.mock(Models, {}), ChatSettings.layer, GatewayHealth.layer)
        )
      )
      return { bot, run: Effect.provide(runTelegram(BOT, DMS), services) }
    })

    it.effect("makes one row of a message, also when it dies between storing and confirming it (R42)", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* real(1000)
        const sql = yield* SqlClient.SqlClient
        const first = yield* start(run)
        yield* nthPoll(bot, 1)
        yield* bot.fail("getUpdates", fault.silence)
        const id = yield* bot.text(USER, "once")
        // The poll that would confirm it is never taken.
        assert.strictEqual((yield* nthPoll(bot, 2)).parameters["offset"], id + 1)
        assert.strictEqual(yield* bot.pending, 1)
        yield* Fiber.interrupt(first)
        yield* start(run)
        assert.isUndefined((yield* nthPoll(bot, 3)).parameters["offset"])
        assert.strictEqual((yield* nthPoll(bot, 4)).parameters["offset"], id + 1)
        const rows = yield* sql`SELECT text FROM choir_control.inbox WHERE gateway = ${BOT}`
        assert.deepStrictEqual(rows, [{ text: "once" }])
      })
    )

    it.effect("makes one signal of a command, also when it dies before the confirmation (R28)", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* real(1001)
        const sql = yield* SqlClient.SqlClient
        yield* sql`INSERT INTO choir_control.sessions (session_id, agent_id, status, resource_bindings)
          VALUES (${SESSION}, ${AGENT}, 'active', '{}')`
        const first = yield* start(run)
        yield* nthPoll(bot, 1)
        yield* bot.fail("getUpdates", fault.silence)
        const id = yield* bot.text(USER, "/inject be quick")
        assert.match((yield* bot.sent.at(0)).text ?? "", /^◆ Noted\./u)
        yield* nthPoll(bot, 2)
        yield* allDelivered
        yield* Fiber.interrupt(first)
        yield* start(run)
        assert.strictEqual((yield* nthPoll(bot, 4)).parameters["offset"], id + 1)
        const rows = yield* sql`SELECT kind, payload FROM choir_control.signals WHERE session_id = ${SESSION}`
        assert.deepStrictEqual(rows, [{ kind: "Inject", payload: { content: "be quick" } }])
        assert.strictEqual((yield* bot.sent.all).length, 1)
        const audited = yield* sql`SELECT who, action, detail FROM choir_control.audit WHERE session_id = ${SESSION}`
        assert.deepInclude(audited[0], { who: "gateway:bot", action: "session.inject" })
        assert.notInclude(JSON.stringify(audited), "quick")
      })
    )

    it.effect("quotes the message that an answer is for only where something stands between the two", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* real(1002)
        const outbox = yield* Outbox
        const sql = yield* SqlClient.SqlClient
        yield* start(run)
        const asked = Effect.fnUntraced(function* (text: string) {
          yield* bot.text(USER, text)
          const stored = sql<{ readonly id: string }>`SELECT inbox_id::text AS id FROM choir_control.inbox
            WHERE text = ${text}`
          const [row] = yield* Effect.repeat(stored, { until: (rows) => rows.length > 0 })
          return InboxId.make(row?.id ?? "")
        })
        const answer = Effect.fnUntraced(function* (in_reply_to: InboxId | null, text: string) {
          yield* outbox.tell({
            gateway: BOT,
            dm: PHONE,
            agent_id: AGENT,
            kind: "notice",
            in_reply_to,
            source_id: text,
            text
          })
          yield* bot.sent.first((sent) => sent.text?.includes(text) === true)
          yield* allDelivered
        })
        const first = yield* asked("what is one?")
        yield* answer(first, "a first word on one")
        yield* answer(first, "the answer to one")
        const second = yield* asked("what is two?")
        const third = yield* asked("what is three?")
        yield* answer(second, "the answer to two")
        yield* answer(third, "the answer to three")
        yield* answer(null, "a notice of the host")
        yield* answer(third, "more on three")
        const sent = yield* bot.sent.all
        assert.deepStrictEqual(
          sent.map(({ text = "", reply_to_message_id }) => [text.replace("◆ ", ""), reply_to_message_id !== undefined]),
          [
            ["a first word on one", false],
            ["the answer to one", false],
            ["the answer to two", true],
            ["the answer to three", true],
            ["a notice of the host", false],
            ["more on three", true]
          ]
        )
      })
    )

    it.effect("splits a long text at 4096 units, and delivers every part once, in order (R43)", () =>
      Effect.gen(function* () {
        const { bot, run } = yield* real(1003)
        const outbox = yield* Outbox
        const text = `${"a".repeat(4000)}\n\n${"🙂".repeat(2000)}`
        const message = { gateway: BOT, dm: PHONE, agent_id: AGENT, kind: "notice", in_reply_to: null } as const
        yield* outbox.tell({ ...message, source_id: "long", text })
        yield* start(run)
        yield* bot.sent.at(1)
        assert.deepStrictEqual(
          yield* texts(bot),
          text.split("\n\n").map((part) => `◆ ${part}`)
        )
        yield* allDelivered
        assert.strictEqual((yield* bot.sent.all).length, 2)
      })
    )
  })
})
