/** What a user is told of a job without a model's words: lines while it runs, and the facts of its end. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, type Schema } from "effect"
import { TestClock } from "effect/testing"
import type { EventOf } from "#schema/Event.ts"
import { Sha256 } from "#schema/Ids.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { endFacts } from "#src/shared/session/jobText.ts"
import { lineDue, PLAN_LINE_AFTER_MS } from "#src/agent/session/jobLines.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Said, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool, ticking } from "../../support/testing/TestAgent.ts"

const MINUTE = 60_000
const sha256 = (digit: string) => Sha256.make(digit.repeat(64))
const tool = (name: string, result: object) =>
  testTool(name, () => Effect.succeed({ status: "success", summary: name, ...result } as const), {
    effect: "none",
    lanes: "core"
  })
const TOOLS = [
  tool("mem.read", { reads: ["a.ts", "b.ts"].map((path) => ({ path, sha256: sha256("1") })) }),
  tool("mem.write", { writes: ["b.ts", "c.ts"].map((path) => ({ path, after: sha256("2") })) }),
  tool("choir.exec", {})
]
const PLAN = {
  kind: "plan",
  text: "how I go about it",
  plan: [
    { step: "read\nthe sources", state: "done" },
    { step: "change them", state: "open" }
  ]
} satisfies Schema.Json

/**
 * A job that gives the answer after those that it sees, each after its time, and after an error the next one; edge starts it and says "fine" to
 * everything else.
 */
const working = (...said: ReadonlyArray<readonly [minutes: number, said: Said]>): Script => {
  let errors = 0
  return (messages: ReadonlyArray<Message>) => {
    if (isCore(messages)) {
      const [minutes, next] = said[messages.filter(({ role }) => role === "assistant").length + errors] ?? [
        0,
        says("done")
      ]
      errors += next.error === undefined ? 0 : 1
      return Effect.delay(
        Effect.succeed({ usage: { input_tokens: 1000, output_tokens: 50, cost_usd: 0.2 }, ...next }),
        minutes * MINUTE
      )
    }
    const last = messages.at(-1)
    return Effect.succeed(
      last?.role === "user" && last.content === "go"
        ? calls(["choir.core.spawn", { job_name: "dig", task_spec: "dig a hole" }])
        : says("fine")
    )
  }
}

const lines = (plane: MemoryControlPlane) =>
  ofType(plane.events, "AgentMessage").flatMap(({ payload }) => (payload.kind === "notice" ? [payload.text] : []))

const finished = (plane: MemoryControlPlane) =>
  plane.until((events, state) => ofType(events, "CoreStopped").length > 0 && quiet(state))

/** Runs a job to its end, and gives what the user was told. */
const told = Effect.fnUntraced(function* (script: Script, progress_interval_ms: number | null = 5 * MINUTE) {
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust("1 second"), Effect.yieldNow)))
  const plane = yield* makeMemoryControlPlane
  const config = { ...agentConfig(), jobs: { ...agentConfig().jobs, progress_interval_ms } }
  yield* Effect.forkScoped(runAgent({ plane, script, tools: TOOLS, config }))
  yield* plane.say("go")
  yield* finished(plane)
  return { plane, lines: lines(plane) }
})

const busy = [
  [0.1, calls(["mem.read", {}])],
  [0.1, calls(["mem.read", {}], ["mem.write", {}], ["choir.exec", { command: "make" }])]
] as const

