import { assert, describe, it } from "@effect/vitest"
import type { TrialOutcome } from "#schema/Trial.ts"
import { rehearsalText } from "#src/choird/approvals/rehearsalText.ts"
import { compareTrials } from "#src/choird/trials/compareTrials.ts"
import { SessionId } from "#schema/Ids.ts"

const OUTCOME: TrialOutcome = {
  outcome: "completed",
  summary: "done",
  output: { sent: true, to: "ann" },
  path: ["look", "done"],
  steps: 4,
  tool_calls: 3,
  refusals: 0,
  unanswered: 0,
  external: {},
  tokens: 4000,
  duration_ms: 10
}

const outcome = (more: Partial<TrialOutcome>): TrialOutcome => ({ ...OUTCOME, ...more })
const external = (counts: Readonly<Record<string, number>>) => ({ external: counts as TrialOutcome["external"] })

describe("a proposed skill beside today's", () => {
  it.each<readonly [string, Partial<TrialOutcome>, RegExp]>([
    ["does not end well", { outcome: "error", summary: "stuck" }, /ends as error: stuck/u],
    ["is refused more often", { refusals: 2 }, /is refused 2 times \(today's: never\)/u],
    ["acts outside", external({ "letters.send": 1 }), /calls letters\.send once \(today's: never\)/u],
    ["leaves a part out", { output: { sent: true } }, /leaves to out of its output/u],
    ["finds nothing", { output: { sent: [], to: "ann" } }, /leaves sent empty, which today's version fills/u],
    ["takes many more tokens", { tokens: 9000 }, /takes 9000 tokens \(today's: 4000\)/u]
  ])("is worse where it %s", (_, more, reason) => {
    const { reasons, verdict } = compareTrials(OUTCOME, outcome(more), "completed")
    assert.strictEqual(verdict, "worse")
    assert.match(reasons.join("; "), reason)
  })

  it("is worse where its output does not fit today's schema", () => {
    const schema = { type: "object", properties: { sent: { type: "boolean" } } }
    const proposed = outcome({ output: { sent: "yes", to: "ann" } })
    assert.strictEqual(compareTrials(OUTCOME, proposed, "completed", schema).verdict, "worse")
  })

  it("is the same where it ends alike, in other words or with a few more tokens", () => {
    const proposed = outcome({ summary: "all done", tokens: 4900, output: { sent: false, to: "bob", at: "noon" } })
    assert.deepStrictEqual(compareTrials(OUTCOME, proposed, "completed"), { verdict: "same", reasons: [] })
  })

  it("is worse where it lists less", () => {
    const listed = (...found: ReadonlyArray<string>) => outcome({ output: { found } })
    const { reasons, verdict } = compareTrials(listed("a", "b"), listed("a"), "completed")
    assert.deepStrictEqual([verdict, reasons], ["worse", ["has 1 entry in found (today's: 2)"]])
  })

  it("says of a script which values are others, since the record is the same", () => {
    const script = (sent: boolean) => outcome({ tokens: 0, output: { sent, to: "ann" } })
    assert.deepStrictEqual(compareTrials(script(true), script(false), "completed"), {
      verdict: "same",
      reasons: ["gives different values for sent than today's version"]
    })
    assert.deepStrictEqual(compareTrials(script(true), script(true), "completed").reasons, [])
  })

  it("is not rehearsed where today's does not complete what it completed then, or fails as it did", () => {
    const broken = outcome({ outcome: "error", summary: "no input" })
    const reasons = ["today's skill ends as error: no input"]
    const none = { verdict: "not_rehearsed", reasons } as const
    assert.deepStrictEqual(compareTrials(broken, broken, "completed"), none)
    assert.deepStrictEqual(compareTrials(broken, OUTCOME, "completed"), none)
    assert.deepStrictEqual(compareTrials(broken, outcome({ outcome: "stuck" }), "failed"), none)
  })

  it("is better where today's fails, is refused or costs more", () => {
    assert.strictEqual(compareTrials(outcome({ outcome: "budget" }), OUTCOME, "failed").verdict, "better")
    assert.strictEqual(compareTrials(outcome({ refusals: 1 }), OUTCOME, "completed").verdict, "better")
    assert.strictEqual(compareTrials(outcome({ tokens: 9000 }), OUTCOME, "completed").verdict, "better")
  })
})

describe("a rehearsal in words", () => {
  const session_id = SessionId.make("0123456789abcdef")

  it("begins with what is worse, and says that nothing was done", () => {
    const text = rehearsalText({
      runs: [
        { session_id, verdict: "worse", reasons: ["ends as error: it\u202e was stuck"] },
        { session_id, verdict: "same", reasons: [] }
      ],
      cost_usd: 0.0123
    })
    assert.strictEqual(
      text,
      [
        "Rehearsal on 2 recorded runs: WORSE than today on 1.",
        `- session ${session_id}: worse: it ends as error: it\\u202e was stuck`,
        `- session ${session_id}: same`,
        "Nothing was done: every call was answered from the record. Cost: 0.0123 USD."
      ].join("\n")
    )
  })

  it("counts no run that was not rehearsed", () => {
    const not = { session_id, verdict: "not_rehearsed", reasons: ["today's skill ends as error: no input"] } as const
    const line = `- session ${session_id}: not rehearsed: today's skill ends as error: no input`
    assert.match(
      rehearsalText({ runs: [not, { session_id, verdict: "same", reasons: [] }], cost_usd: 0 }),
      /^Rehearsal on 1 recorded run: no worse than today, and no better\.\n- session \w+: not rehearsed/u
    )
    assert.include(rehearsalText({ runs: [not], cost_usd: 0 }), `completes none of 1 recorded run.\n${line}`)
  })

  it("names a few reasons of a run, however many there are", () => {
    const reasons = Array.from({ length: 1000 }, (_, index) => `lists 1 of k${index}, today 2`)
    const text = rehearsalText({ runs: [{ session_id, verdict: "worse", reasons }], cost_usd: 0 })
    assert.include(text, "; lists 1 of k4, today 2; and 995 more\n")
  })

  it("says why there is none", () => {
    const text = rehearsalText({ runs: [], cost_usd: 0, problem: "this agent has no recorded run of it" })
    assert.strictEqual(text, "Not rehearsed: this agent has no recorded run of it.")
  })
})
