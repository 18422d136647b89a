import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { BUILT_IN_CAPABILITIES } from "#src/shared/image/builtInTools.ts"
import { readPinnedSchema } from "#src/shared/image/pinnedSchemas.ts"
import { readProfile, readSkill, readSkillFile, type SkillSources } from "#src/shared/image/skillFile.ts"
import { summarize, todoFlagger } from "../../support/contracts.ts"

const FLAG = Result.getOrThrow(readPinnedSchema("todo-flag@1.0", JSON.stringify({ type: "array" })))
const SOURCES: SkillSources = { tools: BUILT_IN_CAPABILITIES, schemas: new Map([["todo-flag@1.0", FLAG]]) }

const read = (spec: object, sources = SOURCES) =>
  readSkill((spec as { readonly name: string }).name, JSON.stringify(spec), sources)
const problemsOf = (spec: object): string =>
  Result.match(read(spec), { onFailure: (p) => p.join("\n"), onSuccess: () => "" })

const flagger = (contract: object, registry: object = {}) => ({
  ...todoFlagger,
  contract: { ...todoFlagger.contract, ...contract },
  registry: { ...todoFlagger.registry, ...registry }
})
const summary = (contract: object, more: object = {}) => ({
  ...summarize,
  ...more,
  contract: { ...summarize.contract, ...contract }
})
const step = (more: object) => ({
  workflow: [{ step: "Search.", tool: "choir.fs.search", params: { pattern: "TODO" }, ...more }]
})

