/** What becomes of content that no event can hold: it never stops a lane, and nobody waits for it in vain. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { SignalId } from "#schema/Ids.ts"
import { deltasOf } from "#src/agent/memory/compaction.ts"
import { emptySummary, SUMMARY_REFERENCES_MAX } from "#src/shared/session/memory.ts"
import { caughtCommits } from "./caughtCommits.ts"
import { parsed, parsedFolder } from "../support/syntax.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, isCore, says, type Said } from "../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"
import { CORE_SUMMARY_CHARS_MAX } from "#src/agent/session/CoreJob.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"

const AGENT = join(import.meta.dirname, "../../src/agent")

/** Where a refusal may be caught, and what becomes of it. */
const CAUGHT: Readonly<Record<string, string>> = {
  "arbiter/Arbiter.ts: commitEnd: catch": "gives way to less, or is a defect while what should end is open",
  "arbiter/Arbiter.ts: commitIfDue: catch": "a defect where no event can hold the command",
  "calls/ToolRunner.ts: moveSkill: catchIf": "asks the judge whose verdict is missing, and commits again",
  "calls/ToolRunner.ts: runCall: catchTags": "becomes the result of the call",
  "calls/ToolRunner.ts: startJob: catchIf": "waits until edge writes nothing, and only while it writes",
  "calls/grantedCall.ts: durable: timeoutOption": "of the wait for choird, not of the commit before it",
  "calls/grantedCall.ts: runGranted: catchTag": "of a slot, not of the commit",
  "memory/Compactor.ts: compact: catch": "answers that there is no compaction",
  "model/ModelCalls.ts: committed: catch":
    "a defect while the lane is there, else the cost is booked without the answer",
  "model/ModelCalls.ts: committed: catchIf": "commits less: no reasoning, then an error in the place of the answer",
  "trial/Trial.ts: runSkill: catchTag": "of the limit of a trial, not of a commit"
}

/** Code that catches the refusal of a commit in one way or another, and code that does not. */
const CODE: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
  ...["option", "exit", "result", "ignore"].map(
    (name) => [`const a = Effect.${name}(arbiter.commit(x))`, [`a.ts: a: ${name}`]] as const
  ),
  ["const a = arbiter.commit(x).pipe(Effect.asVoid, Effect.catch(() => Effect.void))", ["a.ts: a: catch"]],
  ["const a = pipe(arbiter.commit(x), Effect.orElseSucceed(() => []))", ["a.ts: a: orElseSucceed"]],
  ["const a = Effect.gen(function* () { yield* arbiter.commit(x) }).pipe(Effect.retry(often))", ["a.ts: a: retry"]],
  ["const a = Effect.fnUntraced(function* () { yield* arbiter.commit(x) }, Effect.ignore)", ["a.ts: a: ignore"]],
  ["const a = Effect.forkScoped(arbiter.commit(x))", ["a.ts: a: forkScoped"]],
  ["const send = (x) => arbiter.commit(x)\nconst a = Effect.option(send(x))", ["a.ts: a: option"]],
  ["const send = arbiter.commit(x)\nconst a = send.pipe(Effect.exit)", ["a.ts: a: exit"]],
  ["const a = Effect.andThen(arbiter.commit(x), Effect.option(look))", []],
  ["const a = Effect.flatMap(Effect.exit(look), () => arbiter.commit(x))", []],
  ["const a = look.pipe(Effect.option, Effect.andThen(arbiter.commit(x)))", []]
]

/** A session in which edge starts one job, which says this and nothing else. */
const withJob = Effect.fnUntraced(function* (said: Said, output_schema?: object) {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const spawn = { job_name: "big", task_spec: "work", ...(output_schema === undefined ? {} : { output_schema }) }
  const edge = inOrder(calls(["choir.core.spawn", spawn as never]), says("started"), says("told"))
  yield* Effect.forkScoped(
    runAgent({ plane, script: (messages, tools) => (isCore(messages) ? Effect.succeed(said) : edge(messages, tools)) })
  )
  yield* plane.say("go")
  yield* plane.until((events, state) => ofType(events, "CoreStopped").length > 0 && quiet(state))
  return ofType(plane.events, "CoreStopped").map(({ payload }) => payload)
})

