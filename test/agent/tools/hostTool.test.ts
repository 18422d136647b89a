import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Result, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { EventDraft } from "#schema/Event.ts"
import { CallId, coreLane, EDGE, JobName, type LaneId } from "#schema/Ids.ts"
import { LockRequest } from "#schema/Tool.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { ControlPlane, type HostReply } from "#src/agent/control/ControlPlane.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { HOST_CALL_GRACE_MS, hostTool, type HostToolSpec } from "#src/agent/tools/hostTool.ts"
import { Denied, Unreachable } from "#src/agent/control/verbAnswer.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { placed } from "../../support/history.ts"
import { started } from "../../support/jobEvents.ts"

const spec: HostToolSpec = {
  name: "choir.web.browse",
  description: "Opens a page",
  input: Schema.Struct({ url: Schema.String, mode: Schema.optionalKey(Schema.Literals(["text", "html"])) }),
  effect: "none",
  lanes: "both",
  locks: [LockRequest.make({ resource: "browser_tab", mode: "X" })],
  timeout_ms: 40_000,
  sources: () => ["web:a.example"]
}

type Execute = ControlPlane["Service"]["execute"]

const open = Effect.fnUntraced(function* (
  execute: Execute,
  options: { readonly spec?: Partial<HostToolSpec>; readonly events?: ReadonlyArray<EventDraft> } = {}
) {
  const state = Result.getOrThrow(foldAll(initialState, placed(initialState, options.events ?? [])))
  const acknowledged: Array<number> = []
  const reached = (rev: number) => Effect.sync(() => void acknowledged.push(rev))
  const tool = yield* Effect.provide(
    hostTool({ ...spec, ...options.spec }),
    Layer.mergeAll(
      Layer.mock(Arbiter, { state: () => state }),
      Layer.mock(ControlPlane, { execute }),
      Layer.mock(Replication, { acked: () => state.rev, reached })
    )
  )
  const run = (input: object = { url: "https://example.org" }, lane: LaneId = EDGE) =>
    Effect.flatMap(tool.prepare(input), (prepared) =>
      prepared.run({ lane, call_id: CallId.make("c-1-0"), seen: () => undefined, network: true })
    )
  return { acknowledged, run, tool }
})
const answering =
  (reply: HostReply): Execute =>
  () =>
    Effect.succeed(reply)
const page = { status: "success", output: { text: "hello" } } as const

describe("a host tool", () => {
  it.effect("is one request to choird with what the input decodes to", () =>
    Effect.gen(function* () {
      const asked: Array<readonly [object, unknown]> = []
      const { run, tool } = yield* open((call, job) => {
        asked.push([call, job])
        return Effect.succeed(page)
      })
      assert.deepStrictEqual(yield* run({ url: "https://example.org", mode: "text" }), {
        status: "success",
        summary: "choir-web-browse answered",
        output: page.output,
        sources: ["web:a.example"]
      })
      const input = { url: "https://example.org", mode: "text" }
      assert.deepStrictEqual(asked, [
        [{ tool_name: spec.name, call_id: "c-1-0", input, timeout_ms: spec.timeout_ms }, undefined]
      ])
      assert.deepInclude(tool, { effect: "none", lanes: "both" })
      const prepared = yield* tool.prepare({ url: "https://example.org" })
      assert.deepStrictEqual([prepared.locks, prepared.timeout_ms], [spec.locks, spec.timeout_ms + HOST_CALL_GRACE_MS])
      assert.include((yield* Effect.flip(tool.prepare({ url: 1 }))).problem, "url")
      assert.lengthOf(asked, 1)
    })
  )

  it.effect("proves for a job that it runs, once choird knows that it does (D35)", () =>
    Effect.gen(function* () {
      const jobs: Array<unknown> = []
      const execute: Execute = (_, job) => {
        jobs.push(job)
        return Effect.succeed(page)
      }
      const { acknowledged, run } = yield* open(execute, { events: [started("work")] })
      yield* run({ url: "a" }, coreLane(JobName.make("work")))
      assert.deepStrictEqual(acknowledged, [1])
      assert.deepStrictEqual(jobs, ["job-work"])
      const gone = yield* run({ url: "a" }, coreLane(JobName.make("other")))
      assert.deepInclude(gone, { status: "error" })
      assert.include(gone.summary, "the job is no longer running")
      assert.lengthOf(jobs, 1)
    })
  )

  it.effect("tells the model how it ended, in choird's words where there are some", () =>
    Effect.gen(function* () {
      const ended = (reply: HostReply) => Effect.flatMap(open(answering(reply)), ({ run }) => run())
      const error = yield* ended({ status: "error", output: { error: "no such host" } })
      assert.deepInclude(error, { status: "error", summary: "no such host", sources: ["web:a.example"] })
      assert.deepInclude(yield* ended({ status: "timeout", output: {} }), {
        status: "timeout",
        summary: "choir-web-browse ended with timeout"
      })
      const doubt = yield* ended({ status: "unknown_after_crash", output: { error: "its effect is not known" } })
      assert.deepInclude(doubt, { status: "unknown_after_crash", summary: "its effect is not known" })
    })
  )

  it.effect("says of a lost answer whether the effect is in doubt", () =>
    Effect.gen(function* () {
      const lost: Execute = () => Effect.fail(new Unreachable({ verb: "EXECUTE_HOST_TOOL", reason: "gone" }))
      const read = yield* Effect.flatMap(open(lost), ({ run }) => run())
      assert.deepInclude(read, { status: "error", summary: "choird did not answer EXECUTE_HOST_TOOL: gone" })
      const sent = yield* Effect.flatMap(open(lost, { spec: { effect: "external" } }), ({ run }) => run())
      assert.include(sent.summary, "whether it took effect is not known")
      const denied: Execute = () => Effect.fail(new Denied({ verb: "x", type: "NOT_AVAILABLE", reason: "none" }))
      const refused = yield* Effect.flatMap(open(denied, { spec: { effect: "external" } }), ({ run }) => run())
      assert.notInclude(refused.summary, "whether")
    })
  )

  it.effect("hangs up when it is interrupted", () =>
    Effect.gen(function* () {
      const hungUp = yield* Deferred.make<void>()
      const { run } = yield* open(() =>
        Effect.onInterrupt(Effect.never, () => Effect.asVoid(Deferred.succeed(hungUp, undefined)))
      )
      const fiber = yield* Effect.forkChild(run(), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      yield* Deferred.await(hungUp)
    })
  )
})
