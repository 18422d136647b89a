import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Deferred, Effect, Exit, Fiber, Layer, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import type { HeartbeatReply } from "#schema/AgentApi.ts"
import { CallId, EDGE, SecretName } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import type { Command } from "#src/agent/arbiter/Command.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { Replication, REPLICATION_EVENTS_MAX } from "#src/agent/control/Replication.ts"
import { Denied, RPC_RETRY_MS, Unreachable } from "#src/agent/control/verbAnswer.ts"
import { initialState } from "#src/shared/session/fold.ts"
import { SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { agentConfig, settingsOf } from "../../support/testing/TestAgent.ts"
import {
  type Answer,
  type Beat,
  INTERVAL_MS,
  makeHeartbeats,
  replicating,
  reply,
  unreachable
} from "../../support/heartbeats.ts"
import { makeHistory, makeRandom, placed, userMessage } from "../../support/history.ts"

const start = Effect.forkChild({ startImmediately: true })
/** Starts replication and lets its first, empty heartbeat pass. */
const running = Effect.gen(function* () {
  const replication = yield* Replication
  const fiber = yield* start(replication.run)
  yield* TestClock.adjust(0)
  return fiber
})
const severedBy = (exit: Exit.Exit<unknown, { readonly message: string }>) =>
  Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause))?.message : undefined

const commit = (proposal: Command) => Effect.flatMap(Arbiter, (arbiter) => arbiter.commit(proposal))
const say = (id: number) => commit(userMessage(String(id)))
/** An event that nobody waits for. */
const unurgent = commit({ type: "Compact", lane: EDGE, deltas: [], boundary_rev: 0 })
const call = CallId.make(`${SESSION}-1-2-0`)
const proposeCall = (effect: "workspace" | "external") =>
  Effect.gen(function* () {
    yield* say(1)
    const usage = { input_tokens: 1, output_tokens: 1 }
    yield* commit({
      type: "Output",
      lane: EDGE,
      output: {
        purpose: "turn",
        model: "m",
        finish_reason: "",
        usage,
        latency_ms: 0,
        tool_calls: [{ name: "t", input: {} }]
      }
    })
    yield* commit({
      type: "Request",
      lane: EDGE,
      call_id: call,
      tool: "t",
      input: {},
      effect,
      locks: [],
      capabilities: [],
      allowed_tools: undefined
    })
  })
const grant = commit({ type: "Grant", lane: EDGE, call_id: call, locks: [], dirty: false })

