/** The first sign of life at Telegram, by the clock of the test: no timer stands between a message that the agent's queue took and the bot's first actions. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Layer, PubSub, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { InboxId } from "#schema/Ids.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { makePaces } from "#src/choird/telegram/Pace.ts"
import { Presence } from "#src/choird/gateway/Presence.ts"
import { showReactions } from "#src/choird/telegram/showReactions.ts"
import { showDrafts, showTyping } from "#src/choird/telegram/signsOfLife.ts"
import { TelegramApi } from "#src/choird/telegram/TelegramApi.ts"
import { Drafts, type ShownDraft } from "#src/choird/queues/Drafts.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Reactions } from "#src/choird/queues/Reactions.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { initialState } from "#src/shared/session/fold.ts"
import { PHONE } from "../../support/stores.ts"
import { AGENT, lifecycle, USER } from "../../support/telegramBot.ts"

const USER_ID = String(USER)
const one = InboxId.make("1")
/** Two calls of one bot are this far apart; nothing else may keep a sign back. */
const BOT_INTERVAL_MS = 40

/** A chat of a bot whose agent runs, with everything real but the Bot API and the stores. */
const setUp = Effect.gen(function* () {
  const began = yield* Clock.currentTimeMillis
  const calls = yield* Queue.unbounded<readonly [call: string, ms: number]>()
  const drafts = yield* PubSub.unbounded<ShownDraft>()
  const note = (call: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.asVoid(Queue.offer(calls, [call, now - began] as const)))
  const stores = Layer.mergeAll(
    Layer.mock(TelegramApi, {
      typing: () => note("typing"),
      react: (_, __, emoji) => note(`reaction ${emoji ?? "none"}`),
      draft: (_, __, text) => note(`draft ${text}`)
    }),
    Layer.mock(Drafts, { changes: Stream.fromPubSub(drafts), dmOf: () => Effect.succeed(PHONE) }),
    Layer.mock(EventStore, { appended: Stream.never, state: () => Effect.succeed(initialState) }),
    Layer.mock(ChatSettings, { reactions: () => Effect.succeed(true), topics: () => Effect.succeed([]) }),
    Layer.mock(Outbox, { wakes: () => Stream.never }),
    Layer.mock(Reactions, { begin: () => Effect.succeed(7), leftover: () => Effect.succeed([]) }),
    lifecycle
  )
  const services = yield* Layer.build(Presence.layer.pipe(Layer.provideMerge(stores)))
  const chat = {
    dm: PHONE,
    user_id: USER_ID,
    chat_id: USER_ID,
    pace: makePaces()(USER_ID),
    left: Deferred.makeUnsafe<void>()
  }
  yield* Effect.all([showTyping(chat), showReactions(chat), showDrafts(chat)], { concurrency: "unbounded" }).pipe(
    Effect.provideContext(services),
    Effect.forkScoped({ startImmediately: true })
  )
  // Everything runs in memory, so that after a turn of the clock all that was due is done.
  const settle = Effect.repeat(TestClock.adjust(0), { times: 20 })
  yield* settle
  return {
    calls: Queue.clear(calls),
    comes: Effect.andThen(Context.get(services, Presence).asked(PHONE, AGENT, one), settle),
    writes: (text: string) =>
      Effect.andThen(PubSub.publish(drafts, { agent_id: AGENT, dm: PHONE, inbox_id: one, text }), settle),
    settle
  }
})

describe("a person on Telegram", () => {
  it.effect(
    "sees a sign at once, and within the interval of the bot both that the message came and that the agent types",
    () =>
      Effect.gen(function* () {
        const { calls, comes, settle } = yield* setUp
        yield* comes
        const at_once = yield* calls
        assert.deepStrictEqual(
          at_once.map(([, ms]) => ms),
          [0]
        )
        yield* TestClock.adjust(BOT_INTERVAL_MS)
        yield* settle
        const both = [...at_once, ...(yield* calls)].map(([call]) => call)
        assert.sameMembers(both, ["typing", "reaction 👀"])
      })
  )

  it.effect("sees the first words in the interval of the bot after they came", () =>
    Effect.gen(function* () {
      const { calls, comes, settle, writes } = yield* setUp
      yield* comes
      yield* TestClock.adjust("1 second")
      yield* settle
      yield* calls
      yield* writes("It is")
      const [first] = yield* calls
      assert.deepStrictEqual(first, ["draft It is", 1000])
    })
  )
})
