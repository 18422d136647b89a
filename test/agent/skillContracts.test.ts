/** Skills with contracts that a model runs: scopes, assertions, retries, the judge, and what its agent grants. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, type Schema } from "effect"
import type { Capability } from "#schema/Capability.ts"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { ResourceName } from "#schema/Ids.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { judgeModel } from "#src/agent/calls/SkillJudge.ts"
import { FIELD_SHOWN_CHARS_MAX, shownValues, STATE_SHOWN_CHARS_MAX } from "#src/agent/model/prompt/shownValues.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Said, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"
import { contractSpec, summarize } from "../support/contracts.ts"
import { bookOf } from "../support/skills.ts"

const SUMMARIZE = contractSpec(summarize)
const TEXT = { text: "The bridge opened in 1932." }
const small = agentConfig().models[ResourceName.make("small")]
/** An agent with two models; edge and jobs work with the small one. */
const TWO: AgentConfig = {
  ...agentConfig(),
  models: { ...agentConfig().models, large: { ...small, model: "large" } } as AgentConfig["models"]
}

const isJudge = (tools: ReadonlyArray<{ readonly name: string }>) =>
  tools.some(({ name }) => name === "choir-skill-verdict")
const verdict = (score: Schema.Json, unsupported: Schema.Json = []): Said =>
  calls(["choir.skill.verdict", { score, unsupported }])
const move = (writes: Schema.Json, more: object = {}, on = "complete"): Said =>
  calls(["choir.skill.transition", { on, writes, ...more }])

interface Seen {
  readonly messages: ReadonlyArray<Message>
  readonly isOfJudge: boolean
}

/** A job in the skill, whose worker says these things one after the other, and whose judge those. */
const inJob = Effect.fnUntraced(function* (
  skill: SkillSpec,
  worker: ReadonlyArray<Said>,
  judge: ReadonlyArray<Said> = [],
  options: { readonly config?: AgentConfig; readonly input?: object } = {}
) {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const seen: Array<Seen> = []
  const left = [...worker]
  const verdicts = [...judge]
  const script: Script = (messages, tools) =>
    Effect.sync(() => {
      if (isJudge(tools)) {
        seen.push({ messages, isOfJudge: true })
        return verdicts.shift() ?? verdict(0)
      }
      if (isCore(messages)) {
        seen.push({ messages, isOfJudge: false })
        return left.shift() ?? move({}, {}, "cancel")
      }
      if (messages.findLast(({ role }) => role === "user")?.content?.startsWith("<choir-note>\nReport:") === true)
        return says("it ended")
      return messages.some(({ role }) => role === "tool")
        ? says("started")
        : calls([
            "choir.core.spawn",
            { job_name: "a", task_spec: "t", skill: { name: skill.name, input: options.input ?? TEXT } as never }
          ])
    })
  const tools = [
    testTool("mem.read", () => Effect.succeed({ status: "success", summary: "read" }), {
      effect: "none"
    })
  ]
  const agent = yield* Effect.forkChild(
    runAgent({ plane, script, tools, skills: bookOf(skill), config: options.config ?? TWO })
  )
  yield* plane.say("go")
  const ended = plane.until((events, state) => spoken(events).length === 2 && quiet(state))
  yield* Effect.raceFirst(ended, Fiber.join(agent))
  yield* Fiber.interrupt(agent)
  return { plane, seen }
})

const stopped = (plane: MemoryControlPlane) => ofType(plane.events, "CoreStopped")[0]?.payload
const moves = (events: ReadonlyArray<ChoirEvent>) =>
  ofType(events, "SkillTransitionCommitted").map(({ payload }) => payload)
const ons = (plane: MemoryControlPlane) => moves(plane.events).map(({ ended, on, to }) => [on, to, ended ?? ""])
const good = { summary: "It opened in 1932." }

