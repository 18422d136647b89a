/** Skills that the runtime runs: without a model, the same each time, and on after a crash anywhere. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { LaneId } from "#schema/Ids.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"
import { contractSpec, todoFlagger } from "../support/contracts.ts"
import { bookOf } from "../support/skills.ts"

const JOB = LaneId.make("core:flags")
const MATCHES = [{ path: "a.ts", line: 1, text: "// TODO" }]

/** Finds, asks twice, and posts what it found. */
const reporter = contractSpec({
  ...todoFlagger,
  name: "reporter",
  contract: {
    ...todoFlagger.contract,
    state: { ...todoFlagger.contract.state, first: { schema: { type: "string" } }, receipt: { schema: {} } },
    state_read: ["path", "flags", "first"],
    state_write: ["flags", "first", "receipt"],
    capabilities: ["fs:read", "fs:write", "net"]
  },
  registry: {
    ...todoFlagger.registry,
    workflow: [
      ...todoFlagger.registry.workflow,
      { step: "Name the first.", tool: "mem.name", params: { of: "${flags.0.path}" }, writes: { first: "name" } },
      { step: "Post it.", tool: "out.post", params: { text: "first: ${first}" }, writes: { receipt: "." } }
    ],
    verification: [{ tool: "mem.check", params: { path: "${path}" }, expect: { path: "ok", op: "==", value: true } }]
  }
})
const flagger = contractSpec(todoFlagger)

interface Made {
  readonly ledger: ReadonlyArray<string>
  readonly plane: MemoryControlPlane
  /** Prompts of a job. */
  readonly asked: number
}

const makeTools = (ledger: Array<string>, ok = true, found: object = { matches: MATCHES }) => {
  const tool = (name: string, effect: "none" | "external", output: unknown) =>
    testTool(
      name,
      ({ call_id }) =>
        Effect.gen(function* () {
          ledger.push(`${name} ${call_id}`)
          yield* Effect.sleep("20 millis")
          return { status: "success", summary: "done", output: output as never } as const
        }),
      { effect, besideJobs: true }
    )
  return [
    tool("choir.fs.search", "none", found),
    tool("mem.name", "none", { name: "a.ts" }),
    tool("out.post", "external", { id: 7 }),
    tool("mem.check", "none", { ok })
  ]
}

/** Edge starts the script as a job; no job ever asks a model. */
const edge =
  (skill: string, input: object, seen: { asked: number }): Script =>
  (messages) =>
    Effect.sync(() => {
      if (isCore(messages)) {
        seen.asked += 1
        return says("a model was asked")
      }
      const text = messages.findLast(({ role }) => role === "user")?.content ?? ""
      if (text.startsWith("<choir-note>\nReport:")) return says("it ended")
      return messages.some(({ role }) => role === "tool")
        ? says("started")
        : calls(["choir.core.spawn", { job_name: "flags", task_spec: "t", skill: { name: skill, input } as never }])
    })

const GRANTED = ["fs:read", "fs:write", "net", "human"] as const
const done = (events: ReadonlyArray<ChoirEvent>) => spoken(events).length === 2

const live = Effect.fnUntraced(function* (
  skill: typeof flagger,
  input: object,
  cutAt?: number,
  ok = true,
  found?: object
) {
  const plane = yield* makeMemoryControlPlane
  const ledger: Array<string> = []
  const seen = { asked: 0 }
  const options = {
    plane,
    script: edge(skill.name, input, seen),
    tools: makeTools(ledger, ok, found),
    skills: bookOf(skill),
    config: { ...agentConfig(), grants: GRANTED }
  }
  yield* plane.say("go")
  const whole = plane.until((events, state) => done(events) && quiet(state))
  if (cutAt !== undefined) {
    const first = yield* Effect.forkChild(runAgent(options))
    yield* Effect.raceFirst(plane.cutOffAt(cutAt), whole)
    yield* Fiber.interrupt(first)
  }
  const last = yield* Effect.forkChild(runAgent({ ...options, epoch: 2 }))
  yield* Effect.raceFirst(whole, Fiber.join(last))
  yield* Fiber.interrupt(last)
  return { plane, ledger, asked: seen.asked } satisfies Made
})

const ofJob = (events: ReadonlyArray<ChoirEvent>) => events.filter(({ lane }) => lane === JOB)
const stopped = ({ plane }: Made) => ofType(plane.events, "CoreStopped")[0]?.payload

/** What happened, without places and times. */
const told = ({ plane }: Made) =>
  JSON.stringify(ofJob(plane.events).map(({ event_type, payload }) => [event_type, payload])).replaceAll(
    /"(?:call_id|job_id|started_at)":"[^"]*"/gu,
    '""'
  )