describe("a job that takes long", () => {
  it.effect("is told of every five minutes, by what the log says", () =>
    Effect.gen(function* () {
      const { lines, plane } = yield* told(working(...busy, [12, calls(["mem.write", {}])], [1, says("dug")]))
      assert.deepStrictEqual(lines, [
        "dig: 2 files read, 2 changed, 1 command run",
        "dig: 2 files read, 2 changed, 1 command run"
      ])
      const notices = ofType(plane.events, "AgentMessage").filter(({ payload }) => payload.job !== undefined)
      assert.deepStrictEqual<unknown>(
        notices.map(({ payload }) => [payload.kind, payload.job, payload.in_reply_to]),
        [
          ["notice", "dig", "1"],
          ["notice", "dig", "1"],
          ["report", "dig", "1"]
        ]
      )
    })
  )

  it.effect("has its plan told once it has been there for a while, and then how far it is", () =>
    Effect.gen(function* () {
      const plan = calls(["choir.core.report", PLAN])
      const progress = calls(["choir.core.report", { kind: "progress", text: "well", phase: "second\nhalf" }])
      const { lines } = yield* told(working([0.1, plan], ...busy, [1, progress], [6, says("dug")]))
      assert.deepStrictEqual(lines, [
        "dig: plan of 2 steps: read the sources; change them",
        "dig: 2 files read, 2 changed, 1 command run; 1 of 2 steps done; second half"
      ])
    })
  )

  it.effect("has one line in that time, however often it plans", () =>
    Effect.gen(function* () {
      const plans = Array.from(
        { length: 9 },
        (_, index) => [0.75, calls(["choir.core.report", { ...PLAN, text: `plan ${index}` }])] as const
      )
      const { lines } = yield* told(working(...plans, [0.1, says("dug")]))
      assert.lengthOf(lines, 2)
    })
  )

  it.effect("is not told of when it ends before that, plan or not", () =>
    Effect.gen(function* () {
      const { lines } = yield* told(working(...busy, [4, says("dug")]))
      assert.deepStrictEqual(lines, [])
      const short = yield* told(working([0.1, calls(["choir.core.report", PLAN])], [0.4, says("dug")]))
      assert.deepStrictEqual(short.lines, [])
    })
  )

  it.effect("is not told of where config.json says so", () =>
    Effect.gen(function* () {
      const { lines } = yield* told(working(...busy, [20, says("dug")]), null)
      assert.deepStrictEqual(lines, [])
    })
  )

  it.effect("says nothing while it waits for the user", () =>
    Effect.gen(function* () {
      const asks = calls(["choir.core.report", { kind: "need_info", text: "Which branch?" }])
      const { lines } = yield* told(working([0.1, asks], [0.1, says("gave up")]))
      assert.deepStrictEqual(lines, [])
    })
  )

  it.effect("changes no prompt by its lines", () =>
    Effect.gen(function* () {
      const prompts: Array<ReadonlyArray<Message>> = []
      const script = working(...busy, [11, says("dug")])
      const seen: Script = (messages, tools) => {
        prompts.push(messages)
        return script(messages, tools)
      }
      const { lines } = yield* told(seen)
      assert.lengthOf(lines, 2)
      assert.notInclude(JSON.stringify(prompts), "1 command run")
    })
  )

  it.effect("has each line once, wherever the agent dies", () =>
    Effect.gen(function* () {
      const script = () => working(...busy, [4.7, calls(["mem.read", {}])], [0.2, says("dug")])
      const whole = (yield* told(script())).plane
      const at = whole.events.findIndex(({ event_type, payload }) => event_type === "AgentMessage" && "job" in payload)
      for (const rev of [at, at + 1, at + 2]) {
        const plane = yield* makeMemoryControlPlane
        yield* plane.say("go")
        const words = script()
        const first = yield* Effect.forkChild(runAgent({ plane, script: words, tools: TOOLS }))
        yield* plane.cutOffAt(rev)
        yield* Fiber.interrupt(first)
        const next = yield* Effect.forkChild(runAgent({ plane, script: words, tools: TOOLS, epoch: 2 }))
        yield* finished(plane)
        yield* Fiber.interrupt(next)
        assert.lengthOf(lines(plane), 1, `died at ${rev}`)
      }
    })
  )
})