describe("Replication", () => {
  it.effect("sends what people wait for within the debounce, and the rest at the interval (D7)", () => {
    const choird = makeHeartbeats()
    return Effect.gen(function* () {
      yield* running
      yield* unurgent
      yield* TestClock.adjust(INTERVAL_MS - 1)
      assert.strictEqual(choird.stored(), 0)
      yield* TestClock.adjust(1)
      assert.strictEqual(choird.stored(), 1)
      yield* TestClock.adjust(1000)
      yield* say(1)
      const now = yield* Clock.currentTimeMillis
      yield* TestClock.adjust(20)
      assert.strictEqual(choird.stored(), 2)
      assert.isAtMost((choird.beats.at(-1)?.at ?? 0) - now, 20)
    }).pipe(Effect.provide(replicating(choird)))
  })

  for (const [effect, isAtOnce] of [
    ["external", true],
    ["workspace", false]
  ] as const)
    it.effect(`${isAtOnce ? "sends" : "does not send"} the intent of an ${effect} call at once (D3)`, () => {
      const choird = makeHeartbeats()
      return Effect.gen(function* () {
        yield* running
        yield* proposeCall(effect)
        yield* TestClock.adjust(20)
        assert.strictEqual(choird.stored(), 3)
        yield* grant
        yield* TestClock.adjust(20)
        assert.strictEqual(choird.stored(), isAtOnce ? 4 : 3)
        yield* TestClock.adjust(INTERVAL_MS)
        assert.strictEqual(choird.stored(), 4)
      }).pipe(Effect.provide(replicating(choird)))
    })

  it.effect("beats without news at the interval, with the digest of what choird has", () => {
    const choird = makeHeartbeats()
    return Effect.gen(function* () {
      yield* running
      const log = yield* EventLog
      yield* TestClock.adjust(3 * INTERVAL_MS)
      assert.deepStrictEqual(
        choird.beats.map(({ at, base_rev, new_rev, patches }) => [at, base_rev, new_rev, patches.length]),
        [0, 1, 2, 3].map((beat) => [beat * INTERVAL_MS, 0, 0, 0])
      )
      assert.deepStrictEqual([choird.beats[0]?.hash_prev, choird.beats[0]?.hash_new], [log.hashAt(0), log.hashAt(0)])
    }).pipe(Effect.provide(replicating(choird)))
  })

  it.effect("sends at once what was committed while a heartbeat without news was under way (R13)", () => {
    const choird = makeHeartbeats()
    return Effect.gen(function* () {
      const answered = yield* Deferred.make<void>()
      choird.answer((beat) => Effect.as(Deferred.await(answered), choird.store(beat)))
      yield* running
      assert.deepStrictEqual([choird.beats.length, choird.beats[0]?.patches.length], [1, 0])
      yield* say(1)
      yield* Deferred.succeed(answered, undefined)
      yield* TestClock.adjust(20)
      assert.strictEqual(choird.stored(), 1)
    }).pipe(Effect.provide(replicating(choird)))
  })

  it.effect("sends again what got no answer, and wakes who waits only when choird says that it has it", () => {
    const choird = makeHeartbeats()
    return Effect.gen(function* () {
      const replication = yield* Replication
      // The first is lost on the way there, the second on the way back.
      choird.answer(
        () => Effect.fail(unreachable),
        (beat) =>
          Effect.andThen(
            Effect.sync(() => choird.store(beat)),
            Effect.fail(unreachable)
          )
      )
      yield* say(1)
      const waiter = yield* start(replication.reached(1))
      yield* running
      yield* TestClock.adjust(RPC_RETRY_MS)
      assert.deepStrictEqual([choird.stored(), replication.acked(), waiter.pollUnsafe()], [1, 0, undefined])
      yield* TestClock.adjust(RPC_RETRY_MS)
      yield* Fiber.join(waiter)
      assert.strictEqual(replication.acked(), 1)
      assert.deepStrictEqual(
        choird.beats.map(({ base_rev, new_rev }) => [base_rev, new_rev]),
        [
          [0, 1],
          [0, 1],
          [0, 1]
        ]
      )
    }).pipe(Effect.provide(replicating(choird)))
  })

  it.effect("wakes who waits when choird asks to go on after what it has", () => {
    const choird = makeHeartbeats()
    return Effect.gen(function* () {
      const replication = yield* Replication
      choird.answer((beat) => {
        choird.store(beat)
        return Effect.succeed(reply(1, { action: "RESEND_FROM", resend_from: 2 }))
      })
      yield* say(1)
      const waiter = yield* start(replication.reached(1))
      yield* running
      yield* Fiber.join(waiter)
      assert.strictEqual(choird.beats.length, 1)
    }).pipe(Effect.provide(replicating(choird)))
  })

  it.effect("goes back as far as choird asks, while what is acknowledged never falls (R10)", () => {
    const choird = makeHeartbeats()
    return Effect.gen(function* () {
      const replication = yield* Replication
      yield* running
      yield* say(1)
      yield* unurgent
      yield* TestClock.adjust(20)
      assert.strictEqual(replication.acked(), 2)
      choird.answer(() => Effect.succeed(reply(0, { action: "RESEND_FROM", resend_from: 1 })))
      yield* commit({ type: "Answer", text: "t" })
      yield* TestClock.adjust(RPC_RETRY_MS + 20)
      assert.strictEqual(replication.acked(), 3)
      assert.deepStrictEqual(
        choird.beats.slice(-2).map(({ base_rev, new_rev }) => [base_rev, new_rev]),
        [
          [2, 3],
          [0, 3]
        ]
      )
    }).pipe(Effect.provide(replicating(choird)))
  })

  it.effect("does not ask in a hurry when choird repeats itself, nor believes in more than there is", () => {
    const choird = makeHeartbeats()
    return Effect.gen(function* () {
      const replication = yield* Replication
      choird.answer(
        ...Array.from(
          { length: 5 },
          () => () => Effect.succeed(reply(0, { action: "RESEND_FROM" as const, resend_from: 1 }))
        ),
        () => Effect.succeed(reply(99, { action: "RESEND_FROM", resend_from: 100 }))
      )
      yield* say(1)
      yield* running
      assert.strictEqual(choird.beats.length, 1)
      yield* TestClock.adjust(4 * RPC_RETRY_MS)
      assert.strictEqual(choird.beats.length, 5)
      yield* TestClock.adjust(RPC_RETRY_MS)
      assert.strictEqual(replication.acked(), 1)
    }).pipe(Effect.provide(replicating(choird)))
  })

  it.effect("waits as long as BACKOFF says", () => {
    const choird = makeHeartbeats()
    return Effect.gen(function* () {
      choird.answer(() => Effect.succeed(reply(0, { action: "BACKOFF", retry_after_ms: 777 })))
      yield* say(1)
      yield* running
      yield* TestClock.adjust(776)
      assert.strictEqual(choird.beats.length, 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(choird.stored(), 1)
    }).pipe(Effect.provide(replicating(choird)))
  })

  for (const [name, answer, reason] of [
    ["a newer epoch runs", Effect.succeed(reply(0, { action: "FENCED" })), /newer start/u],
    ["choird holds another history", Effect.succeed(reply(0, { action: "CONFLICT" })), /stored log differs/u],
    ["choird denies it", Effect.fail(new Denied({ verb: "HEARTBEAT", type: "AUTH", reason: "over" })), /over/u]
  ] as const)
    it.effect(`ends where ${name} (R8, R11)`, () => {
      const choird = makeHeartbeats()
      return Effect.gen(function* () {
        choird.answer(() => answer)
        yield* say(1)
        const fiber = yield* running
        assert.match(severedBy(yield* Fiber.await(fiber)) ?? "", reason)
        assert.strictEqual(choird.beats.length, 1)
      }).pipe(Effect.provide(replicating(choird)))
    })

  it.effect("ends where choird lost what it had acknowledged, and says so", () => {
    const choird = makeHeartbeats()
    return Effect.gen(function* () {
      // A recovery begins after a snapshot: the events before it are choird's alone.
      const place = { rev: 3, hash: "0".repeat(64) }
      yield* Effect.flatMap(Arbiter, ({ begin }) =>
        begin({ state: { ...initialState, rev: 3 }, at: place, after: place })
      )
      choird.answer(() => Effect.succeed(reply(0, { action: "RESEND_FROM", resend_from: 1 })))
      const exit = yield* Effect.flatMap(Replication, ({ run }) => Effect.exit(run)).pipe(
        Effect.provide(Layer.fresh(Replication.layer))
      )
      assert.match(severedBy(exit) ?? "", /choird lost events before 4, which it had acknowledged/u)
    }).pipe(Effect.provide(replicating(choird)))
  })

  it.effect("fetches a newer configuration, and replicates on when it does not come (R58)", () => {
    const choird = makeHeartbeats()
    return Effect.gen(function* () {
      const settings = yield* AgentSettings
      const newer = () => Effect.succeed(reply(0, { config_version_latest: 2 }))
      choird.answer(newer, newer, newer)
      choird.configure(Effect.fail(unreachable))
      yield* running
      assert.strictEqual(settings.current().config_version, 1)
      choird.configure(Effect.never)
      yield* TestClock.adjust(INTERVAL_MS)
      yield* say(1)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(choird.stored(), 1)
      const next = agentConfig({ turn_max_steps: 3 })
      const secret = SecretName.make("key")
      const models = Object.fromEntries(
        Object.entries(next.models).map(([name, model]) => [name, { ...model, secret }])
      )
      choird.configure(Effect.succeed({ config_version: 2, config: { ...next, models } }))
      choird.answer(newer)
      yield* TestClock.adjust(INTERVAL_MS)
      const { config, config_version } = settings.current()
      assert.deepStrictEqual([config_version, config.budgets.turn_max_steps], [2, 3])
      assert.deepStrictEqual([...new Set(choird.asked)], [secret])
      const held = yield* (yield* SecretStore).get(secret)
      assert.strictEqual(held === undefined ? "" : Redacted.value(held), "of key")
    }).pipe(Effect.provide(replicating(choird)))
  })

  it.effect(
    "stops new work at the limit of what choird lacks, loses nothing, and goes on when it is back (R14)",
    () => {
      const choird = makeHeartbeats()
      return Effect.gen(function* () {
        const replication = yield* Replication
        const log = yield* EventLog
        const away = yield* Deferred.make<HeartbeatReply, Unreachable>()
        choird.answer(() => Deferred.await(away))
        yield* running
        const notice = { event_type: "AgentMessage", lane: EDGE, payload: { kind: "notice", text: "n" } } as const
        const append = (events: number) =>
          log.append(
            placed(
              { ...initialState, rev: log.head() },
              Array.from({ length: events }, () => notice)
            )
          )
        while (log.head() < REPLICATION_EVENTS_MAX) append(100)
        yield* replication.room
        append(1)
        const waiting = yield* start(replication.room)
        assert.isUndefined(waiting.pollUnsafe())
        yield* Deferred.fail(away, unreachable)
        yield* TestClock.adjust(RPC_RETRY_MS)
        yield* Fiber.join(waiting)
        yield* TestClock.adjust(INTERVAL_MS)
        assert.deepStrictEqual([choird.stored(), replication.acked()], [log.head(), log.head()])
        assert.strictEqual(log.head(), REPLICATION_EVENTS_MAX + 1)
      }).pipe(Effect.provide(replicating(choird)))
    }
  )

  it.effect("flushes at once, and an answer from before does not undo what is known", () => {
    const choird = makeHeartbeats()
    return Effect.gen(function* () {
      const replication = yield* Replication
      yield* running
      yield* unurgent
      const flush = yield* start(replication.flush)
      yield* TestClock.adjust(20)
      yield* Fiber.join(flush)
      choird.answer(() => Effect.succeed(reply(0)))
      yield* unurgent
      const again = yield* start(replication.flush)
      yield* TestClock.adjust(1000)
      yield* Fiber.join(again)
      assert.strictEqual(replication.acked(), 2)
    }).pipe(Effect.provide(replicating(choird)))
  })

  it.effect("brings every history over a line that drops, repeats and delays, in order and whole (R10)", () =>
    Effect.gen(function* () {
      for (let seed = 1; seed <= 30; seed++) {
        const random = makeRandom(seed)
        const choird = makeHeartbeats()
        const { batches, events } = makeHistory(seed, 60)
        yield* Effect.gen(function* () {
          const log = yield* EventLog
          const replication = yield* Replication
          const fate = (beat: Beat): Answer => {
            const luck = random()
            if (luck < 0.2) return Effect.fail(unreachable)
            const answer = choird.store(beat)
            if (luck < 0.4) return Effect.fail(unreachable)
            if (luck < 0.5) return Effect.succeed(reply(Math.max(0, answer.ack_rev - 3)))
            return Effect.delay(Effect.succeed(answer), Math.floor(random() * 2000))
          }
          choird.answer(...Array.from({ length: 40 }, () => fate))
          const fiber = yield* running
          let acked = 0
          for (const batch of batches) {
            log.append(batch)
            if (random() < 0.5) yield* TestClock.adjust(Math.floor(random() * 3000))
            assert.isAtLeast(replication.acked(), acked)
            assert.isAtMost(replication.acked(), choird.stored())
            acked = replication.acked()
          }
          yield* TestClock.adjust("5 minutes")
          assert.strictEqual(replication.acked(), events.length, `seed ${seed}`)
          for (const { base_rev, hash_new, hash_prev, new_rev, patches } of choird.beats) {
            assert.deepStrictEqual(patches, events.slice(base_rev, new_rev))
            assert.deepStrictEqual([hash_prev, hash_new], [log.hashAt(base_rev), log.hashAt(new_rev)])
          }
          yield* Fiber.interrupt(fiber)
        }).pipe(Effect.provide(replicating(choird)))
      }
    })
  )

  it.effect(
    "gives a heartbeat up in time for two more before choird counts the agent as crashed, and a slow choird longer",
    () => {
      const choird = makeHeartbeats()
      const refused = () => Effect.fail(unreachable)
      const lost = ({ timeout_ms = 0 }: Beat) => Effect.andThen(Effect.sleep(timeout_ms), Effect.fail(unreachable))
      choird.answer(refused, refused, ...Array.from({ length: 40 }, () => lost))
      const settings = settingsOf(1, { ...agentConfig(), crash_detection_threshold_ms: 9000 })
      return Effect.gen(function* () {
        yield* say(1)
        yield* running
        yield* TestClock.adjust("1 minute")
        const carrying = choird.beats.filter(({ patches }) => patches.length > 0)
        assert.deepStrictEqual(
          carrying.slice(0, 7).map(({ timeout_ms }) => timeout_ms),
          [3000, 3000, 3000, 6000, 12_000, 15_000, 15_000]
        )
        // The one after the first that was given up comes at once, not at the interval.
        assert.isBelow((carrying[3]?.at ?? 0) - (carrying[2]?.at ?? 0), 3000 + INTERVAL_MS)
        // Beside the longer waits others are on their way, so that one more lost packet is not the end.
        const arrivals = choird.beats.map(({ at }) => at)
        for (const [index, at] of arrivals.entries())
          assert.isAtMost(at - (arrivals[index - 1] ?? at), 3000 + RPC_RETRY_MS)
      }).pipe(Effect.provide(replicating(choird, settings)))
    }
  )
})
