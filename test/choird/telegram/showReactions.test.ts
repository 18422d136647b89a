import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, PubSub, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { InboxId } from "#schema/Ids.ts"
import { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { makePaces } from "#src/choird/telegram/Pace.ts"
import { Presence } from "#src/choird/gateway/Presence.ts"
import { showReactions } from "#src/choird/telegram/showReactions.ts"
import { TelegramApi } from "#src/choird/telegram/TelegramApi.ts"
import { TelegramFailed } from "#src/choird/telegram/TelegramFailed.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Reactions } from "#src/choird/queues/Reactions.ts"
import { makeNotifier } from "#src/choird/queues/Notifier.ts"
import { PHONE } from "../../support/stores.ts"
import { USER } from "../../support/telegramBot.ts"

const USER_ID = String(USER)
const refused = (code: number, description: string, retry_after_ms: number | null = null) =>
  new TelegramFailed({ method: "setMessageReaction", code, description, retry_after_ms })

interface Row {
  answered: boolean
  reacted: boolean
}

/** A chat whose messages have the numbers of their rows. `refusals` are taken by the next reactions. */
const setUp = Effect.gen(function* () {
  const calls = yield* Queue.unbounded<string>()
  const seen = yield* PubSub.unbounded<InboxId>()
  const { wake, wakes } = yield* makeNotifier
  const rows = new Map<string, Row>()
  const refusals: Array<TelegramFailed> = []
  const world = { on: true, away: false }
  const onDatabase = <A>(work: () => A) =>
    Effect.suspend(() => (world.away ? Effect.fail(new DatabaseAway({ problem: "gone" })) : Effect.sync(work)))
  const services = Layer.mergeAll(
    Layer.mock(TelegramApi, {
      react: (chat_id, message_id, emoji = "" as never) =>
        Effect.andThen(Queue.offer(calls, `${chat_id} ${message_id} ${emoji}`), refusals.shift() ?? Effect.void)
    }),
    Layer.mock(ChatSettings, { reactions: () => onDatabase(() => world.on) }),
    Layer.mock(Outbox, { wakes }),
    Layer.mock(Presence, {
      isAnswered: (inbox_id) => rows.get(inbox_id)?.answered === true,
      seen: () => Stream.fromPubSub(seen)
    }),
    Layer.mock(Reactions, {
      begin: (inbox_id) =>
        onDatabase(() => {
          const row = rows.get(inbox_id)
          if (row === undefined || row.answered || row.reacted) return undefined
          row.reacted = true
          return Number(inbox_id)
        }),
      leftover: () =>
        onDatabase(() =>
          [...rows].flatMap(([id, { answered, reacted }]) =>
            answered && reacted ? [{ inbox_id: InboxId.make(id), message_id: Number(id) }] : []
          )
        ),
      ended: (inbox_id) =>
        onDatabase(() => {
          const row = rows.get(inbox_id)
          if (row !== undefined) row.reacted = false
        })
    })
  )
  // Everything runs in memory, so that after a turn of the clock all that was due is done.
  const settle = Effect.repeat(TestClock.adjust(0), { times: 20 })
  const life = Effect.gen(function* () {
    const chat = {
      dm: PHONE,
      user_id: USER_ID,
      chat_id: USER_ID,
      pace: makePaces()(USER_ID),
      left: Deferred.makeUnsafe<void>()
    }
    const fiber = yield* Effect.forkScoped(Effect.provide(showReactions(chat), services), { startImmediately: true })
    yield* settle
    return fiber
  })
  const came = (id: number) =>
    Effect.suspend(() => {
      rows.set(String(id), { answered: false, reacted: false, ...rows.get(String(id)) })
      return Effect.andThen(PubSub.publish(seen, InboxId.make(String(id))), settle)
    })
  const answer = (id: number) =>
    Effect.suspend(() => {
      const row = rows.get(String(id))
      if (row !== undefined) row.answered = true
      return Effect.andThen(wake(PHONE), settle)
    })
  return { answer, came, calls: Queue.clear(calls), life, refusals, rows, world, fiber: yield* life }
})

const shown = (id: number) => `${USER_ID} ${id} 👀`
const taken = (id: number) => `${USER_ID} ${id} `

describe("a person on Telegram", () => {
  it.effect("sees on each message that it arrived, once for all of its pieces, until it is answered", () =>
    Effect.gen(function* () {
      const { answer, calls, came } = yield* setUp
      for (let piece = 0; piece < 3; piece += 1) yield* came(7)
      assert.deepStrictEqual(yield* calls, [shown(7)])
      yield* TestClock.adjust("10 seconds")
      yield* answer(7)
      yield* came(7)
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* calls, [taken(7)])
    })
  )

  it.effect("sees one reaction a second, and none where the answer was faster", () =>
    Effect.gen(function* () {
      const { answer, calls, came } = yield* setUp
      for (const id of [1, 2, 3]) yield* came(id)
      yield* answer(2)
      assert.deepStrictEqual(yield* calls, [shown(1)])
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(yield* calls, [])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* calls, [shown(3)])
    })
  )

  it.effect("loses the reactions of an earlier choird, those that were answered between its lives too", () =>
    Effect.gen(function* () {
      const { answer, calls, came, fiber, life } = yield* setUp
      for (const id of [1, 2]) {
        yield* came(id)
        yield* TestClock.adjust("1 second")
      }
      yield* Fiber.interrupt(fiber)
      yield* answer(1)
      assert.deepStrictEqual(yield* calls, [shown(1), shown(2)])
      yield* life
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* calls, [taken(1)])
      yield* answer(2)
      assert.deepStrictEqual(yield* calls, [taken(2)])
    })
  )

  it.effect("sees none where they are switched off, or the database is away; one that is there goes in any case", () =>
    Effect.gen(function* () {
      const { answer, calls, came, world } = yield* setUp
      yield* came(1)
      yield* TestClock.adjust("1 second")
      world.on = false
      yield* came(2)
      yield* TestClock.adjust("1 second")
      world.on = true
      world.away = true
      yield* came(3)
      yield* answer(1)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* calls, [shown(1)])
      world.away = false
      yield* TestClock.adjust("1 minute")
      assert.includeMembers([...(yield* calls)], [taken(1)])
    })
  )

  it.effect("sees a reaction after the wait that Telegram asks for, and at most three tries of one", () =>
    Effect.gen(function* () {
      const { calls, came, refusals } = yield* setUp
      refusals.push(refused(429, "Too Many Requests: retry after 7", 7000))
      yield* came(1)
      yield* TestClock.adjust("6999 millis")
      assert.deepStrictEqual(yield* calls, [shown(1)])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* calls, [shown(1)])
      yield* TestClock.adjust("1 second")
      refusals.push(...[1, 2, 3].map(() => refused(500, "Internal Server Error")))
      yield* came(2)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(
        yield* calls,
        [1, 2, 3].map(() => shown(2))
      )
      yield* came(3)
      assert.deepStrictEqual(yield* calls, [shown(3)])
    })
  )

  it.effect("loses a reaction however often Telegram fails, and sees no late one while it does", () =>
    Effect.gen(function* () {
      const { answer, calls, came, refusals } = yield* setUp
      yield* came(1)
      yield* TestClock.adjust("1 second")
      refusals.push(
        refused(429, "Too Many Requests: retry after 7", 7000),
        ...Array.from({ length: 20 }, () => refused(500, "Internal Server Error"))
      )
      yield* answer(1)
      yield* TestClock.adjust("6999 millis")
      assert.deepStrictEqual(yield* calls, [shown(1), taken(1)])
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(
        yield* calls,
        Array.from({ length: 21 }, () => taken(1))
      )
      refusals.push(refused(500, "Internal Server Error"))
      yield* came(2)
      yield* answer(2)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* calls, [shown(2), taken(2)])
    })
  )

  it.effect("is not asked twice for what Telegram will never take", () =>
    Effect.gen(function* () {
      const { calls, came, refusals } = yield* setUp
      refusals.push(
        refused(400, "Bad Request: message to react not found"),
        refused(400, "Bad Request: REACTION_INVALID"),
        refused(403, "Forbidden: bot was blocked by the user")
      )
      for (const id of [1, 2, 3, 4]) yield* came(id)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* calls, [1, 2, 3, 4].map(shown))
      refusals.push(refused(404, "Not Found"))
      for (const id of [5, 6]) yield* came(id)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* calls, [shown(5)])
    })
  )

  it.effect("who blocked the bot loses the reaction after the next message", () =>
    Effect.gen(function* () {
      const { answer, calls, came, refusals } = yield* setUp
      yield* came(1)
      yield* TestClock.adjust("1 second")
      refusals.push(refused(403, "Forbidden: bot was blocked by the user"))
      yield* answer(1)
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual(yield* calls, [shown(1), taken(1)])
      yield* came(2)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* calls, [taken(1), shown(2)])
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