/** A contract that does not hold, and what its author is told. */
const WRONG: ReadonlyArray<readonly [string, object, RegExp]> = [
  ["no word on what it does not do", summary({ does_not: undefined }), /\["does_not"\]/u],
  ["an unknown class", summary({ execution_class: "magic" }), /\["execution_class"\]/u],
  [
    "a threshold of a script",
    flagger({ confidence_threshold: 0.5 }),
    /class deterministic has none.*\["confidence_threshold"\]/u
  ],
  ["retries of a script", flagger({ retries: 1 }), /\["retries"\]/u],
  ["examples of a script", flagger({ golden_anchors: [{ input: 1, output: 2 }] }), /\["golden_anchors"\]/u],
  ["a judge of a script", flagger({ judge: {} }), /\["judge"\]/u],
  ["a judge without a threshold", summary({ confidence_threshold: undefined }), /needs a confidence_threshold/u],
  ["too many retries", summary({ retries: 6 }), /\["retries"\]/u],
  ["a long example", summary({ golden_anchors: [{ input: "x".repeat(9000), output: 1 }] }), /8192 bytes/u],
  [
    "nine examples",
    summary({ golden_anchors: Array.from({ length: 9 }, () => ({ input: 1, output: 2 })) }),
    /golden_anchors/u
  ],
  ["a scope without a field", summary({ state_read: ["text", "other"] }), /\["state_read"\]\[1\]: other is not in/u],
  ["a field twice in a scope", summary({ state_read: ["text", "text"] }), /state_read/u],
  ["a source outside of the scopes", summary({ judge: { sources: ["nothing"] } }), /\["sources"\]\[0\]: nothing/u],
  [
    "an assertion about another field",
    summary({ assertions: [{ statement: "s", path: "other.x", op: "exists" }] }),
    /\["assertions"\]\[0\]\["path"\]: .*field other/u
  ],
  [
    "an unknown comparison",
    summary({ assertions: [{ statement: "s", path: "text", op: "~=", value: 1 }] }),
    /\["op"\]/u
  ],
  [
    "a text for a number",
    summary({ assertions: [{ statement: "s", path: "text", op: ">=", value: "1" }] }),
    /compares with a number/u
  ],
  [
    "no list to look in",
    summary({ assertions: [{ statement: "s", path: "text", op: "in", value: 1 }] }),
    /a list of values/u
  ],
  [
    "a long glob",
    summary({ assertions: [{ statement: "s", path: "text", op: "matches", value: "x".repeat(257) }] }),
    /256 characters/u
  ],
  ["a path with brackets", summary({ assertions: [{ statement: "s", path: "text[0]", op: "exists" }] }), /a path is/u],
  [
    "33 assertions",
    summary({ assertions: Array.from({ length: 33 }, () => ({ statement: "s", path: "text", op: "exists" })) }),
    /assertions/u
  ],
  [
    "65 fields",
    summary({ state: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`f${n}`, { schema: {} }])) }),
    /state/u
  ],
  [
    "a field of a large letter",
    summary({ state: { Text: { schema: {} } } }),
    /no excess property at \["contract"\]\["state"\]\["Text"\]/u
  ],
  [
    "a schema that cannot be checked",
    summary({ state: { ...summarize.contract.state, text: { schema: { not: { required: ["a"] } } } } }),
    /\["text"\]\["schema"\]: it cannot be checked/u
  ],
  [
    "a pin that nobody defines",
    flagger({ state: { ...todoFlagger.contract.state, flags: { schema: "todo-flag@2.0" } } }),
    /there is no schema todo-flag@2\.0: add schemas\/todo-flag@2\.0\.json/u
  ],
  ["a pin without a version", summary({}, { output_schema: "todo-flag" }), /output_schema/u],
  ["a capability that is not declared", flagger({ capabilities: [] }), /choir\.fs\.search needs fs:read: declare it/u],
  ["an unknown capability", flagger({ capabilities: ["root"] }), /capabilities/u],
  ["a script without a workflow", flagger({}, { workflow: [] }), /add the calls that it makes/u],
  [
    "a tool with two calls",
    flagger({ execution_class: "tool" }, { workflow: [...step({}).workflow, ...step({}).workflow] }),
    /makes one call/u
  ],
  [
    "a script that reads beyond its scope",
    flagger({}, step({ params: { pattern: "${flags}" } })),
    /does not read the field flags/u
  ],
  [
    "a script that writes beyond its scope",
    flagger({}, step({ writes: { path: "." } })),
    /does not write the field path/u
  ],
  ["a place that is none", flagger({}, step({ params: { pattern: "${input.x y}" } })), /names no place in STATE/u],
  ["a place of every element", flagger({}, step({ params: { pattern: "${path.*}" } })), /names no place in STATE/u],
  [
    "a script with states of its own",
    { ...flagger({}), initial_state: "do", max_steps: 3, states: { do: { terminal: true } } },
    /the runtime makes them from the workflow/u
  ],
  [
    "a model's skill with a workflow",
    { ...summarize, registry: { ...todoFlagger.registry } },
    /the runtime runs a workflow/u
  ],
  [
    "a required tool that is not there",
    flagger({}, { required_tools: ["github.issue"] }),
    /there is no tool github\.issue/u
  ],
  ["a version of two numbers", flagger({}, { version: "1.0" }), /<major>\.<minor>\.<patch>/u],
  ["an unknown tier", flagger({}, { tier: "root" }), /\["tier"\]/u],
  [
    "a state that reads more than the skill",
    summary({}, { states: { ...summarize.states, do: { ...summarize.states.do, state_read: ["summary"] } } }),
    /\["states"\]\["do"\]\["state_read"\]\[0\]: summary is not in the contract's state_read/u
  ],
  [
    "scopes without a contract",
    {
      ...summarize,
      contract: undefined,
      states: { ...summarize.states, do: { ...summarize.states.do, state_read: [] } }
    },
    /it needs a contract/u
  ]
]

