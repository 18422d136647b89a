import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { ToolName } from "#schema/Tool.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { BUILT_IN_CAPABILITIES } from "#src/shared/image/builtInTools.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { SKILL_STATES_MAX, skillProblems } from "#src/shared/image/skillProblems.ts"
import { carefulChange, skillDraft } from "../../support/skills.ts"

type Draft = ReturnType<typeof skillDraft>
const work = (to: string, more: object = {}) => ({
  objective: "o",
  allowed_tools: [],
  transitions: [{ on: "complete", to }],
  ...more
})
const states = (more: object): Partial<Draft> => ({ initial_state: "a", states: more as never })
const END = { terminal: true }

/** Tools without any effect. */
const toolsNamed = (...names: ReadonlyArray<string>) => new Map(names.map((name) => [name, []]))

/** What is wrong with a skill, and what its author is told. */
const WRONG: ReadonlyArray<readonly [string, object, RegExp]> = [
  [
    "no such first state",
    { initial_state: "nowhere" },
    /\["initial_state"\]: there is no state "nowhere"; there are look, write, done/u
  ],
  ["no terminal state", states({ a: work("a") }), /no state is terminal: add one/u],
  [
    "a state that nothing leads to",
    states({ a: work("z"), b: work("z"), z: END }),
    /\["b"\]: no transition leads there from "a"/u
  ],
  [
    "a state without a way out",
    states({
      a: work("b", {
        transitions: [
          { on: "x", to: "b" },
          { on: "y", to: "z" }
        ]
      }),
      b: work("b"),
      z: END
    }),
    /\["b"\]: no way leads from there/u
  ],
  [
    "an end that only an unreachable state has",
    states({ a: work("a"), b: work("z"), z: END }),
    /\["b"\]: no transition leads there/u
  ],
  [
    "one event twice",
    states({
      a: work("z", {
        transitions: [
          { on: "x", to: "z" },
          { on: "x", to: "a" }
        ]
      }),
      z: END
    }),
    /"x" is taken by an earlier/u
  ],
  [
    "the runtime's word",
    states({ a: work("z", { transitions: [{ on: "cancel", to: "z" }] }), z: END }),
    /choose another word/u
  ],
  ["no transition", states({ a: work("z", { transitions: [] }), z: END }), /add one, or mark the state/u],
  ["no objective", states({ a: { ...work("z"), objective: undefined }, z: END }), /say what is to be done/u],
  [
    "an end that does something",
    states({ a: work("z"), z: { ...work("a"), terminal: true } }),
    /a terminal state does nothing more/u
  ],
  ["a tool twice", states({ a: work("z", { allowed_tools: ["x", "x"] }), z: END }), /x is there twice/u],
  [
    "a skill's own tools",
    states({ a: work("z", { allowed_tools: ["choir.skill.start"] }), z: END }),
    /a skill cannot start another skill/u
  ],
  ["a state called like what every object has", { initial_state: "constructor" }, /there is no state "constructor"/u],
  [
    "a schema that cannot be checked",
    { output_schema: { type: "object", not: { required: ["a"] } } },
    /\["output_schema"\]: it cannot be checked/u
  ],
  [
    "too many states",
    states(
      Object.fromEntries([
        ...Array.from({ length: SKILL_STATES_MAX }, (_, index) => [`s${index}`, work("z")]),
        ["z", END]
      ])
    ),
    /32 states are the most/u
  ],
  ["no steps", { max_steps: 0 }, /\["max_steps"\]/u],
  ["a name with a space", { name: "a b" }, /\["name"\]/u],
  ["an unknown key", { sudo: true }, /sudo/u]
]

describe("readSkill", () => {
  for (const [what, more, message] of WRONG)
    it(`refuses ${what}, by its path and with what to do`, () => {
      const read = readSkill("tidy", JSON.stringify({ ...skillDraft(), ...more }))
      assert.match(Result.isFailure(read) ? read.failure.join("\n") : "it was taken", message)
    })

  it("takes the names of tools as models see them, and keeps the canonical ones", () => {
    const text = JSON.stringify(skillDraft({ name: "a" }))
      .replaceAll("mem.read", "choir-fs-read")
      .replaceAll("ws.write", "choir-fs-edit")
    const spec = Result.getOrThrowWith(readSkill("a", text), (problems) => new Error(problems.join("; ")))
    assert.deepStrictEqual(spec.states["look"]?.allowed_tools, [ToolName.make("choir.fs.read")])
    assert.deepStrictEqual(skillProblems(spec, toolsNamed("choir.fs.read", "choir.fs.edit")), [])
  })

  it("takes the starter's skill and the built-in ones, with the tools that every agent has", () => {
    for (const spec of [carefulChange, ...BUILT_IN_SKILLS])
      assert.deepStrictEqual(skillProblems(spec, BUILT_IN_CAPABILITIES), [], spec.name)
    assert.match(skillProblems(carefulChange, toolsNamed("choir.exec"))[0] ?? "", /there is no tool choir\.fs\.read/u)
  })
})