describe("a script", () => {
  it.effect("runs as a job without any request to a model, and its output is the job's result", () =>
    Effect.gen(function* () {
      yield* ticking
      const made = yield* live(flagger, { path: "src" })
      assert.strictEqual(made.asked, 0)
      assert.deepStrictEqual(stopped(made)?.result, { flags: MATCHES })
      assert.strictEqual(stopped(made)?.outcome, "completed")
      assert.deepStrictEqual(stopped(made)?.usage, { input_tokens: 0, output_tokens: 0 })
      const outputs = ofType(ofJob(made.plane.events), "ModelOutput").map(({ payload }) => payload)
      assert.deepStrictEqual(
        outputs.map(({ model, tool_calls, usage }) => [model, tool_calls[0]?.name, usage.input_tokens]),
        [
          ["skill:todo-flagger@1.0.0", "choir-fs-search", 0],
          ["skill:todo-flagger@1.0.0", "choir-skill-transition", 0]
        ]
      )
      const [search] = outputs
      assert.deepStrictEqual(search?.tool_calls[0]?.input, { pattern: "TODO|FIXME|XXX", path: "src" })
      const moves = ofType(made.plane.events, "SkillTransitionCommitted").map(({ payload }) => payload)
      assert.deepInclude(moves[0], { execution_class: "deterministic", version: "1.0.0", tier: "audit" })
      assert.deepStrictEqual(moves[0]?.writes, { path: "src" })
      assert.deepStrictEqual(moves[1]?.asserted, [{ statement: "each flag names its file", ok: true, detail: "" }])
    })
  )

  it.effect("gives the same events for the same STATE", () =>
    Effect.gen(function* () {
      yield* ticking
      const first = told(yield* live(reporter, { path: "src" }))
      assert.strictEqual(told(yield* live(reporter, { path: "src" })), first)
      assert.notStrictEqual(told(yield* live(reporter, { path: "lib" })), first)
    })
  )

  it.effect("continues after a crash at each event, asks no model, and calls nothing external twice", () =>
    Effect.gen(function* () {
      yield* ticking
      const whole = yield* live(reporter, { path: "src" })
      assert.strictEqual(stopped(whole)?.outcome, "completed")
      assert.deepStrictEqual(stopped(whole)?.result, { flags: MATCHES, first: "a.ts", receipt: { id: 7 } })
      for (let rev = 1; rev <= whole.plane.events.length; rev++) {
        const made = yield* live(reporter, { path: "src" }, rev)
        const { ledger, plane } = made
        assert.strictEqual(made.asked, 0, `after ${rev}`)
        const posts = ledger.filter((line) => line.startsWith("out.post"))
        assert.isAtMost(posts.length, 1, `after ${rev}`)
        const doubt = ofType(plane.events, "ToolResultCommitted").filter(
          ({ payload }) => payload.status === "unknown_after_crash"
        )
        // The one thing that a script cannot know after a crash is whether a post arrived.
        assert.strictEqual(stopped(made)?.outcome, doubt.length === 0 ? "completed" : "error", `after ${rev}`)
        assert.deepStrictEqual(
          stopped(made)?.result ?? null,
          doubt.length === 0 ? (stopped(whole)?.result ?? null) : null,
          `after ${rev}`
        )
      }
    })
  )

  it.effect("fails where its verification does not hold, whatever it found", () =>
    Effect.gen(function* () {
      yield* ticking
      const made = yield* live(reporter, { path: "src" }, undefined, false)
      assert.strictEqual(stopped(made)?.outcome, "error")
      assert.match(stopped(made)?.summary ?? "", /mem-check does not verify the work: ok: it is false/u)
    })
  )

  it.effect("fails where a value does not fit its field, and where STATE lacks what a call needs", () =>
    Effect.gen(function* () {
      yield* ticking
      const narrow = contractSpec({
        ...todoFlagger,
        contract: {
          ...todoFlagger.contract,
          state: { ...todoFlagger.contract.state, flags: { schema: { type: "string" } } }
        }
      })
      const made = yield* live(narrow, { path: "src" })
      assert.match(stopped(made)?.summary ?? "", /the field flags does not fit its schema/u)
      const lacking = yield* live(flagger, {})
      assert.match(stopped(lacking)?.summary ?? "", /STATE has no value for \$\{path\}/u)
      assert.deepStrictEqual(lacking.ledger, [])
    })
  )

  it.effect("passes on no part of a result as if it were all, unless it says so", () =>
    Effect.gen(function* () {
      yield* ticking
      const cut = { matches: MATCHES, truncated: true }
      const made = yield* live(flagger, { path: "src" }, undefined, true, cut)
      assert.strictEqual(stopped(made)?.outcome, "error")
      assert.match(
        stopped(made)?.summary ?? "",
        /choir-fs-search found more than one call returns \(done\): narrow its input/u
      )
      assert.notProperty(stopped(made), "result")
      const [step] = todoFlagger.registry.workflow
      const saying = contractSpec({
        ...todoFlagger,
        contract: {
          ...todoFlagger.contract,
          state: { ...todoFlagger.contract.state, more: { schema: { type: "boolean" } } },
          state_write: ["flags", "more"]
        },
        registry: { ...todoFlagger.registry, workflow: [{ ...step, writes: { ...step.writes, more: "truncated" } }] }
      })
      const said = yield* live(saying, { path: "src" }, undefined, true, cut)
      assert.deepStrictEqual(stopped(said)?.result, { flags: MATCHES, more: true })
    })
  )

  it.effect("runs on edge too, whose model then gets the output and answers", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let asked = 0
      const script: Script = (messages) =>
        Effect.sync(() => {
          asked += 1
          const last = messages.at(-1)
          if (last?.role === "user")
            return calls(["choir.skill.start", { skill: "todo-flagger", input: { path: "." } }])
          return says(last?.content ?? "nothing")
        })
      const agent = yield* Effect.forkChild(runAgent({ plane, script, tools: makeTools([]), skills: bookOf(flagger) }))
      yield* plane.say("flag them")
      const answered = plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      yield* Effect.raceFirst(answered, Fiber.join(agent))
      yield* Fiber.interrupt(agent)
      assert.strictEqual(asked, 2, "to begin, and to answer")
      assert.include(spoken(plane.events)[0]?.payload.text, "a.ts")
    })
  )
})
