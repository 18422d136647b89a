/** Jobs that a model's error ended, resumed by edge from their log, with everything real but choird and the model (D49). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Result, type Schema } from "effect"
import type { Message } from "#src/shared/model/Conversation.ts"
import { fold, foldAll, initialState } from "#src/shared/session/fold.ts"
import { viewOf } from "#src/shared/session/search.ts"
import { RESUMABLE_EVENTS_MAX, RESUMABLE_JOBS_MAX } from "#src/shared/session/resumableJobs.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { Rev } from "#schema/Ids.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Said, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"

const failed: Said = {
  finish_reason: "error",
  error: { kind: "http", status: 401, message: "the provider is away" }
}
const spawn = (more: Readonly<Record<string, Schema.Json>> = {}) =>
  calls(["choir.core.spawn", { job_name: "dig", task_spec: "dig a hole", ...more }])
const resume = (more: Readonly<Record<string, Schema.Json>> = {}) =>
  calls(["choir.core.spawn", { job_name: "dig", task_spec: "the provider is back", resume: true, ...more }])

const read = testTool("mem.read", () => Effect.succeed({ status: "success", summary: "sand" }), {
  effect: "none"
})

/** Edge says what a message asks for, once; everything else is "fine". */
const edgeSays = (messages: ReadonlyArray<Message>, by: Readonly<Record<string, Said>>): Said => {
  const last = messages.at(-1)
  return (last?.role === "user" ? by[last.content] : undefined) ?? says("fine")
}

/** A job that reads, fails, and is done once it is told that the provider is back. `prompts` are those of the job. */
const digging =
  (by: Readonly<Record<string, Said>>, prompts: Array<ReadonlyArray<Message>> = []): Script =>
  (messages) =>
    Effect.delay(
      Effect.sync(() => {
        if (!isCore(messages)) return edgeSays(messages, by)
        prompts.push(messages)
        if (messages.some(({ content }) => content?.includes("the provider is back"))) return says("dug")
        return messages.some(({ role }) => role === "tool") ? failed : calls(["mem.read", {}])
      }),
      "1 second"
    )

/** Says a message and waits until it, and whatever it led to, is answered. */
const through = (plane: MemoryControlPlane, text: string, reports: number) =>
  Effect.andThen(
    plane.say(text),
    plane.until(
      (events, state) =>
        ofType(events, "UserMsg").some(({ payload }) => payload.text === text) &&
        spoken(events).filter(({ payload }) => payload.kind === "report").length === reports &&
        quiet(state)
    )
  )

const started = (plane: MemoryControlPlane) => ofType(plane.events, "CoreStarted").map(({ payload }) => payload)
const stopped = (plane: MemoryControlPlane) => ofType(plane.events, "CoreStopped").map(({ payload }) => payload)
const rejections = (plane: MemoryControlPlane) =>
  ofType(plane.events, "ToolResultCommitted").flatMap(({ payload }) =>
    payload.status === "rejected" ? [payload.summary] : []
  )

