import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, PubSub, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { AgentId, CallId, InboxId, JobName, ResourceName } from "#schema/Ids.ts"
import { Presence } from "#src/choird/gateway/Presence.ts"
import { Drafts } from "#src/choird/queues/Drafts.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { initialState } from "#src/shared/session/fold.ts"
import type { PendingReport } from "#src/shared/session/State.ts"
import { PHONE } from "../../support/stores.ts"
import { AGENT, lifecycle, SESSION } from "../../support/telegramBot.ts"

const [one, two] = [InboxId.make("1"), InboxId.make("2")]
const OTHER = AgentId.make("other")

type Appended = Stream.Success<EventStore["Service"]["appended"]>

const setUp = Effect.gen(function* () {
  const appends = yield* PubSub.unbounded<Appended>()
  const world = { state: initialState }
  const services = Layer.mergeAll(
    Layer.mock(EventStore, {
      appended: Stream.fromPubSub(appends),
      state: () => Effect.sync(() => world.state)
    }),
    Layer.mock(Drafts, {
      dmOf: (agent_id, inbox_id) => Effect.succeed(agent_id === AGENT && inbox_id === two ? PHONE : undefined)
    }),
    lifecycle
  )
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
        events: [{ event_type: "AgentMessage", payload: { in_reply_to, kind } }],
        state: world.state
      } as never),
      settle
    )
  /** The agent owes these reports, as of an append. */
  const owe = (rev: number, reports: ReadonlyArray<PendingReport>) =>
    Effect.suspend(() => {
      world.state = { ...world.state, rev, reports }
      const events: Appended["events"] = []
      return PubSub.publish(appends, { agent_id: AGENT, session_id: SESSION, events, state: world.state })
    }).pipe(Effect.andThen(settle))
  let calls = 0
  /** A call of a tool begins in the turn of a message. */
  const commit = (name: string, inbox_id: InboxId) =>
    Effect.suspend(() => {
      calls += 1
      const call = { call_id: CallId.make(`call-${calls}`), name, stage: "committed" }
      const edge = { ...world.state.edge, turn: { kind: "turn", inbox_id, dm: PHONE }, calls: [call] }
      world.state = { ...world.state, edge } as never
      return PubSub.publish(appends, { agent_id: AGENT, session_id: SESSION, events: [], state: world.state })
    }).pipe(Effect.andThen(settle))
  return { presence, say, commit, owe, seen: Effect.andThen(settle, Queue.clear(seen)) }
})

describe("the presence of an agent", () => {
  const report = (rev: number, inbox_id: InboxId | undefined): PendingReport => ({
    kind: "stopped",
    job_id: CallId.make("j"),
    job_name: JobName.make("dig"),
    rev,
    inbox_id
  })

  it.effect("is seen while it makes a report on a job of an earlier message, until the report is there", () =>
    Effect.gen(function* () {
      const { owe, presence } = yield* setUp
      const wakes = yield* Queue.unbounded<void>()
      yield* presence.wakes(PHONE).pipe(
        Stream.runForEach(() => Queue.offer(wakes, undefined)),
        Effect.forkScoped({ startImmediately: true })
      )
      yield* Queue.take(wakes)
      assert.isFalse(yield* presence.isAtWork(PHONE))
      yield* owe(5, [report(5, two)])
      yield* Queue.take(wakes)
      assert.isTrue(yield* presence.isAtWork(PHONE))
      assert.isFalse(yield* presence.isAtWork(ResourceName.make("desk")))
      yield* owe(6, [])
      assert.isFalse(yield* presence.isAtWork(PHONE))
      // Nobody's message led to the job.
      yield* owe(8, [report(8, undefined)])
      assert.isFalse(yield* presence.isAtWork(PHONE))
    })
  )

  it.effect("tells the tool that runs in the turn of this person's message, and its seconds", () =>
    Effect.gen(function* () {
      const { commit, presence, say } = yield* setUp
      yield* presence.asked(PHONE, AGENT, one)
      assert.isUndefined(yield* presence.runs(PHONE))
      yield* commit("choir-exec", one)
      yield* TestClock.adjust("12 seconds")
      assert.deepStrictEqual(yield* presence.runs(PHONE), { agent_id: AGENT, inbox_id: one, tool: "exec", seconds: 12 })
      assert.isUndefined(yield* presence.runs(ResourceName.make("desk")))
      // In another person's turn.
      yield* commit("choir-exec", two)
      assert.isUndefined(yield* presence.runs(PHONE))
      yield* commit("choir-exec", one)
      yield* say(one)
      assert.isUndefined(yield* presence.runs(PHONE))
    })
  )

  it.effect("knows which drafts are still to come: of an answer, and of each report on the jobs of its message", () =>
    Effect.gen(function* () {
      const { owe, presence, say } = yield* setUp
      const isDue = (report_rev?: number) =>
        presence.isDue({
          agent_id: AGENT,
          inbox_id: two,
          text: "",
          ...(report_rev === undefined ? {} : { report_rev })
        })
      assert.isTrue(yield* isDue())
      yield* say(two)
      assert.isFalse(yield* isDue())
      // Its first words may come before the event that it is about.
      assert.isTrue(yield* isDue(5))
      yield* owe(5, [report(5, two)])
      assert.isTrue(yield* isDue(5))
      yield* owe(6, [])
      assert.isFalse(yield* isDue(5))
    })
  )

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
