import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option, Logger, Redacted, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Config } from "#schema/Config.ts"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import { type EpochPlan, runEpoch } from "#src/choird/agents/Epoch.ts"
import { LiveEpochs, type Liveness } from "#src/choird/agents/LiveEpochs.ts"
import { AgentSockets } from "#src/choird/listeners/AgentSockets.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import {
  type Condition,
  type ContainerExit,
  ContainerError,
  ContainerRuntime
} from "#src/choird/runtime/ContainerRuntime.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { stored } from "../../support/awayDatabase.ts"
import { activeSession, BINDINGS, CONFIG } from "../../support/stores.ts"

const config = Schema.decodeUnknownSync(Config)(CONFIG)
const AGENT = AgentId.make("helper")
const SESSION = SessionId.make("0123456789abcdef")

const KILLED: ContainerExit = { code: null, signal: "SIGKILL", reason: "killed" }

/** An epoch over a container that does what the test says; `did` is the order of what was done to it. */
const setUp = Effect.fnUntraced(function* (kill: Effect.Effect<void, ContainerError> = Effect.void) {
  const did: Array<string> = []
  const warned: Array<string> = []
  const warnings = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Warn") warned.push(JSON.stringify(message))
  })
  const note = (what: string) => Effect.sync(() => void did.push(what))
  const exit = yield* Deferred.make<ContainerExit>()
  const frozen = { reason: null as string | null }
  const world = { away: false, condition: "running" as Condition, inspected: 0, look_ms: 0 }
  const row = activeSession(AGENT, SESSION)
  const mocks = Layer.mergeAll(
    Layer.mock(LogFiles, { follow: () => Effect.undefined, logger: Logger.make(() => undefined) }),
    Layer.mock(AgentSockets, {
      open: () =>
        Effect.as(
          Effect.addFinalizer(() => note("socket closed")),
          { dir: "/d", path: "/d/choird.sock" }
        )
    }),
    Layer.mock(SessionStore, {
      recordContainer: () => note("recorded"),
      get: () => Effect.suspend(() => stored(world, Option.some({ ...row, frozen_reason: frozen.reason })))
    }),
    Layer.mock(Signals, {
      stop: (_, deadline_ms) => note(`stop ${deadline_ms}`)
    }),
    Layer.mock(Tokens, {
      bootstrap: (_, __, epoch) => Effect.as(note(`fenced by ${epoch}`), Redacted.make("next")),
      revoke: () => note("revoked")
    }),
    Layer.mock(ContainerRuntime, {
      type: "process",
      start: () =>
        Effect.succeed({
          id: { type: "process", boot_id: "b", processes: [], cgroup: "choir-x-1" as never, workspace: "/w" },
          exit: Deferred.await(exit),
          condition: Effect.suspend(() => {
            world.inspected += 1
            return Effect.delay(
              Effect.sync(() => world.condition),
              world.look_ms
            )
          }),
          kill: Effect.andThen(note("killed"), Effect.andThen(kill, Deferred.succeed(exit, KILLED))).pipe(
            Effect.asVoid
          ),
          output: Stream.empty
        })
    })
  )
  const livenessBySession = new Map<typeof SESSION, Liveness>()
  const stop = yield* Deferred.make<void>()
  const plan: EpochPlan = {
    row,
    bindings: BINDINGS,
    agent_number: 0,
    config,
    fullAt: () => Effect.undefined,
    summary_ms_max: Effect.succeed(config.memory.summary_timeout_ms),
    silence_ms_max: Effect.succeed(config.crash_detection_threshold_ms),
    image: { image_version: ImageVersion.make("abc1234"), path: "/i" },
    programs: { node: "/n", program: "/p", rg: "/r" },
    token: Redacted.make("boot"),
    stop,
    onReady: note("ready"),
    onWait: note,
    onStopping: note("stopping"),
    onLingering: (crash) => note(`lingers ${crash}`)
  }
  const epoch = yield* Effect.forkChild(
    Effect.result(Effect.scoped(runEpoch(plan))).pipe(
      Effect.provideService(LiveEpochs, livenessBySession),
      Effect.provide([mocks, Logger.layer([warnings])])
    ),
    { startImmediately: true }
  )
  const liveness = livenessBySession.get(SESSION)
  assert.isDefined(liveness)
  const end = Effect.map(Fiber.join(epoch), (result) => (result._tag === "Success" ? result.success : result.failure))
  return {
    did,
    end,
    epoch,
    exit,
    frozen,
    liveness,
    hello: Deferred.succeed(liveness.hello, undefined),
    livenessBySession,
    stop,
    warned,
    world
  }
})