describe("content that no event can hold", () => {
  it.effect("ends a job once although its last words nearly fill their event", () =>
    Effect.gen(function* () {
      const text = "x".repeat(522_000)
      const [ended, ...more] = yield* withJob(says(text))
      assert.deepStrictEqual(more, [])
      assert.strictEqual(ended?.outcome, "completed")
      assert.strictEqual(ended?.summary, text.slice(0, CORE_SUMMARY_CHARS_MAX))
      assert.match(JSON.stringify(ended?.result), /^"x+\\n\[\d+ characters left out\]\\nx+"$/u)
    })
  )

  it.effect("ends a job once although its result nests deeper than an event may", () =>
    Effect.gen(function* () {
      const [ended, ...more] = yield* withJob(says(`{"a":${"[".repeat(300)}${"]".repeat(300)}}`), { type: "object" })
      assert.deepStrictEqual(more, [])
      assert.strictEqual(ended?.outcome, "error")
      assert.match(ended?.summary ?? "", /cannot be kept: an event may nest/u)
    })
  )

  it.effect("answers with the beginning of words that two outputs hold and one event cannot", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const half = "y".repeat(300_000)
      const script = inOrder({ text: half, finish_reason: "length" }, says(half))
      yield* Effect.forkScoped(runAgent({ plane, script }))
      yield* plane.say("write a lot")
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      assert.match(spoken(plane.events)[0]?.payload.text ?? "", /^y+\n\n\(Cut here: the answer is too long\.\)$/u)
    })
  )

  it.effect("answers a message that fits no event, and takes the next one", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      yield* plane.say("\u0001".repeat(90_000))
      yield* plane.say("second")
      yield* Effect.forkScoped(runAgent({ plane, script: inOrder(says("fine")) }))
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      assert.deepStrictEqual(
        ofType(plane.events, "UserMsg").map(({ payload }) => payload.inbox_id),
        ["1", "2"]
      )
      const [refused, answered] = spoken(plane.events).map(({ payload }) => payload)
      assert.deepStrictEqual([refused?.in_reply_to, refused?.failed], ["1", "final"])
      assert.match(refused?.text ?? "", /could not read your message: an event may have \d+ bytes.*Send it in parts/u)
      assert.deepStrictEqual([answered?.in_reply_to, answered?.text], ["2", "fine"])
    })
  )

  it.effect("refuses an instruction that fits no event in an event", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      yield* plane.push({ type: "Inject", signal_id: SignalId.make("7"), content: "\u0001".repeat(90_000) })
      yield* Effect.forkScoped(runAgent({ plane, script: inOrder() }))
      yield* plane.until((events) => ofType(events, "InjectedInstruction").length === 1)
      const [heard] = ofType(plane.events, "InjectedInstruction").map(({ payload }) => payload)
      assert.deepStrictEqual([heard?.signal_id, heard?.content], ["7", ""])
      assert.match(heard?.refused ?? "", /bytes at most/u)
    })
  )

  it.effect("closes a call with an error where no event can hold its result, so that it does not run again", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let runs = 0
      const output = JSON.parse(`${"[".repeat(300)}${"]".repeat(300)}`) as Schema.Json
      const deep = testTool("test.deep", () =>
        Effect.sync(() => ({ status: "success", summary: `run ${++runs}`, output }) as const)
      )
      const script = inOrder(calls(["test.deep", {}]), says("done"))
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [deep] }))
      yield* plane.say("go")
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      const [result, ...more] = ofType(plane.events, "ToolResultCommitted").map(({ payload }) => payload)
      assert.deepStrictEqual([result?.status, more.length, runs], ["error", 0, 1])
      assert.match(result?.summary ?? "", /^the result of test-deep cannot be kept: an event may nest/u)
    })
  )

  it("keeps of a compaction's references each once, and no more than a summary holds", () => {
    const short = (index: number) => String(index).padStart(12, "0")
    const window = Array.from({ length: 100 }, (_, index) => ({
      event: { rev: index + 1 } as never,
      hash: short(index).padEnd(64, "f"),
      messages: []
    }))
    const input = {
      mode: "append",
      add_references: Array.from({ length: 4300 }, (_, index) => short(index % 100)),
      remove_references: Array.from({ length: 4300 }, () => short(3)),
      add_fact: { key: "k".repeat(100_000), value: "v".repeat(100_000) }
    }
    const tool_calls = Array.from({ length: 7 }, (_, i) => ({ call_id: `x-${i}`, name: "choir-memory-delta", input }))
    const deltas = deltasOf({ payload: { tool_calls } } as never, emptySummary, window)
    assert.lengthOf(deltas, 7)
    for (const { add_references = [], remove_references } of deltas) {
      assert.lengthOf(new Set(add_references), SUMMARY_REFERENCES_MAX)
      assert.lengthOf(add_references, SUMMARY_REFERENCES_MAX)
      assert.lengthOf(remove_references ?? [], 1)
    }
    assert.isBelow(JSON.stringify(deltas).length, EVENT_BYTES_MAX)
  })

  it("takes an earlier session that a search of the memory named for a reference, and no other", () => {
    const found = { hits: [{ session_id: "0k8v3w9m2p1n4q7r", text: "roses" }] }
    const payload = { call_id: "c", status: "success", summary: "", output: found, duration_ms: 1 }
    const window = [{ event: { rev: 1, event_type: "ToolResultCommitted", payload } as never, hash: "", messages: [] }]
    const input = { add_references: ["0k8v3w9m2p1n4q7r", "1k8v3w9m2p1n4q7r"] }
    const tool_calls = [{ call_id: "x", name: "choir-memory-delta", input }]
    const [delta] = deltasOf({ payload: { tool_calls } } as never, emptySummary, window)
    assert.deepStrictEqual<unknown>(delta?.add_references, ["0k8v3w9m2p1n4q7r"])
  })

  it("is never passed over: no commit of the agent is ignored", () => {
    assert.deepStrictEqual(caughtCommits(parsedFolder(AGENT)), Object.keys(CAUGHT).toSorted())
  })
})

describe("a commit whose refusal is caught", () => {
  for (const [code, found] of CODE)
    it(`is ${found.length === 0 ? "not" : "found"} in ${code.split("\n").at(-1)}`, () => {
      assert.deepStrictEqual(caughtCommits([parsed("a.ts", code)]), found)
    })

  it("is found behind an import", () => {
    const files = [
      parsed("a.ts", "export const end = Effect.gen(function* () { yield* arbiter.commit(a) })"),
      parsed("b/b.ts", 'import { end as over } from "#src/agent/a.ts"\nconst b = Effect.ignore(over)'),
      parsed("c.ts", 'import { end } from "./a.ts"\nconst c = Effect.andThen(end, Effect.option(other))')
    ]
    assert.deepStrictEqual(caughtCommits(files), ["b/b.ts: b: ignore"])
  })
})