describe("a job that a model's error ended", () => {
  it.effect("continues with its conversation, its constraints and its counters when edge resumes it", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const prompts: Array<ReadonlyArray<Message>> = []
      const context_bundle = { facts: ["the ground is soft"], excerpts: [], constraints: ["no machines"] }
      const tool_constraints = { allowed_tools: ["mem.read"], time_budget_ms: 600_000 }
      const script = digging({ go: spawn({ context_bundle, tool_constraints }), again: resume() }, prompts)
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [read] }))
      yield* through(plane, "go", 1)
      assert.deepInclude(stopped(plane)[0], { outcome: "error", summary: "the provider is away" })
      assert.isDefined(plane.state().resumable.get(started(plane)[0]!.job_name))
      yield* through(plane, "again", 2)

      const [first, second] = started(plane)
      const [error, end] = stopped(plane)
      assert.strictEqual(second?.resumes?.job_id, first?.job_id)
      assert.notStrictEqual(second?.job_id, first?.job_id)
      assert.deepStrictEqual(second?.start, { ...first!.start, job_id: second!.job_id })
      assert.strictEqual(second?.budgets.wall_time_ms, error?.resumable?.left_ms)
      assert.isBelow(second!.budgets.wall_time_ms, 600_000)
      assert.deepInclude(end, { outcome: "completed", summary: "dug" })
      const last = prompts.at(-1) ?? []
      assert.include(last[1]?.content, "- no machines")
      assert.isTrue(last.some(({ content, role }) => role === "tool" && content.includes("sand")))
      assert.include(last.at(-1)?.content, "Further instruction: the provider is back")
      assert.strictEqual(plane.state().resumable.size, 0)
      assert.strictEqual(prompts.length, 3)
    })
  )

  it.effect("may search the log from the start of its first life on, in each later life", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script: Script = (messages) =>
        Effect.sync(() => (isCore(messages) ? failed : edgeSays(messages, { go: spawn(), a: resume(), b: resume() })))
      yield* Effect.forkScoped(runAgent({ plane, script }))
      yield* through(plane, "go", 1)
      yield* through(plane, "a", 2)
      yield* through(plane, "b", 3)
      const starts = ofType(plane.events, "CoreStarted")
      const views = starts.map(
        ({ lane, rev }) => viewOf(Result.getOrThrow(foldAll(initialState, plane.events.slice(0, rev))), lane)?.from
      )
      assert.deepStrictEqual(views, [starts[0]?.rev, starts[0]?.rev, starts[0]?.rev])
      assert.strictEqual(starts.length, 3)
    })
  )

  it.effect("keeps its limits: steps count on over all its lives, and then it cannot be resumed", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script: Script = (messages) =>
        Effect.sync(() =>
          isCore(messages) ? failed : edgeSays(messages, { go: spawn(), a: resume(), b: resume(), c: resume() })
        )
      const config = agentConfig({ per_job_max_steps: 3 })
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [read], config }))
      yield* through(plane, "go", 1)
      yield* through(plane, "a", 2)
      yield* through(plane, "b", 3)
      yield* through(plane, "c", 3)
      assert.deepStrictEqual(
        stopped(plane).map(({ outcome }) => outcome),
        ["error", "error", "error"]
      )
      assert.deepStrictEqual(rejections(plane), [
        "the job dig cannot be resumed: its limit of 3 steps is reached; start a new one"
      ])
    })
  )

  it.effect("keeps its taint", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const page = testTool("mem.read", () =>
        Effect.succeed({ status: "success", summary: "a page", sources: ["web:a.example"] } as const)
      )
      const script = digging({ go: spawn(), again: resume() })
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [page] }))
      yield* through(plane, "go", 1)
      yield* through(plane, "again", 2)
      const resumedAt = plane.events.findIndex(
        (event) => event.event_type === "CoreStarted" && event.payload.resumes !== undefined
      )
      // Edge was tainted by the job's end; without that the lane alone would have to remember.
      const before = Result.getOrThrow(foldAll(initialState, plane.events.slice(0, resumedAt)))
      const untainted = { ...before, edge: { ...before.edge, tainted: false } }
      const after = Result.getOrThrow(fold(untainted, plane.events[resumedAt]!))
      assert.deepStrictEqual(
        [...after.cores.values()].map(({ tainted }) => tainted),
        [true]
      )
    })
  )

  it.effect("is resumed by a later epoch, wherever the agent dies between its end and its result", () =>
    Effect.gen(function* () {
      yield* ticking
      const whole = yield* makeMemoryControlPlane
      const script = digging({ go: spawn(), again: resume() })
      yield* Effect.forkScoped(runAgent({ plane: whole, script, tools: [read] }))
      yield* through(whole, "go", 1)
      yield* through(whole, "again", 2)
      const from = whole.events.findIndex(({ event_type }) => event_type === "CoreStopped")
      for (let rev = from + 1; rev <= whole.events.length; rev++) {
        const plane = yield* makeMemoryControlPlane
        const talk = Effect.andThen(through(plane, "go", 1), through(plane, "again", 2))
        const talking = yield* Effect.forkChild(talk)
        const agent = yield* Effect.forkChild(runAgent({ plane, script, tools: [read] }))
        yield* plane.cutOffAt(rev)
        yield* Fiber.interrupt(agent)
        const next = yield* Effect.forkChild(runAgent({ plane, script, tools: [read], epoch: 2 }))
        yield* Fiber.join(talking)
        yield* Fiber.interrupt(next)
        const where = `died at ${rev}`
        assert.deepStrictEqual(
          stopped(plane).map(({ outcome }) => outcome),
          ["error", "completed"],
          where
        )
        assert.strictEqual(started(plane)[1]?.resumes?.job_id, started(plane)[0]?.job_id, where)
        assert.deepStrictEqual(rejections(plane), [], where)
        const state = Result.getOrThrow(foldAll(initialState, plane.events))
        assert.deepStrictEqual(state, plane.state(), where)
      }
    })
  )

  it.effect("is one of the four newest that can be resumed", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const names = Array.from({ length: RESUMABLE_JOBS_MAX + 1 }, (_, index) => `dig-${index}`)
      const go = calls(...names.map((job_name) => ["choir.core.spawn", { job_name, task_spec: "dig" }] as const))
      const script: Script = (messages) => Effect.sync(() => (isCore(messages) ? failed : edgeSays(messages, { go })))
      yield* Effect.forkScoped(runAgent({ plane, script }))
      yield* through(plane, "go", names.length)
      const ended = stopped(plane).map(({ job_name }) => job_name)
      assert.deepStrictEqual([...plane.state().resumable.keys()], ended.slice(1))
    })
  )

  it.effect("cannot be resumed as something else, nor under a name that no such job has", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script = digging({
        none: resume(),
        go: spawn(),
        more: resume({ output_schema: { type: "object" }, tool_constraints: { allowed_tools: [] } })
      })
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [read] }))
      yield* through(plane, "none", 0)
      yield* through(plane, "go", 1)
      yield* through(plane, "more", 1)
      assert.deepStrictEqual(rejections(plane), [
        "no job named dig can be resumed; resumable: none",
        "the input does not fit choir-core-spawn: a resumed job keeps what it was started with: leave out tool_constraints, output_schema"
      ])
    })
  )

  it.effect("is forgotten some time after its end, and an end that invents time is refused", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      yield* Effect.forkScoped(runAgent({ plane, script: digging({ go: spawn() }), tools: [read] }))
      yield* through(plane, "go", 1)
      const { rev } = plane.state()
      const notice = (at: number): ChoirEvent => ({
        ...ofType(plane.events, "AgentMessage")[0]!,
        rev: Rev.make(at),
        payload: { kind: "notice", text: "still here" }
      })
      const later = Array.from({ length: RESUMABLE_EVENTS_MAX }, (_, index) => notice(rev + 1 + index))
      assert.strictEqual(Result.getOrThrow(foldAll(plane.state(), later)).resumable.size, 0)
      assert.strictEqual(Result.getOrThrow(foldAll(plane.state(), later.slice(0, 10))).resumable.size, 1)

      const end = ofType(plane.events, "CoreStopped")[0]!
      const before = Result.getOrThrow(foldAll(initialState, plane.events.slice(0, end.rev - 1)))
      const more = fold(before, { ...end, payload: { ...end.payload, resumable: { left_ms: 1e12 } } })
      assert.include(Result.isFailure(more) ? more.failure.reason : "", "more time is left than the job had")
    })
  )
})