describe("the next line on a job", () => {
  it("follows its start or the line before, and a plan comes sooner", () => {
    const due = (job: number, told?: number, plan?: number) =>
      lineDue(
        {
          job_ms: job * MINUTE,
          told_ms: told === undefined ? undefined : told * MINUTE,
          plan_ms: plan === undefined ? undefined : plan * MINUTE
        },
        5 * MINUTE
      )
    assert.strictEqual(due(0), 5 * MINUTE)
    assert.strictEqual(due(7, 1), 4 * MINUTE)
    assert.strictEqual(due(1, undefined, 0), PLAN_LINE_AFTER_MS)
    assert.strictEqual(due(8, 3, 1), 2 * MINUTE)
    assert.isAtMost(due(8, 5), 0)
    // A resumed job: its last line is from before.
    assert.strictEqual(due(0, 60), 5 * MINUTE)
  })
})

describe("the end of a job", () => {
  const facts = (plane: MemoryControlPlane) =>
    ofType(plane.events, "AgentMessage").flatMap(({ payload }) => (payload.kind === "report" ? [payload.facts] : []))

  it.effect("is told once, with what the log says of its work and not what a model does", () =>
    Effect.gen(function* () {
      const { plane } = yield* told(working(...busy, [2, says("I changed 40 files")]))
      assert.deepStrictEqual(facts(plane), [
        "dig completed in 2 minutes: at least 2 files changed (b.ts, c.ts), 1 command, 3 steps, 4 tool calls, 3,150 tokens, 0.60 USD."
      ])
    })
  )

  it("says no number of changed files that its commands may prove wrong", () => {
    const ended = (commands: number, files_changed: number, job_name = "dig") =>
      endFacts({
        v: 1,
        rev: 9,
        event_type: "CoreStopped",
        lane: "edge",
        created_at: "2026-01-01T00:00:06.000Z",
        payload: {
          job_name,
          outcome: "completed",
          work: {
            steps: 2,
            tool_calls: 2,
            files_read: 0,
            files_changed,
            commands,
            tokens: 10,
            started_at: "2026-01-01T00:00:00.000Z"
          }
        }
      } as unknown as EventOf<"CoreStopped">)
    const begin = "dig completed in 6 s:"
    const end = "2 steps, 2 tool calls, 10 tokens."
    assert.strictEqual(ended(0, 0), `${begin} no files changed, ${end}`)
    assert.strictEqual(ended(0, 1), `${begin} 1 file changed, ${end}`)
    assert.strictEqual(ended(1, 0), `${begin} 1 command, ${end}`)
    assert.strictEqual(ended(1, 1), `${begin} at least 1 file changed, 1 command, ${end}`)
    // Of the run of a skill that only told something, nobody counts the steps.
    assert.strictEqual(ended(0, 0, "run-brief"), "run-brief completed in 6 s.")
    assert.strictEqual(ended(1, 0, "run-brief"), `run-brief completed in 6 s: 1 command, ${end}`)
  })

  it.effect("counts all lives of a job that was resumed", () =>
    Effect.gen(function* () {
      yield* ticking
      const error = { kind: "http", status: 401, message: "the provider is away" } as const
      const jobs = working(...busy, [0.1, { finish_reason: "error", error }], [0.1, calls(["mem.write", {}])])
      const script: Script = (messages, tools) =>
        messages.at(-1)?.content === "again"
          ? Effect.succeed(calls(["choir.core.spawn", { job_name: "dig", task_spec: "go on", resume: true }]))
          : jobs(messages, tools)
      const plane = yield* makeMemoryControlPlane
      yield* Effect.forkScoped(runAgent({ plane, script, tools: TOOLS }))
      yield* plane.say("go")
      yield* finished(plane)
      yield* plane.say("again")
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 2 && quiet(state))
      assert.deepStrictEqual(facts(plane), [
        "dig ended with an error after 18 s: at least 2 files changed (b.ts, c.ts), 1 command, 3 steps, 4 tool calls, 3,150 tokens, 0.60 USD.",
        "dig completed in 24 s: at least 2 files changed (b.ts, c.ts), 1 command, 5 steps, 5 tool calls, 5,250 tokens, 1.00 USD."
      ])
    })
  )
})
