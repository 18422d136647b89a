/** The host's clock is set while an agent works: by an hour forth, as after a resume of its machine, and back. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer, Redacted, Result, Schema } from "effect"
import { TestClock } from "effect/testing"
import { CallId, coreLane, JobName } from "#schema/Ids.ts"
import { ToolName } from "#schema/Tool.ts"
import { ageSince } from "#src/agent/session/ageSince.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { makeAskHost } from "#src/agent/tools/hostTool.ts"
import { makeHostTool } from "#src/choird/hosttools/HostTool.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { layerSocketClient } from "#src/shared/wire/sockets.ts"
import { openSessionWith } from "../support/agentSocket.ts"
import { SESSION } from "../support/control.ts"
import { placed } from "../support/history.ts"
import { started } from "../support/jobEvents.ts"
import { settableClock } from "../support/settableClock.ts"
import { allowed, looksAtTimeOfDay, type TimeOfDay } from "../support/timeOfDay.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool, ticking } from "../support/testing/TestAgent.ts"

const HOUR_MS = 3_600_000

/** The job calls a slow tool with an effect outside twice, and the clock is set before each of the steps that follow. */
const script =
  (set: () => void): Script =>
  (messages) =>
    Effect.sync(() => {
      if (!isCore(messages))
        return messages.at(-1)?.content === "go"
          ? calls(["choir.core.spawn", { job_name: "work", task_spec: "send" }])
          : says("fine")
      set()
      return messages.filter(({ role }) => role === "tool").length < 2
        ? calls(["test.send", { count: messages.length }])
        : says("sent")
    })

const elapsed = Effect.fnUntraced(function* (by_ms: number) {
  const { clock, set } = yield* settableClock
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const send = testTool(
    "test.send",
    () =>
      Effect.gen(function* () {
        yield* Effect.sleep(100)
        set(by_ms)
        yield* Effect.sleep(100)
        return { status: "success", summary: "sent" } as const
      }),
    { effect: "external", timeout_ms: 5000 }
  )
  const config = agentConfig({ per_job_wall_time_ms: 60_000 })
  yield* runAgent({ plane, script: script(() => set(by_ms)), tools: [send], config }).pipe(
    Effect.provideService(Clock.Clock, clock),
    Effect.forkScoped
  )
  yield* plane.say("go")
  yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
  return {
    outcome: ofType(plane.events, "CoreStopped")[0]?.payload.outcome,
    results: ofType(plane.events, "ToolResultCommitted").flatMap(({ payload: { duration_ms, status, summary } }) =>
      summary === "sent" ? [{ status, isTrue: duration_ms >= 200 && duration_ms < 5000 }] : []
    )
  }
}, Effect.scoped)

describe("an agent whose host's clock is set", () => {
  for (const [name, by_ms] of [
    ["forth", HOUR_MS],
    ["back", -HOUR_MS]
  ] as const)
    it.effect(`ends no job, cuts off no call and measures the same when it goes an hour ${name}`, () =>
      Effect.gen(function* () {
        const sent = { status: "success", isTrue: true } as const
        assert.deepStrictEqual(yield* elapsed(by_ms), { outcome: "completed", results: [sent, sent] })
      })
    )

  // The two may also be on two machines, whose clocks differ by as much.
  for (const [name, by_ms] of [
    ["forth", HOUR_MS],
    ["back", -HOUR_MS]
  ] as const)
    it.effect(`has its job's host calls taken by choird when it goes an hour ${name}`, () =>
      Effect.gen(function* () {
        // The time at which the job started, whose milliseconds are not over.
        yield* TestClock.adjust(1000)
        const { clock, set } = yield* settableClock
        const hello = makeHostTool({
          name: "test.hello",
          effect: "none",
          timeout_ms: 1000,
          input: Schema.Struct({}),
          run: (_, { job_id }) => Effect.succeed({ status: "success", output: job_id ?? "nobody" })
        })
        const state = Result.getOrThrow(foldAll(initialState, placed(initialState, [started("work")])))
        const reply = yield* Effect.gen(function* () {
          const { socket, world } = yield* openSessionWith([hello])
          world.state = state
          const plane = ControlPlane.layer(SESSION, Redacted.make("lease")).pipe(
            Layer.provide(layerSocketClient(socket.path))
          )
          const others = Layer.merge(
            Layer.mock(Arbiter, { state: () => state }),
            Layer.mock(Replication, { acked: () => state.rev, reached: () => Effect.void })
          )
          const ask = yield* Effect.provide(makeAskHost, yield* Layer.build(Layer.merge(plane, others)))
          set(by_ms)
          return yield* ask(coreLane(JobName.make("work")), {
            tool_name: ToolName.make("test.hello"),
            call_id: CallId.make("c-1-0"),
            input: {},
            timeout_ms: 1000
          })
        }).pipe(Effect.provideService(Clock.Clock, clock))
        assert.deepStrictEqual(reply, { status: "success", output: "job-work" })
      })
    )

  it.effect("takes the age that something has from an earlier epoch, and none from a time that is still to come", () =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      assert.strictEqual(yield* yield* ageSince(new Date(now - HOUR_MS).toISOString()), HOUR_MS)
      assert.strictEqual(yield* yield* ageSince(new Date(now + HOUR_MS).toISOString()), 0)
    })
  )
})

/** Where an agent looks at the time of day, and for what. */
const TIME_OF_DAY: TimeOfDay = {
  "session/ageSince.ts": "what an earlier epoch committed is as old as its event says",
  "session/jobWaits.ts": "no monotonic clock runs on while the computer is off",
  "arbiter/Arbiter.ts": "the time of an event",
  "control/Replication.ts": "the time of a heartbeat",
  "memory/Compactor.ts": ["text from outside is as old as its event says", 2],
  "model/modelRequest.ts": "the date of Retry-After",
  "model/prompt/Environment.ts": "the day that models are told",
  "outside/OutsideApi.ts": "the date of Retry-After",
  "tools/coreTools.ts": "the minutes of a running job that its model is told"
}

it("no code of an agent computes a span from the time of day", () => {
  assert.deepStrictEqual(looksAtTimeOfDay(join(import.meta.dirname, "../../src/agent")), allowed(TIME_OF_DAY))
})
