/** How soon a death is seen, in which order it is dealt with, and what is no death: real processes, choird in this one (R7, R8, D8). */
import { assert, describe, layer } from "@effect/vitest"
import { Clock, Effect, Logger, Option, Schedule } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import type { HostContainerId } from "#src/choird/runtime/ContainerRuntime.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { beginLife, database, LIVE, makeAgentHome } from "../../support/choird.ts"
import { makeJournal } from "../../support/testing/Journal.ts"
import { isGone } from "../runtime/rig.ts"
import { LIVENESS_LOOK_MS } from "#src/choird/agents/LiveEpochs.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

interface Line {
  readonly text: string
  readonly at_ms: number
}

const HEARTBEAT_MS = 500
/** Longer than these tests wait: what is seen here is an exit, and no silence. */
const THRESHOLD_MS = 60_000

/** A running agent, and what choird's log says of it with the time of each line. */
const setUp = Effect.fnUntraced(function* (timing: object = {}) {
  const home = yield* makeAgentHome(() => ({
    heartbeat_interval_ms: HEARTBEAT_MS,
    crash_detection_threshold_ms: THRESHOLD_MS,
    ...timing
  }))
  const life = yield* beginLife(home.home)
  const lines = makeJournal<Line>()
  const logger = Logger.make(({ date, message }) =>
    lines.record({ text: Array.isArray(message) ? String(message[0]) : String(message), at_ms: date.getTime() })
  )
  const { agent_id, lifecycle } = { ...home, ...life }
  yield* Effect.provide(lifecycle.start(agent_id, {}), Logger.layer([logger]))
  const session = life
    .within(Effect.flatMap(SessionStore, ({ latest }) => latest(agent_id)))
    .pipe(Effect.map(Option.getOrThrow))
  const pid = Effect.map(session, ({ container }) => (container as unknown as HostContainerId).processes[0]?.pid ?? 0)
  /** The time in ms since a moment at which the log says something, for the first time after it. */
  const since = (at_ms: number, text: RegExp) =>
    Effect.map(
      lines.journal.first((line) => line.at_ms >= at_ms && text.test(line.text)),
      (line) => line.at_ms - at_ms
    )
  return { ...home, ...life, lines: lines.journal, pid, session, since }
})

const held = (life: Effect.Success<ReturnType<typeof setUp>>, agent_id: AgentId) =>
  life
    .within(Effect.flatMap(Leases, ({ all }) => all))
    .pipe(Effect.map((all) => all.filter((lease) => lease.agent_id === agent_id).length))

/** What takes a moment on a quiet machine. */
const SOON_MS_MAX = 10_000
const FENCED = /^the agent's token is no longer valid$/u
const GONE = /^its container is gone$/u

describe("a crash", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("is seen at the exit, and dealt with in order: token, container, next epoch (R7, R8, D8)", () =>
      Effect.gen(function* () {
        const life = yield* setUp()
        const first = yield* life.pid
        const killed_ms = yield* Clock.currentTimeMillis
        process.kill(first, "SIGKILL")
        assert.isBelow(yield* life.since(killed_ms, FENCED), SOON_MS_MAX)
        yield* life.lines.first(({ text }) => text === "epoch 2 begins")
        assert.isTrue(yield* isGone(first))
        const order = (yield* life.lines.all).map(({ text }) => text)
        assert.deepStrictEqual(
          order.filter((text) => FENCED.test(text) || GONE.test(text) || /^(epoch|the agent)/u.test(text)),
          [
            "epoch 1 begins",
            "the agent is running",
            "the agent's token is no longer valid",
            "epoch 1 ends: crash; its container is killed unless it is gone",
            "its container is gone",
            "the agent crashed: it was ended by SIGKILL",
            "epoch 2 begins"
          ]
        )
      })
    )

    it.effect("frees the resources at once where nothing begins any more, and not before the end (R7)", () =>
      Effect.gen(function* () {
        const life = yield* setUp()
        const { agent_id } = life
        // The message stays unacknowledged, so that each epoch dies of it again, until the breaker trips.
        yield* life.say(agent_id, "crash")
        const last = yield* life.lines.first(({ text }) => text.startsWith("the agent will not be started again"))
        const lines = yield* life.lines.all
        const seen = lines.findLast(({ text }) => FENCED.test(text))
        const freed = lines.findLast(({ text }) => text === "released its workspace, DMs and other leases")
        assert.isBelow((freed?.at_ms ?? Infinity) - (seen?.at_ms ?? 0), SOON_MS_MAX)
        const end = lines.slice(lines.indexOf(seen!), lines.indexOf(last) + 1).map(({ text }) => text)
        assert.deepStrictEqual(end.slice(0, 4), [
          "the agent's token is no longer valid",
          "epoch 3 ends: crash; its container is killed unless it is gone",
          "its container is gone",
          "released its workspace, DMs and other leases"
        ])
        assert.strictEqual(yield* held(life, agent_id), 0)
        assert.strictEqual((yield* life.session).status, "crashed")
      })
    )

    it.effect("is seen in an agent that hangs, within the threshold and a heartbeat (R7)", () =>
      Effect.gen(function* () {
        const threshold_ms = 3000
        // As with the defaults, a heartbeat is longer than the two looks that it takes.
        const heartbeat_ms = 1500
        const life = yield* setUp({ heartbeat_interval_ms: heartbeat_ms, crash_detection_threshold_ms: threshold_ms })
        const first = yield* life.pid
        const stopped_ms = yield* Clock.currentTimeMillis
        process.kill(first, "SIGSTOP")
        const seen_ms = yield* life.since(stopped_ms, FENCED)
        assert.isAtLeast(seen_ms, threshold_ms - heartbeat_ms - LIVENESS_LOOK_MS)
        // Ten times what R7 allows, for a busy machine. Without the threshold it is never seen.
        assert.isAtMost(seen_ms, 10 * (threshold_ms + heartbeat_ms))
        yield* life.views.first((view) => view.status === "running" && view.epoch === 2)
        assert.isTrue(yield* isGone(first))
      })
    )

    it.effect("is not what an agent looks like whose event loop stands still for three seconds (R7)", () =>
      Effect.gen(function* () {
        const life = yield* setUp({ crash_detection_threshold_ms: 10_000 })
        const { agent_id } = life
        yield* life.say(agent_id, "busy")
        yield* life.say(agent_id, "still there")
        yield* life.told(agent_id, /^1: still there$/u)
        assert.deepInclude(yield* life.lifecycle.view(agent_id), { status: "running", epoch: 1 })
        assert.isFalse((yield* life.lines.all).some(({ text }) => FENCED.test(text)))
      })
    )

    it.effect("counts from zero again when a person starts the agent, which then crashes three times more (R9)", () =>
      Effect.gen(function* () {
        const life = yield* setUp()
        const { agent_id, lifecycle, views } = life
        yield* life.say(agent_id, "crash")
        yield* views.first((view) => view.status === "crashed")
        assert.strictEqual((yield* life.session).epoch, 3)
        const seen = (yield* views.all).length
        // The run has told of its end and is about to be forgotten.
        const start = Effect.retry(lifecycle.start(agent_id, {}), {
          while: ({ kind }) => kind === "ALREADY_RUNNING",
          schedule: Schedule.spaced("20 millis")
        })
        yield* Effect.forkChild(Effect.exit(start))
        const again = yield* views.first((view) => view.status === "crashed", seen)
        assert.strictEqual((yield* life.session).epoch, 6)
        assert.match(again.reason ?? "", /^it crashed 3 times in 5 minutes/u)
      })
    )
  })
})
