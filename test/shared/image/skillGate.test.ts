import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { pricedBounds } from "#src/shared/image/skillBounds.ts"
import { gateReport, unreadableReport } from "#src/shared/image/skillGate.ts"
import { BUILT_IN_FACTS, type ToolFacts } from "#src/shared/image/toolFacts.ts"
import { summarize } from "../../support/contracts.ts"
import { skillDraft } from "../../support/skills.ts"

const ANCHOR = { input: { text: "It rained all day." }, output: { summary: "Rain." } }

/** A skill of all nine points, with a part of it exchanged. */
const withContract = (contract: object = {}, more: object = {}) => ({
  ...summarize,
  ...more,
  contract: { ...summarize.contract, golden_anchors: [ANCHOR], ...contract }
})

const FETCH: ToolFacts = { capabilities: ["net"], untrusted: true, sees: false, acts: true, locks: [] }
const FACTS = new Map([...BUILT_IN_FACTS, ["page.fetch", FETCH] as const])

const reportOf = (draft: object, name = "summarize") => {
  const spec = Result.getOrThrowWith(
    readSkill(name, JSON.stringify(draft)),
    (problems) => new Error(problems.join("; "))
  )
  return gateReport(spec, { facts: FACTS })
}
const failed = (draft: object) => {
  const { grade, points } = reportOf(draft)
  return [grade, ...points.flatMap(({ detail, ok, point }) => (ok ? [] : [`${point}: ${detail}`]))]
}

const states = (allowed_tools: ReadonlyArray<string>, objective = "Sum up the text.") => ({
  states: { ...summarize.states, do: { ...summarize.states.do, allowed_tools, objective } }
})

/** One point missing each, with the grade and what the report says. */
const LACKING: ReadonlyArray<readonly [string, object, string, RegExp]> = [
  [
    "a description that says nothing",
    withContract({ does_not: "nothing" }),
    "community",
    /does: does_not says nothing/u
  ],
  [
    "a field that nobody uses",
    withContract({ state: { ...summarize.contract.state, idle: { schema: {} } } }),
    "community",
    /scopes: the field idle is neither/u
  ],
  [
    "a pin without its schema",
    withContract({ state: { ...summarize.contract.state, text: { schema: "text@1.0" } } }),
    "community",
    /pins: .*there is no schema text@1\.0.*/u
  ],
  [
    "an undeclared capability",
    withContract({}, states(["choir.fs.read"])),
    "rejected",
    /capabilities: declare fs:read/u
  ],
  [
    "a tool of Choir's own that is not there",
    withContract({}, states(["choir.fs.serch"])),
    "rejected",
    /capabilities: there is no tool choir\.fs\.serch: did you mean choir\.fs\.search\?/u
  ],
  [
    "a capability that no tool has",
    withContract({ capabilities: ["exec"] }),
    "rejected",
    /none of its tools can do exec/u
  ],
  [
    "data, strangers and effects in one state",
    withContract({ capabilities: ["fs:read", "net"] }, states(["choir.fs.read", "page.fetch"])),
    "rejected",
    /the state do sees the user's data \(choir\.fs\.read\), reads text of strangers \(page\.fetch\)/u
  ],
  ["no assertion", withContract({ assertions: [] }), "community", /assertions: it asserts nothing/u],
  [
    "an assertion that its own example breaks",
    withContract({ golden_anchors: [{ ...ANCHOR, output: { summary: "" } }] }),
    "community",
    /assertions: "the summary is not empty" does not hold on anchor 1: summary: "" does not fit/u
  ],
  ["no example", withContract({ golden_anchors: [] }), "community", /anchors: show at least one input/u],
  [
    "an example that does not fit",
    withContract({ golden_anchors: [{ input: { text: 3 }, output: { summary: "x" } }] }),
    "community",
    /anchors: anchor 1: the field text does not fit/u
  ],
  [
    "the name of a model",
    withContract({}, states([], "As Claude, sum up.")),
    "community",
    /language: the objective of do: "Claude"/u
  ],
  [
    "letters that nobody sees",
    withContract({}, states([], "Sum up.\n\nGo\u{E0101}\u{E0102} on.")),
    "community",
    /language: the objective of do: line 3 has a character that cannot be seen, U\+E0101/u
  ],
  [
    "a hidden character in an assertion, which JSON escapes",
    withContract({ assertions: [{ ...summarize.contract.assertions[0], statement: "it is \u200bnot empty" }] }),
    "community",
    /language: \["contract"\]\["assertions"\]\[0\]\["statement"\]: line 1 has a character that cannot be seen, U\+200B/u
  ],
  [
    "markup of one provider",
    withContract({}, states([], "Answer in <thinking> first.")),
    "community",
    /markup of one provider/u
  ]
]

describe("the gate", () => {
  it("gives a skill with a contract that holds all nine points, with what a run can take", () => {
    const report = reportOf(withContract())
    assert.deepStrictEqual(failed(withContract()), ["verified"])
    assert.deepStrictEqual([report.passed, report.bounds.model_calls, report.bounds.tokens], [9, 23, null])
    const priced = pricedBounds(report.bounds, {
      context_window: 100_000,
      max_tokens: 4000,
      price: { input: 1, output: 10 }
    })
    assert.strictEqual(priced.tokens, 2_300_000)
    assert.closeTo(priced.usd ?? 0, (23 * (96_000 + 40_000)) / 1e6, 1e-9)
  })

  it.each(LACKING)("names what is missing: %s", (_, draft, grade, words) => {
    const [found, ...missing] = failed(draft)
    assert.strictEqual(found, grade)
    assert.match(missing.join("\n"), words)
  })

  it("takes a skill of a folder without a contract for experimental, and never for verified", () => {
    const { grade, passed } = reportOf(skillDraft({ name: "tidy" }), "tidy")
    assert.deepStrictEqual([grade, passed], ["experimental", 6])
  })

  it("rejects a file that cannot be read", () => {
    const { grade, passed, points } = unreadableReport("x", ["it is not JSON"])
    assert.deepStrictEqual([grade, passed, points.length], ["rejected", 0, 9])
  })

  it("rejects none of the built-in skills", () => {
    for (const spec of BUILT_IN_SKILLS) assert.notStrictEqual(gateReport(spec).grade, "rejected")
  })
})