describe("a skill's contract", () => {
  it.each(WRONG)("is refused with %s", (_, spec, message) => {
    assert.match(problemsOf(spec), message)
  })

  it("is read, and its pins give way to their schemas", () => {
    const spec = Result.getOrThrow(read(todoFlagger))
    assert.deepStrictEqual(spec.contract?.state["flags"], { schema: FLAG })
    assert.strictEqual(Result.getOrThrow(read(summarize)).contract?.retries, undefined)
  })

  it("gives a script its states, and reads it again with them", () => {
    const spec = Result.getOrThrow(read(todoFlagger))
    assert.deepStrictEqual(Object.keys(spec.states), ["step1", "done", "failed"])
    assert.deepStrictEqual(spec.states["step1"]?.allowed_tools.map(String), ["choir.fs.search"])
    assert.strictEqual(spec.max_steps, 2)
    assert.deepStrictEqual(read(JSON.parse(JSON.stringify(spec)) as object), Result.succeed(spec))
  })

  it("may stand in the front matter of a SKILL.md, of its own or below metadata", () => {
    const front = `contract: ${JSON.stringify(summarize.contract)}`
    const own = `---\nname: sum\ndescription: Sums.\nallowed-tools: []\n${front}\n---\nSum it up.\n`
    const below = own.replace("contract:", "metadata:\n  contract:")
    for (const text of [own, below]) {
      const spec = Result.getOrThrow(readSkillFile("sum/SKILL.md", text, SOURCES))
      assert.strictEqual(spec.contract?.execution_class, "probabilistic")
      assert.deepStrictEqual(Object.keys(spec.states), ["do", "done", "failed"])
    }
    const wrong = readSkillFile("sum/SKILL.md", own.replace('"does_not"', '"dont"'), SOURCES)
    assert.match(Result.isFailure(wrong) ? wrong.failure.join() : "", /contract.*does_not/u)
  })

  it("makes a SKILL.md a script, whose tools are those of its workflow", () => {
    const { contract, registry } = todoFlagger
    const of = (allowed: string) =>
      `---\nname: flag\ndescription: Flags.\n${allowed}contract: ${JSON.stringify(contract)}\nregistry: ${JSON.stringify(registry)}\n---\nFor people.\n`
    const spec = Result.getOrThrow(readSkillFile("flag/SKILL.md", of(""), SOURCES))
    assert.deepStrictEqual(spec.states["step1"]?.allowed_tools.map(String), ["choir.fs.search"])
    assert.isTrue(Result.isSuccess(readSkillFile("flag/SKILL.md", of("allowed-tools: Grep\n"), SOURCES)))
    const less = readSkillFile("flag/SKILL.md", of("allowed-tools: Read\n"), SOURCES)
    assert.match(Result.isFailure(less) ? less.failure.join() : "", /the workflow calls choir\.fs\.search: add it/u)
  })
})

describe("a profile of jobs", () => {
  const profile = { agent_type: "reviewer", pool: "review", permissions: { tools: ["choir.fs.read"] } }
  const problems = (stem: string, value: object) =>
    Result.match(readProfile(stem, JSON.stringify(value), BUILT_IN_CAPABILITIES), {
      onFailure: (found) => found.join(),
      onSuccess: () => ""
    })

  it("is read, without rights that it does not name", () => {
    const read = Result.getOrThrow(readProfile("reviewer", JSON.stringify(profile)))
    assert.deepStrictEqual(read.permissions, {
      tools: profile.permissions.tools,
      write_access: false,
      admin_access: false
    } as never)
    assert.strictEqual(read.limits.max_concurrent_tasks, 1)
  })

  it.each<[string, string, object, RegExp]>([
    ["another name", "other", profile, /name the file reviewer\.json/u],
    ["an administrator", "reviewer", { ...profile, permissions: { admin_access: true } }, /admin_access/u],
    ["a pool that is not there", "reviewer", { ...profile, pool: "fun" }, /pool/u],
    ["a tool that is not there", "reviewer", { ...profile, permissions: { tools: ["a.b"] } }, /there is no tool a\.b/u],
    ["an unknown key", "reviewer", { ...profile, sudo: true }, /sudo/u],
    ["no room for any job", "reviewer", { ...profile, limits: { max_concurrent_tasks: 0 } }, /max_concurrent_tasks/u]
  ])("is refused with %s", (_, stem, value, message) => {
    assert.match(problems(stem, value), message)
  })
})
