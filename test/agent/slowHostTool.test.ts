/** A host tool of half a minute beside everything else that an agent does (R62). */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { EventOf } from "#schema/Event.ts"
import { coreLane, EDGE, JobName } from "#schema/Ids.ts"
import { LockRequest } from "#schema/Tool.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { LockManager } from "#src/agent/calls/LockManager.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { runSession } from "#src/agent/session/Session.ts"
import { hostTool } from "#src/agent/tools/hostTool.ts"
import { memoryQuery } from "#src/agent/tools/memoryTools.ts"
import { makeMemoryControlPlane, SESSION } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { layerLanes, ofType, settingsOf, testTool } from "../support/testing/TestAgent.ts"

const BROWSE_MS = 30_000
const TURNS = 20
const LIMIT_MS = 200

const browsing = {
  name: "choir.web.browse",
  description: "Opens a page",
  input: Schema.Struct({ url: Schema.String }),
  effect: "none",
  lanes: "both",
  locks: [LockRequest.make({ resource: "browser_tab", mode: "X" })],
  timeout_ms: 2 * BROWSE_MS,
  sources: () => ["web:a.example" as const]
} as const

/** The job browses; edge searches the log and reads at each message, then answers. */
const script: Script = (messages) =>
  Effect.gen(function* () {
    yield* Effect.sleep("20 millis")
    const last = messages.at(-1)
    if (isCore(messages))
      return last?.role === "tool" ? says("read it") : calls(["choir.web.browse", { url: "https://example.org" }])
    if (last?.role !== "user") return says("answered")
    if (last.content.startsWith("<choir-note>\nReport:")) return says("the job ended")
    return last.content === "browse"
      ? calls(["choir.core.spawn", { job_name: "work", task_spec: "browse" }])
      : calls(["choir.memory.query", { store: "working", mode: "keyword", query: "browse" }], ["test.read", {}])
  })

/** An agent whose choird takes half a minute to browse, and when it heard heartbeats. */
const start = Effect.gen(function* () {
  const plane = yield* makeMemoryControlPlane
  const beats: Array<number> = []
  const control = Layer.effect(
    ControlPlane,
    Effect.map(ControlPlane, (memory) =>
      ControlPlane.of({
        ...memory,
        approval: () => Effect.die("unused"),
        execute: (call) =>
          call.tool_name === browsing.name
            ? Effect.as(Effect.sleep(BROWSE_MS), { status: "success", output: { text: "a page" } })
            : memory.execute(call),
        heartbeat: (request) =>
          Effect.andThen(
            Effect.map(Clock.currentTimeMillis, (now) => void beats.push(now)),
            memory.heartbeat(request)
          )
      })
    )
  ).pipe(Layer.provide(plane.layer(1)))
  const services = yield* Layer.build(
    Layer.mergeAll(Arbiter.layer, LockManager.layer, SecretStore.layer).pipe(
      Layer.provideMerge(Layer.mergeAll(EventLog.layer(SESSION), AgentSettings.layer(settingsOf(1)), control))
    )
  )
  const acknowledged = Layer.mock(Replication, { acked: () => plane.events.length, reached: () => Effect.void })
  const host = yield* Effect.provide(
    Effect.all([hostTool(browsing), memoryQuery(() => false)]),
    Layer.merge(Layer.succeedContext(services), acknowledged)
  )
  const tools = [
    ...host,
    testTool("test.read", () => Effect.succeed({ status: "success", summary: "read" }), {
      effect: "none",
      locks: [LockRequest.make({ resource: "workspace", mode: "S" })]
    })
  ]
  const lanes = layerLanes({ script, tools }).pipe(Layer.provideMerge(Layer.succeedContext(services)))
  yield* Effect.forkScoped(Effect.provide(runSession, lanes))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust("5 millis"), Effect.yieldNow)))
  return { beats, plane }
})

describe("a host tool of 30 s", () => {
  it.effect(`delays no other lane's queries, reads, model calls and heartbeats by ${LIMIT_MS} ms (R62)`, () =>
    Effect.gen(function* () {
      const { beats, plane } = yield* start
      const answers = () =>
        ofType(plane.events, "AgentMessage").filter(({ payload }) => payload.kind === "reply").length
      yield* plane.say("browse")
      yield* plane.until(() => answers() === 1)
      yield* plane.until((_, state) => (state.cores.get(JobName.make("work"))?.calls ?? []).length === 1)
      for (let turn = 1; turn <= TURNS; turn++) {
        const said = yield* Clock.currentTimeMillis
        yield* plane.say(`find it (${turn})`)
        yield* plane.until(() => answers() === turn + 1)
        assert.isBelow((yield* Clock.currentTimeMillis) - said, LIMIT_MS)
      }
      const isDone = (event: EventOf<"ToolResultCommitted">) => event.lane === coreLane(JobName.make("work"))
      const results = () => ofType(plane.events, "ToolResultCommitted")
      assert.isFalse(results().some(isDone))
      yield* plane.until(() => results().some(isDone))
      const browsed = results().find(isDone)?.payload
      assert.deepInclude(browsed, { status: "success", untrusted: true })
      assert.isAtLeast(browsed?.duration_ms ?? 0, BROWSE_MS)
      const edge = results().filter(({ lane, payload }) => lane === EDGE && payload.status === "success")
      assert.lengthOf(edge, 2 * TURNS + 1)
      for (const { payload } of edge) assert.isBelow(payload.duration_ms, LIMIT_MS)
      const gaps = beats.slice(1).map((at, index) => at - (beats[index] ?? 0))
      assert.isAtMost(Math.max(...gaps), settingsOf(1).config.heartbeat_interval_ms + LIMIT_MS)
    })
  )
})
