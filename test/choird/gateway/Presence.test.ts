import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, PubSub, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { AgentId, InboxId, ResourceName } from "#schema/Ids.ts"
import { Presence } from "#src/choird/gateway/Presence.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { PHONE } from "../../support/stores.ts"
import { AGENT, lifecycle } from "../../support/telegramBot.ts"

const [one, two] = [InboxId.make("1"), InboxId.make("2")]
const OTHER = AgentId.make("other")

type Appended = Stream.Success<EventStore["Service"]["appended"]>

const setUp = Effect.gen(function* () {
  const appends = yield* PubSub.unbounded<Appended>()
  const services = Layer.merge(Layer.mock(EventStore, { appended: Stream.fromPubSub(appends) }), lifecycle)
  const presence = Context.get(yield* Layer.build(Layer.provide(Presence.layer, services)), Presence)
  const seen = yield* Queue.unbounded<InboxId>()
  yield* presence.seen(PHONE).pipe(
    Stream.runForEach((inbox_id) => Queue.offer(seen, inbox_id)),
    Effect.forkScoped({ startImmediately: true })
  )
  // Everything runs in memory, so that after a turn of the clock all that was due is done.
  const settle = Effect.repeat(TestClock.adjust(0), { times: 20 })
  yield* settle
  const say = (in_reply_to: InboxId, kind = "reply", agent_id = AGENT) =>
    Effect.andThen(
      PubSub.publish(appends, {
        agent_id,
        events: [{ event_type: "AgentMessage", payload: { in_reply_to, kind } }]
      } as never),
      settle
    )
  return { presence, say, seen: Effect.andThen(settle, Queue.clear(seen)) }
})

describe("the presence of an agent", () => {
  it.effect("shows each piece of a message when it is taken, until its answer, which a notice is not", () =>
    Effect.gen(function* () {
      const { presence, say, seen } = yield* setUp
      for (let piece = 0; piece < 2; piece += 1) yield* presence.asked(PHONE, AGENT, one)
      yield* presence.asked(ResourceName.make("desk"), AGENT, two)
      assert.deepStrictEqual(yield* seen, [one, one])
      yield* say(one, "notice")
      assert.isFalse(presence.isAnswered(one))
      yield* say(one)
      assert.isTrue(presence.isAnswered(one))
      yield* presence.asked(PHONE, AGENT, one)
      assert.deepStrictEqual(yield* seen, [])
    })
  )

  it.effect("knows of no answer of another agent", () =>
    Effect.gen(function* () {
      const { presence, say } = yield* setUp
      yield* presence.asked(PHONE, AGENT, one)
      yield* say(one, "reply", OTHER)
      assert.isFalse(presence.isAnswered(one))
    })
  )
})