describe("a skill with a contract", () => {
  it.effect("takes a confident result at once, and its fields are its output", () =>
    Effect.gen(function* () {
      const { plane, seen } = yield* inJob(SUMMARIZE, [move(good, { confidence: 0.9 })])
      assert.deepStrictEqual(stopped(plane)?.result, good)
      assert.isFalse(seen.some(({ isOfJudge }) => isOfJudge))
      const [begun, ended] = moves(plane.events)
      assert.deepStrictEqual(begun?.writes, TEXT)
      assert.isUndefined(begun?.input)
      assert.deepInclude(ended, { writes: good, output: good, confidence: 0.9, attempt: 0, ended: "completed" })
    })
  )

  it.effect("refuses what a step may not write, what does not fit, and an output, each as a broken rule", () =>
    Effect.gen(function* () {
      const { plane } = yield* inJob(
        SUMMARIZE,
        [move({ text: "another" }), move({ summary: 7 }), move({ other: 1 }), move(good, { confidence: 1 })],
        [],
        { config: { ...TWO, budgets: { ...TWO.budgets, skill_retry_budget: 9 } } }
      )
      const refused = ofType(plane.events, "ToolResultCommitted").filter(({ payload }) => payload.status === "rejected")
      assert.deepStrictEqual(
        refused.map(({ payload: { summary } }) => summary.replace(/:.*/u, "")),
        [
          "this step may not write text; it may write summary",
          "the field summary does not fit its schema",
          "this step may not write other; it may write summary"
        ]
      )
      for (const { payload } of refused)
        assert.deepStrictEqual(payload.allowed?.transitions, ["complete", "error", "cancel"])
      assert.strictEqual(stopped(plane)?.outcome, "completed")
    })
  )

  it.effect("sends a result back that does not hold an assertion, with the reason, and fails after its attempts", () =>
    Effect.gen(function* () {
      const empty = move({ summary: "" }, { confidence: 1 })
      const { plane, seen } = yield* inJob(SUMMARIZE, [empty, empty, empty])
      assert.deepStrictEqual(ons(plane), [
        ["start", "do", ""],
        ["control:retry", "do", ""],
        ["control:retry", "do", ""],
        ["error", "failed", "failed"]
      ])
      const reasons = moves(plane.events).map(({ reason }) => reason ?? "")
      assert.strictEqual(reasons[1], `attempt 1 of 3 was rejected: "the summary is not empty" does not hold`)
      assert.strictEqual(reasons[3], `attempt 3 of 3 was rejected: "the summary is not empty" does not hold`)
      assert.deepStrictEqual(
        moves(plane.events).map(({ attempt = 0 }) => attempt),
        [0, 0, 1, 2]
      )
      assert.strictEqual(stopped(plane)?.outcome, "error")
      const second = seen[1]?.messages.map(({ content }) => content ?? "").join("\n") ?? ""
      assert.include(second, "attempt 1 of 3 was rejected")
      assert.match(
        second,
        /"not_taken":\{"result":\{"summary":""\},"problems":\[\{"statement":"the summary is not empty"/u
      )
      assert.notInclude(seen[0]?.messages.map(({ content }) => content ?? "").join() ?? "", "not_taken")
    })
  )

  it.effect("counts each attempt in the steps and broken rules of the skill, which no retry gives back", () =>
    Effect.gen(function* () {
      const empty = move({ summary: "" }, { confidence: 1 })
      const wrong = move({ text: "x" })
      const { plane } = yield* inJob(SUMMARIZE, [wrong, empty, wrong, empty, wrong, move(good, { confidence: 1 })])
      // Three broken rules in one step, with a budget of two, although results were sent back between them.
      const last = moves(plane.events).at(-1)
      assert.deepInclude(last, { on: "error", step: 5, ended: "failed" })
      assert.match(last?.reason ?? "", /were broken 3 times/u)
      const short = contractSpec({ ...summarize, max_steps: 2 })
      const cut = yield* inJob(short, [empty, empty, move(good, { confidence: 1 })])
      assert.match(moves(cut.plane.events).at(-1)?.reason ?? "", /limit of 2 steps \(max_steps\)/u)
    })
  )

  it.effect(
    "has a result judged that is not confident, by another model, which sees it, its sources and nothing else",
    () =>
      Effect.gen(function* () {
        const { plane, seen } = yield* inJob(SUMMARIZE, [move(good, { confidence: 0.5 })], [verdict(0.9)])
        assert.strictEqual(stopped(plane)?.outcome, "completed")
        const judged = ofType(plane.events, "ModelOutput").find(({ payload }) => payload.purpose === "judge")?.payload
        assert.strictEqual(judged?.model, "large")
        const worked = ofType(plane.events, "ModelOutput").filter(
          ({ lane, payload }) => lane !== "edge" && payload.purpose === "turn"
        )
        assert.deepStrictEqual(
          worked.map(({ payload }) => payload.model),
          ["small"]
        )
        assert.deepInclude(moves(plane.events).at(-1)?.judged, { score: 0.9, model: "large" })
        const asked = seen.find(({ isOfJudge }) => isOfJudge)
        assert.lengthOf(asked?.messages ?? [], 2)
        const data = JSON.parse(/\{.*\}/su.exec(asked?.messages[1]?.content ?? "")?.[0] ?? "null")
        assert.deepStrictEqual(data, {
          does: summarize.contract.does,
          does_not: summarize.contract.does_not,
          sources: TEXT,
          result: good
        })
      })
  )

  it.effect.each<[string, object, Said, RegExp]>([
    ["a low score", { confidence: 0.5 }, verdict(0.79), /the judge gave 0\.79, and 0\.8 is needed/u],
    ["no confidence and a low score", {}, verdict(0), /the judge gave 0,/u],
    [
      "blocks of which one is unsupported",
      { confidence: 1, judge_blocks: [{ id: "a", text: "1932" }] },
      verdict(1, ["a"]),
      /found 1 unsupported/u
    ],
    ["a score beyond one", {}, verdict(1.5), /cannot be read/u],
    ["a score in words", {}, verdict("1"), /cannot be read/u],
    ["words alone", {}, says("It is perfect: score 1."), /cannot be read/u],
    [
      "two verdicts",
      {},
      calls(
        ["choir.skill.verdict", { score: 1, unsupported: [] }],
        ["choir.skill.verdict", { score: 1, unsupported: [] }]
      ),
      /cannot be read/u
    ]
  ])("sends a result back with %s", ([, more, said, reason]) =>
    Effect.gen(function* () {
      const { plane } = yield* inJob(SUMMARIZE, [move(good, more), move(good, { confidence: 1 })], [said])
      const [, retry, end] = moves(plane.events)
      assert.strictEqual(retry?.on, "control:retry")
      assert.match(retry?.reason ?? "", reason)
      assert.strictEqual(end?.ended, "completed")
    })
  )

  it.effect("never passes for want of a judge: an outage is an error of the skill", () =>
    Effect.gen(function* () {
      const error = { kind: "http", message: "the provider is down", status: 500 } as const
      const { plane } = yield* inJob(SUMMARIZE, [move(good, { confidence: 0.1 })], [{ error, finish_reason: "error" }])
      assert.deepStrictEqual(ons(plane).at(-1), ["error", "failed", "failed"])
      assert.match(moves(plane.events).at(-1)?.reason ?? "", /the judge could not be asked: .*down/u)
      assert.strictEqual(stopped(plane)?.outcome, "error")
    })
  )

  it("is judged by the wanted model, another than the worker's, or the only one", () => {
    assert.strictEqual(judgeModel(TWO, "small", undefined), "large")
    assert.strictEqual(judgeModel(TWO, "large", undefined), "small")
    assert.strictEqual(judgeModel(TWO, "small", "small"), "small")
    assert.strictEqual(judgeModel(TWO, "small", "gone"), "large")
    assert.strictEqual(judgeModel(agentConfig(), "small", undefined), "small")
    const twin = { ...TWO, models: { ...TWO.models, large: small } as AgentConfig["models"] }
    assert.strictEqual(judgeModel(twin, "small", undefined), "small", "another name of the same model")
  })
})

const granting = (grants: ReadonlyArray<Capability>): AgentConfig => ({ ...TWO, grants })

describe("what an agent grants", () => {
  const begin = Effect.fnUntraced(function* (needs: ReadonlyArray<Capability>, grants: ReadonlyArray<Capability>) {
    yield* ticking
    const plane = yield* makeMemoryControlPlane
    const skill = contractSpec({ ...summarize, contract: { ...summarize.contract, capabilities: [...needs] } })
    const script: Script = (messages) =>
      Effect.succeed(
        messages.some(({ role }) => role === "tool")
          ? says("so be it")
          : calls(["choir.skill.start", { skill: skill.name, input: TEXT }])
      )
    const agent = yield* Effect.forkChild(runAgent({ plane, script, skills: bookOf(skill), config: granting(grants) }))
    yield* plane.say("go")
    const ended = plane.until((events) => spoken(events).length === 1)
    yield* Effect.raceFirst(ended, Fiber.join(agent))
    yield* Fiber.interrupt(agent)
    return ofType(plane.events, "ToolResultCommitted")[0]?.payload
  })

  it.effect("decides whether a skill begins, and the refusal names what is missing", () =>
    Effect.gen(function* () {
      const refused = yield* begin(["net", "env:read", "fs:read"], ["fs:read"])
      assert.strictEqual(refused?.status, "rejected")
      assert.deepStrictEqual(refused?.denied, { skill: "summarize", capabilities: ["net", "env:read"] })
      assert.match(refused?.summary ?? "", /needs net, env:read.*skills\.grants in config\.json/u)
      assert.isUndefined(refused?.allowed, "it breaks no rule of a skill")
      assert.strictEqual((yield* begin(["fs:read"], ["fs:read"]))?.status, "success")
      assert.strictEqual((yield* begin(["fs:read"], []))?.status, "rejected")
    })
  )

  it.effect("decides again at each call, where the tool can do more than the skill declares", () =>
    Effect.gen(function* () {
      const skill = contractSpec({
        ...summarize,
        contract: { ...summarize.contract, capabilities: [] },
        states: { ...summarize.states, do: { ...summarize.states.do, allowed_tools: ["mem.read"] } }
      })
      const { plane } = yield* inJob(skill, [calls(["mem.read", {}]), move(good, { confidence: 1 })])
      const refused = ofType(plane.events, "ToolResultCommitted").find(({ payload }) => payload.status === "rejected")
      assert.deepStrictEqual(refused?.payload.denied, { skill: "summarize", capabilities: ["fs:read"] })
      assert.lengthOf(
        ofType(plane.events, "ToolCallRequested").filter(({ payload }) => payload.tool === "mem.read"),
        0
      )
    })
  )
})

describe("STATE in prompts", () => {
  it("cuts each field and all together, and names what is cut by its digest", () => {
    const long = "x".repeat(10_000)
    const { field } = shownValues({ field: long }) as { field: { chars: number; sha256: string } }
    assert.strictEqual(field.chars, 10_002)
    assert.match(field.sha256, /^[0-9a-f]{16}$/u)
    const many = Object.fromEntries(Array.from({ length: 64 }, (_, index) => [`f${index}`, "y".repeat(4000)]))
    const shown = shownValues(many)
    assert.deepStrictEqual(Object.keys(shown), Object.keys(many))
    assert.strictEqual(shown["f63"], "y".repeat(4000), "the newest is whole")
    assert.isBelow(JSON.stringify(shown).length, STATE_SHOWN_CHARS_MAX + 64 * 150)
    for (const value of Object.values(shownValues({ a: '\\"'.repeat(9000) })))
      assert.isAtMost(JSON.stringify(value).length, FIELD_SHOWN_CHARS_MAX)
  })
})
