import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, PubSub, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ResourceName } from "#schema/Ids.ts"
import { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { ChatSettings } from "#src/choird/gateway/ChatSettings.ts"
import { makePaces } from "#src/choird/gateway/Pace.ts"
import { type Mark, Presence } from "#src/choird/gateway/Presence.ts"
import { showReactions } from "#src/choird/gateway/reactions.ts"
import { TelegramApi } from "#src/choird/gateway/TelegramApi.ts"
import { TelegramFailed } from "#src/choird/gateway/TelegramFailed.ts"
import { PHONE } from "../../support/stores.ts"
import { USER } from "../../support/telegramBot.ts"

const USER_ID = String(USER)
const refused = (code: number, description: string, retry_after_ms: number | null = null) =>
  new TelegramFailed({ method: "setMessageReaction", code, description, retry_after_ms })

/** A chat whose messages are marked. `refusals` are taken by the next reactions. */
const setUp = Effect.gen(function* () {
  const calls = yield* Queue.unbounded<string>()
  const marks = yield* PubSub.unbounded<Mark>()
  const refusals: Array<TelegramFailed> = []
  const world = { on: true, away: false }
  const services = Layer.mergeAll(
    Layer.mock(TelegramApi, {
      react: (chat_id, message_id, emoji = "" as never) =>
        Effect.andThen(Queue.offer(calls, `${chat_id} ${message_id} ${emoji}`), refusals.shift() ?? Effect.void)
    }),
    Layer.mock(ChatSettings, {
      reactions: () =>
        Effect.suspend(() =>
          world.away ? Effect.fail(new DatabaseAway({ problem: "gone" })) : Effect.succeed(world.on)
        )
    }),
    Layer.mock(Presence, {
      isDue: () => Effect.succeed(true),
      marks: (dm) => Stream.filter(Stream.fromPubSub(marks), (mark) => mark.dm === dm)
    })
  )
  const chat = { dm: PHONE, user_id: USER_ID, chat_id: USER_ID, pace: makePaces()(USER_ID) }
  yield* showReactions(chat).pipe(Effect.provide(services), Effect.forkScoped({ startImmediately: true }))
  // Everything runs in memory, so that after a turn of the clock all that was due is done.
  const settle = Effect.repeat(TestClock.adjust(0), { times: 20 })
  yield* settle
  const mark = (message_id: number, seen: boolean, dm = PHONE) =>
    Effect.andThen(PubSub.publish(marks, { dm, message_id, seen }), settle)
  return { world, refusals, mark, calls: Queue.clear(calls), chat }
})

describe("a person on Telegram", () => {
  it.effect("sees on each message that it arrived, until it is answered", () =>
    Effect.gen(function* () {
      const { calls, mark } = yield* setUp
      yield* mark(7, true)
      yield* mark(7, true, ResourceName.make("desk"))
      assert.deepStrictEqual(yield* calls, [`${USER_ID} 7 👀`])
      yield* TestClock.adjust("1 second")
      yield* mark(7, false)
      assert.deepStrictEqual(yield* calls, [`${USER_ID} 7 `])
    })
  )

  it.effect("sees one reaction a second, the newest of each message, and none where the answer was faster", () =>
    Effect.gen(function* () {
      const { calls, mark } = yield* setUp
      for (const id of [1, 2, 3]) yield* mark(id, true)
      yield* mark(2, false)
      assert.deepStrictEqual(yield* calls, [`${USER_ID} 1 👀`])
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(yield* calls, [])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* calls, [`${USER_ID} 3 👀`])
    })
  )

  it.effect("loses a reaction of an earlier choird, whose message is answered now", () =>
    Effect.gen(function* () {
      const { calls, mark } = yield* setUp
      yield* mark(7, false)
      assert.deepStrictEqual(yield* calls, [`${USER_ID} 7 `])
    })
  )

  it.effect("sees none where they are switched off, or the database is away; one that is there goes", () =>
    Effect.gen(function* () {
      const { calls, mark, world } = yield* setUp
      yield* mark(1, true)
      world.on = false
      yield* TestClock.adjust("1 second")
      yield* mark(2, true)
      yield* mark(2, false)
      yield* mark(1, false)
      world.on = true
      world.away = true
      yield* TestClock.adjust("1 second")
      yield* mark(3, true)
      assert.deepStrictEqual(yield* calls, [`${USER_ID} 1 👀`, `${USER_ID} 1 `])
    })
  )

  it.effect("sees a reaction after the wait that Telegram asks for, and at most three tries of one", () =>
    Effect.gen(function* () {
      const { calls, mark, refusals } = yield* setUp
      refusals.push(refused(429, "Too Many Requests: retry after 7", 7000))
      yield* mark(1, true)
      yield* TestClock.adjust("6999 millis")
      assert.deepStrictEqual(yield* calls, [`${USER_ID} 1 👀`])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* calls, [`${USER_ID} 1 👀`])
      yield* TestClock.adjust("1 second")
      refusals.push(...[1, 2, 3].map(() => refused(500, "Internal Server Error")))
      yield* mark(2, true)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(
        yield* calls,
        [1, 2, 3].map(() => `${USER_ID} 2 👀`)
      )
      yield* mark(3, true)
      assert.deepStrictEqual(yield* calls, [`${USER_ID} 3 👀`])
    })
  )

  it.effect("is not asked twice for what Telegram will never take", () =>
    Effect.gen(function* () {
      const { calls, mark, refusals } = yield* setUp
      refusals.push(
        refused(400, "Bad Request: message to react not found"),
        refused(400, "Bad Request: REACTION_INVALID"),
        refused(403, "Forbidden: bot was blocked by the user")
      )
      for (const id of [1, 2, 3, 4]) yield* mark(id, true)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(
        yield* calls,
        [1, 2, 3, 4].map((id) => `${USER_ID} ${id} 👀`)
      )
      refusals.push(refused(404, "Not Found"))
      for (const id of [5, 6]) yield* mark(id, true)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* calls, [`${USER_ID} 5 👀`])
    })
  )

  it.effect("gets texts first: a reaction waits while one waits for the bot", () =>
    Effect.gen(function* () {
      const paceOf = makePaces()
      const order: Array<string> = []
      const note = (what: string) => Effect.sync(() => order.push(what))
      const start = Effect.forkChild({ startImmediately: true })
      const person = paceOf("1")
      yield* person.message
      yield* start(Effect.andThen(person.sign, note("reaction")))
      for (const other of ["2", "3", "4"]) yield* start(Effect.andThen(paceOf(other).message, note("text")))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(order, ["text", "text", "text", "reaction"])
    })
  )
})