const isHeard = (liveness: Liveness) =>
  TestClock.testClockWith((clock) =>
    Effect.sync(() => void (liveness.last_heartbeat_ms = clock.currentTimeMillisUnsafe()))
  )

/** An agent that is heard every second is not silent. */
const seconds = (liveness: Liveness, count: number) =>
  Effect.repeat(Effect.andThen(TestClock.adjust("1 second"), isHeard(liveness)), { times: count - 1 })

describe("Epoch", () => {
  it.effect("gives an agent 30 s to say hello, then fences, kills and closes, in this order (D8)", () =>
    Effect.gen(function* () {
      const { did, end, epoch, livenessBySession } = yield* setUp()
      yield* TestClock.adjust("29999 millis")
      assert.isUndefined(epoch.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      const reason = "it did not say hello within 30 s; its container is still running, so the agent hangs"
      assert.deepInclude(yield* end, { type: "crashed", ready: false, reason })
      assert.deepStrictEqual(did, ["recorded", "fenced by 2", "killed", "socket closed"])
      assert.strictEqual(livenessBySession.size, 0)
    })
  )

  it.effect("takes the exit for what it is, and the silence of a living container as well (R7)", () =>
    Effect.gen(function* () {
      const one = yield* setUp()
      yield* one.hello
      yield* Deferred.succeed(one.exit, { code: null, signal: "SIGKILL", reason: "out_of_memory" })
      assert.deepInclude(yield* one.end, { type: "crashed", ready: true, reason: "it ran out of memory" })
      const other = yield* setUp()
      yield* other.hello
      yield* seconds(other.liveness, 60)
      assert.isUndefined(other.epoch.pollUnsafe())
      yield* TestClock.adjust("11 seconds")
      assert.match(JSON.stringify(yield* other.end), /it was silent for 11000 ms/u)
      assert.deepStrictEqual(other.did, ["recorded", "ready", "fenced by 2", "killed", "socket closed"])
    })
  )

  it.effect(
    "takes a silent agent whose container is gone for crashed before the threshold, by what its exit says (E8)",
    () =>
      Effect.gen(function* () {
        for (const told of [true, false]) {
          const { did, end, exit, liveness, hello, world } = yield* setUp()
          yield* hello
          yield* seconds(liveness, 3)
          assert.strictEqual(world.inspected, 0)
          world.condition = "gone"
          if (told)
            yield* Effect.forkChild(
              Effect.delay(Deferred.succeed(exit, { code: 7, signal: null, reason: "exited" }), "6500 millis"),
              { startImmediately: true }
            )
          yield* TestClock.adjust("7 seconds")
          const reason = told ? "it exited with code 7" : "its container is gone"
          assert.deepInclude(yield* end, { type: "crashed", ready: true, reason })
          assert.deepStrictEqual(did, ["recorded", "ready", "fenced by 2", "killed", "socket closed"])
        }
      })
  )

  it.effect(
    "says of a silent agent whose container is not gone why it is ended, and only after the threshold (E8)",
    () =>
      Effect.gen(function* () {
        const ends = {
          running: /its container is still running, so the agent hangs/u,
          paused: /is paused/u,
          unknown: /it is unknown/u
        }
        for (const [condition, reason] of Object.entries(ends)) {
          const { end, epoch, hello, world } = yield* setUp()
          yield* hello
          world.condition = condition as Condition
          yield* TestClock.adjust("10 seconds")
          assert.isUndefined(epoch.pollUnsafe())
          yield* TestClock.adjust("1 second")
          assert.match(JSON.stringify(yield* end), reason)
          assert.isAtLeast(world.inspected, 2)
        }
      })
  )

  it.effect("lets an agent live that is heard while its container is looked at, unless that is gone (E8)", () =>
    Effect.gen(function* () {
      for (const condition of ["running", "unknown", "gone"] as const) {
        const { end, epoch, liveness, hello, world } = yield* setUp()
        yield* hello
        world.look_ms = 800
        yield* TestClock.adjust("11 seconds")
        world.condition = condition
        yield* TestClock.adjust("400 millis")
        yield* isHeard(liveness)
        yield* TestClock.adjust("500 millis")
        if (condition === "gone") {
          yield* TestClock.adjust("1 second")
          assert.deepInclude(yield* end, { type: "crashed", reason: "its container is gone" })
          continue
        }
        yield* seconds(liveness, 5)
        assert.isUndefined(epoch.pollUnsafe())
        yield* TestClock.adjust("13 seconds")
        assert.match(JSON.stringify(yield* end), /it was silent for/u)
      }
    })
  )

  it.effect("takes nobody for silent who waits for choird's own answer, however late that is (D8)", () =>
    Effect.gen(function* () {
      const { end, epoch, liveness, hello } = yield* setUp()
      yield* hello
      liveness.unanswered = 2
      yield* TestClock.adjust("10 minutes")
      liveness.unanswered = 1
      yield* TestClock.adjust("10 minutes")
      assert.isUndefined(epoch.pollUnsafe())
      liveness.unanswered = 0
      yield* TestClock.adjust("11 seconds")
      assert.match(JSON.stringify(yield* end), /it was silent for/u)
    })
  )

  it.effect("waits for a goodbye after a stop, and at most 30 s and the time of the summary (D18)", () =>
    Effect.gen(function* () {
      const polite = yield* setUp()
      yield* polite.hello
      yield* Deferred.succeed(polite.stop, undefined)
      yield* seconds(polite.liveness, 20)
      yield* Deferred.succeed(polite.liveness.goodbye, "stopped")
      yield* Deferred.succeed(polite.exit, { code: 0, signal: null, reason: "exited" })
      assert.deepStrictEqual(yield* polite.end, { type: "goodbye", reason: "stopped" })
      const rude = yield* setUp()
      yield* rude.hello
      yield* Deferred.succeed(rude.stop, undefined)
      yield* seconds(rude.liveness, 59)
      assert.isUndefined(rude.epoch.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* rude.end, { type: "stopped" })
      assert.match(rude.warned.join(), /did not say goodbye.*longer than 60 s.*"acked_rev":0/u)
      assert.deepStrictEqual(rude.did, [
        "recorded",
        "ready",
        "stopping",
        "stop 60000",
        "revoked",
        "killed",
        "socket closed"
      ])
    })
  )

  it.effect("asks an agent to stop and ends it in time while the database is away", () =>
    Effect.gen(function* () {
      const { did, end, liveness, hello, stop, world } = yield* setUp()
      yield* hello
      world.away = true
      yield* Deferred.succeed(stop, undefined)
      yield* seconds(liveness, 325)
      assert.include(did, "stop 60000")
      assert.deepStrictEqual(yield* end, { type: "stopped" })
      assert.include(did, "killed")
    })
  )

  it.effect("kills an agent that says goodbye and stays, and one whose session is frozen and that goes on (D4)", () =>
    Effect.gen(function* () {
      const stays = yield* setUp()
      yield* stays.hello
      yield* Deferred.succeed(stays.liveness.goodbye, "budget")
      yield* TestClock.adjust("4999 millis")
      assert.isUndefined(stays.epoch.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* stays.end, { type: "goodbye", reason: "budget" })
      const frozen = yield* setUp()
      yield* frozen.hello
      yield* seconds(frozen.liveness, 10)
      frozen.frozen.reason = "conflict"
      yield* seconds(frozen.liveness, 5)
      assert.deepStrictEqual(yield* frozen.end, { type: "frozen", reason: "conflict" })
    })
  )

  it.effect("fails when the container does not die, so that nothing begins beside it (R8)", () =>
    Effect.gen(function* () {
      const stuck = new ContainerError({ reason: "stuck", problem: "it hangs", fix: "look" })
      const { end, exit, hello } = yield* setUp(Effect.fail(stuck))
      yield* hello
      yield* Deferred.succeed(exit, { code: 1, signal: null, reason: "exited" })
      assert.strictEqual(yield* end, stuck)
    })
  )
})
