/** Verdicts of any kind against the threshold: none passes that is below it, that cannot be read, or that never came. */
import { assert, describe, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import type { ChoirEvent, ModelError, PayloadOf } from "#schema/Event.ts"
import { CallId, EDGE } from "#schema/Ids.ts"
import type { Command, Rejected } from "#src/agent/arbiter/Command.ts"
import { decide } from "#src/agent/arbiter/decide.ts"
import { verdictOf } from "#src/agent/arbiter/skillVerdict.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { makeRandom, pick, placed, situation, userMessage } from "../../support/history.ts"
import { contractSpec, summarize } from "../../support/contracts.ts"
import { bookOf } from "../../support/skills.ts"

const VERDICTS = 10_000
const THRESHOLD = summarize.contract.confidence_threshold
const SKILL = contractSpec(summarize)

const said = {
  model: "small",
  finish_reason: "tool_calls",
  usage: { input_tokens: 1, output_tokens: 1 },
  latency_ms: 0
} as const

const skills = bookOf(SKILL)

interface Taken {
  readonly events: ReadonlyArray<ChoirEvent>
  readonly state: SessionState
  readonly refused?: Rejected
}

const commit = ({ events, state }: Taken, command: Command): Taken => {
  const decided = decide(state, command, situation({ skills, find: (rev) => events[rev - 1] }))
  if (Result.isFailure(decided)) return { events, state, refused: decided.failure }
  const next = placed(state, decided.success)
  const folded = Result.getOrThrowWith(foldAll(state, next), ({ reason }) => new Error(reason))
  return { events: [...events, ...next], state: folded }
}

const callOf = ({ state }: Taken) => state.edge.calls[0]?.call_id ?? CallId.make("none")

/** A lane after an output with one call that was requested. */
const proposing = (taken: Taken, tool: string): Taken => {
  const output = { ...said, purpose: "turn", tool_calls: [{ name: tool.replaceAll(".", "-"), input: {} }] } as const
  const proposed = commit(taken, { type: "Output", lane: EDGE, output })
  return commit(proposed, {
    type: "Request",
    lane: EDGE,
    call_id: callOf(proposed),
    tool,
    input: {},
    effect: "none",
    locks: [],
    allowed_tools: undefined,
    capabilities: []
  })
}

/** A lane in the skill whose worker has just asked for its end, without confidence. */
const asking = (): Taken => {
  const begun = proposing(commit({ events: [], state: initialState }, userMessage("1")), "choir.skill.start")
  const call_id = callOf(begun)
  const started: Command = { type: "StartSkill", lane: EDGE, call_id, skill: "summarize", input: { text: "t" } }
  return proposing(commit(begun, started), "choir.skill.transition")
}

const ASKING = asking()
const CALL = callOf(ASKING)
const MOVE: Command = { type: "MoveSkill", lane: EDGE, call_id: CALL, on: "complete", writes: { summary: "s" } }

const error: ModelError = { kind: "timeout", message: "gone" }

describe("a judge's verdict", () => {
  it("is asked for before a result is taken that is not confident", () => {
    assert.deepInclude(commit(ASKING, MOVE).refused, { awaits_verdict: true })
  })

  it(`never lets a result pass below the threshold, in ${VERDICTS} hostile ones`, () => {
    const random = makeRandom(10_000)
    const numbers = [0, 0.5, 0.79, 0.8, 0.81, 1, -1, 2, 1e308, -0, 0.799_999_999, Number.MIN_VALUE]
    const scores: ReadonlyArray<() => Schema.Json> = [
      () => pick(random, numbers),
      () => random(),
      () => String(random()),
      () => null,
      () => [1],
      () => ({ score: 1 }),
      () => true,
      () => "1; the threshold is 0"
    ]
    const lists: ReadonlyArray<() => Schema.Json> = [
      () => [],
      () => [],
      () => ["a"],
      () => "none",
      () => null,
      () => [1],
      () => Array.from({ length: 65 }, () => "x")
    ]
    const names = [
      "choir-skill-verdict",
      "choir-skill-verdict",
      "choir.skill.verdict",
      "choir-skill-transition",
      "verdict",
      ""
    ]
    const inputs: ReadonlyArray<() => Schema.Json> = [
      () => ({ score: pick(random, scores)(), unsupported: pick(random, lists)() }),
      () => ({ score: pick(random, scores)(), unsupported: [] }),
      () => ({ score: 1 }),
      () => ({ SCORE: 1, unsupported: [] }),
      () => '{"score":1,"unsupported":[]}',
      () => [{ score: 1, unsupported: [] }],
      () => ({ score: 0.1, unsupported: [], score2: 1, threshold: 0 })
    ]
    let passed = 0
    for (let count = 0; count < VERDICTS; count++) {
      const calls = Array.from({ length: pick(random, [0, 1, 1, 1, 1, 2]) }, () => ({
        name: pick(random, names),
        input: pick(random, inputs)()
      }))
      const failed = random() < 0.05
      const of = random() < 0.05 ? CallId.make("another") : CALL
      const output = {
        ...said,
        purpose: "judge",
        judges: of,
        text: "score 1",
        tool_calls: failed ? [] : calls
      } as const
      const told: Command = { type: "Output", lane: EDGE, output: failed ? { ...output, error } : output }
      const { events, refused } = commit(commit(ASKING, told), MOVE)
      const last = events.findLast(({ event_type }) => event_type === "SkillTransitionCommitted")
        ?.payload as PayloadOf<"SkillTransitionCommitted">
      const [only] = calls
      const input = only?.input
      const fits =
        !failed &&
        of === CALL &&
        calls.length === 1 &&
        only?.name.replaceAll("-", ".") === "choir.skill.verdict" &&
        typeof input === "object" &&
        input !== null &&
        "score" in input &&
        "unsupported" in input &&
        typeof input["score"] === "number" &&
        input["score"] >= THRESHOLD &&
        input["score"] <= 1 &&
        Array.isArray(input["unsupported"]) &&
        input["unsupported"].length === 0
      assert.strictEqual(last.ended === "completed", fits, JSON.stringify(calls))
      if (last.ended === "completed") passed += 1
      else if (of !== CALL) assert.deepInclude(refused, { awaits_verdict: true })
      else assert.strictEqual(last.on, failed ? "error" : "control:retry")
    }
    assert.isAbove(passed, 20, "some verdicts are good")
  })

  it("is an outage where the call failed, whatever came with it", () => {
    assert.deepStrictEqual(verdictOf({ error, tool_calls: [] }), { type: "outage", problem: "gone" })
  })
})
