/**
 * The gate: the nine points of a skill, from its file and the files that it names alone. No model and no tool is run for it, so that the build, a
 * proposal, `skill add` and `skill check` come to the same judgement. Pure.
 */
import type { Schema } from "effect"
import type { SkillSpec } from "#schema/Skill.ts"
import { SKILL_POINTS, type SkillGrade, type SkillPoint, type SkillReport } from "#schema/SkillCheck.ts"
import { type Assertion, type GoldenAnchor, schemaOf, type SkillContract } from "#schema/SkillContract.ts"
import { asserted } from "./assertions.ts"
import { plural } from "#src/shared/text/counts.ts"
import { nearestWord } from "#src/shared/text/nearestWord.ts"
import { contractProblems, toolsOf } from "./contractProblems.ts"
import { valueProblem } from "./jsonSchema.ts"
import { languageProblems } from "./neutralLanguage.ts"
import { pinProblems, type PinnedSchemas, versionProblems } from "./pinnedSchemas.ts"
import type { StateValues } from "./statePath.ts"
import { isScript, isVerificationCall } from "./scriptStates.ts"
import { skillBounds, type WorkingModel } from "./skillBounds.ts"
import { leaks } from "./skillLeaks.ts"
import { skillProblems } from "./skillProblems.ts"
import { schedulesOf } from "./skillSchedule.ts"
import { type AllToolFacts, BUILT_IN_FACTS } from "./toolFacts.ts"

/** Points without which a skill is rejected, whatever else it has. */
const NEEDED: ReadonlySet<string> = new Set(["machine", "capabilities"])
/** Points of a community skill. */
const COMMUNITY_MIN = 7
/** Problems that one point names. */
const NAMED_MAX = 5

export interface GateSources {
  /** Facts of all tools; without them those of the built-in ones, and other tools are unknown. */
  readonly facts?: AllToolFacts
  readonly schemas?: PinnedSchemas
  /** The model that would do the work, for tokens and dollars. */
  readonly model?: WorkingModel
  /** The skill as its file writes it, where `spec` has the schemas in the places of their pins. */
  readonly written?: SkillSpec
}

type Checked = readonly [problems: ReadonlyArray<string>, proof: string]

const MISSING = "there is no contract"

/** Problems of the machine are those of no contract and of no missing tool. */
const machine = (spec: SkillSpec): Checked => {
  const count = Object.keys(spec.states).length
  return [
    skillProblems(spec),
    `${count} states, all reached and each with a way to an end, within ${spec.max_steps} steps`
  ]
}

const NOTHING = /^\W*(?:nothing|none|n\/?a|anything else|everything else|todo|tbd)\W*$/iu

const does = ({ contract }: SkillSpec): Checked => {
  if (contract === undefined) return [[`${MISSING}: say what it does, and what it does not`], ""]
  const problems = (["does", "does_not"] as const).flatMap((key) =>
    NOTHING.test(contract[key]) ? [`${key} says nothing: name what a reader could expect`] : []
  )
  const same = contract.does.trim().toLowerCase() === contract.does_not.trim().toLowerCase()
  return [same ? [...problems, "does and does_not are the same sentence"] : problems, "both are said"]
}

/** Fields that are declared and that nothing reads or writes. */
const idleFields = ({ state, state_read, state_write }: SkillContract): ReadonlyArray<string> => {
  const used = new Set([...state_read, ...state_write])
  return Object.keys(state).filter((field) => !used.has(field))
}

const scopes = (spec: SkillSpec): Checked => {
  const { contract } = spec
  const idle = contract === undefined ? [] : idleFields(contract)
  return [
    [...contractProblems(spec), ...idle.map((field) => `the field ${field} is neither read nor written`)],
    contract === undefined
      ? "it declares no STATE and uses none"
      : `reads ${contract.state_read.join(", ") || "nothing"}; writes ${contract.state_write.join(", ") || "nothing"}`
  ]
}

const pinsOf = ({ contract, input_schema, output_schema }: SkillSpec): ReadonlyArray<string> =>
  [input_schema, output_schema, ...Object.values(contract?.state ?? {}).map(({ schema }) => schema)].flatMap((ref) =>
    typeof ref === "string" ? [ref] : []
  )

const pins = (written: SkillSpec, schemas: PinnedSchemas | undefined): Checked => {
  const used = pinsOf(written)
  if (used.length === 0) return [[], "it pins no schema"]
  const known = schemas ?? new Map()
  const lost = versionProblems(known).flatMap(([pin, reason]) => (used.includes(pin) ? [`${pin}: ${reason}`] : []))
  return [[...pinProblems(written, known), ...lost], `${[...new Set(used)].join(", ")} are there and only add`]
}

const capabilities = (spec: SkillSpec, facts: AllToolFacts): Checked => {
  const { contract } = spec
  const needed = [...new Set(toolsOf(spec).flatMap((tool) => facts.get(tool)?.capabilities ?? []))]
  const missing = contract === undefined ? [] : needed.filter((one) => !contract.capabilities.includes(one))
  const idle = (contract?.capabilities ?? []).filter((one) => !needed.includes(one))
  const unknown = toolsOf(spec).filter((tool) => !facts.has(tool))
  // Another repository may bring the others.
  const misspelt = unknown.filter((tool) => tool.startsWith("choir."))
  return [
    [
      ...misspelt.map((tool) => {
        const meant = nearestWord(tool, BUILT_IN_FACTS.keys())
        return `there is no tool ${tool}${meant === undefined ? "" : `: did you mean ${meant}?`}`
      }),
      ...(missing.length === 0 ? [] : [`declare ${missing.join(", ")}, which its tools can do`]),
      ...(idle.length === 0 || unknown.length > 0
        ? []
        : [`none of its tools can do ${idle.join(", ")}: do not declare it`]),
      ...leaks(spec, facts)
    ],
    [
      `${needed.join(", ") || "nothing"}; no state sees the user's data, reads text from strangers and acts outside at once`,
      ...(unknown.length === 0 ? [] : [`unknown here: ${unknown.join(", ")}`])
    ].join("; ")
  ]
}

const allAssertions = ({ contract, registry, states }: SkillSpec): ReadonlyArray<Assertion> => [
  ...(contract?.assertions ?? []),
  ...Object.values(states).flatMap((state) => state.assertions ?? []),
  ...(registry?.verification ?? []).flatMap((check) => (isVerificationCall(check) ? [] : [check]))
]

const isObject = (value: Schema.Json): value is StateValues =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const membersOf = (value: Schema.Json): StateValues => (isObject(value) ? value : {})

/** The STATE after an example: its input, and the fields of its output. */
const fieldsOf = ({ input, output }: GoldenAnchor): StateValues => ({ ...membersOf(input), ...membersOf(output) })

const assertions = (spec: SkillSpec): Checked => {
  const { contract } = spec
  if (contract === undefined) return [[`${MISSING}: assert what its result has to be`], ""]
  const all = allAssertions(spec)
  const calls = (spec.registry?.verification ?? []).filter(isVerificationCall).length
  if (all.length + calls === 0) return [["it asserts nothing about its result"], ""]
  const failed = contract.golden_anchors.flatMap((anchor, index) =>
    asserted(all, fieldsOf(anchor)).flatMap(({ detail, ok, statement }) =>
      ok ? [] : [`"${statement}" does not hold on anchor ${index + 1}: ${detail}`]
    )
  )
  return [failed, `${plural(all.length + calls, "check")}, ${plural(contract.golden_anchors.length, "anchor")}`]
}

const anchorProblems = (spec: SkillSpec, contract: SkillContract, anchor: GoldenAnchor, index: number) => {
  const at = `anchor ${index + 1}`
  const { input, output } = anchor
  const misfit = (what: string, schema: Parameters<typeof schemaOf>[0] | undefined, value: Schema.Json) => {
    const problem = schema === undefined ? undefined : valueProblem(schemaOf(schema), value)
    return problem === undefined ? [] : [`${at}: ${what} does not fit: ${problem.replaceAll(/\s+/gu, " ")}`]
  }
  const fields = Object.entries(fieldsOf(anchor)).flatMap(([field, value]) =>
    Object.hasOwn(contract.state, field) ? misfit(`the field ${field}`, contract.state[field]?.schema, value) : []
  )
  const written = isObject(output) ? Object.keys(output) : []
  const missing = contract.state_write.filter((field) => !written.includes(field))
  return [
    ...misfit("its input", spec.input_schema, input),
    ...misfit("its output", spec.output_schema, output),
    ...fields,
    ...(missing.length === 0 ? [] : [`${at}: its output lacks ${missing.join(", ")}`])
  ]
}

const anchors = (spec: SkillSpec): Checked => {
  const { contract } = spec
  if (contract === undefined) return [[`${MISSING}: show an input and a good result of it`], ""]
  if (isScript(spec)) return [[], "the runtime does the work: none are needed"]
  const { golden_anchors } = contract
  if (golden_anchors.length === 0) return [["show at least one input and a good result of it (golden_anchors)"], ""]
  return [
    golden_anchors.flatMap((anchor, index) => anchorProblems(spec, contract, anchor, index)),
    `${plural(golden_anchors.length, "anchor")}, all fitting their schemas`
  ]
}

const language = (spec: SkillSpec, facts: AllToolFacts): Checked => {
  const scripted = isScript(spec)
    ? toolsOf(spec).filter((tool) => facts.get(tool)?.capabilities.includes("agent:spawn"))
    : []
  return [
    [
      ...languageProblems(spec),
      ...scripted.map(
        (tool) => `${tool} has a model do the work, so the class is not ${spec.contract?.execution_class}`
      )
    ],
    `no wording for one provider; its class is ${spec.contract?.execution_class ?? "probabilistic"}`
  ]
}

const gradeOf = (points: ReadonlyArray<SkillPoint>): SkillGrade => {
  if (points.some(({ ok, point }) => !ok && NEEDED.has(point))) return "rejected"
  const passed = points.filter(({ ok }) => ok).length
  if (passed === points.length) return "verified"
  return passed >= COMMUNITY_MIN ? "community" : "experimental"
}

const reportOf = (
  points: ReadonlyArray<SkillPoint>,
  rest: Omit<SkillReport, "grade" | "passed" | "points">
): SkillReport => ({
  ...rest,
  grade: gradeOf(points),
  passed: points.filter(({ ok }) => ok).length,
  points
})

/** The events at which a skill begins without anybody choosing it. */
const beginsOf = (spec: SkillSpec): ReadonlyArray<string> => [
  ...schedulesOf(spec).map(({ text }) => text),
  ...(spec.registry?.triggers ?? []).flatMap(({ kind, match, mode }) => {
    if (mode !== "start" || kind === "schedule") return []
    const words = JSON.stringify(match)
    if (kind === "keyword") return [`at a message or a job's task with the words ${words}`]
    return [kind === "tool" ? `in a job that may use ${words}` : `in a job of the type or pool ${words}`]
  })
]

/** The report of a skill whose shape is right. */
export const gateReport = (spec: SkillSpec, sources: GateSources = {}): SkillReport => {
  const { facts = BUILT_IN_FACTS, model, schemas, written = spec } = sources
  const checked: Readonly<Record<(typeof SKILL_POINTS)[number], Checked>> = {
    shape: [[], "it is read without a problem"],
    machine: machine(spec),
    does: does(spec),
    scopes: scopes(spec),
    pins: pins(written, schemas),
    capabilities: capabilities(spec, facts),
    assertions: assertions(spec),
    anchors: anchors(spec),
    language: language(spec, facts)
  }
  const points = SKILL_POINTS.map((point): SkillPoint => {
    const [problems, proof] = checked[point]
    const more = problems.length - NAMED_MAX
    const named = problems.slice(0, NAMED_MAX).join("; ")
    return {
      point,
      ok: problems.length === 0,
      detail: problems.length === 0 ? proof : `${named}${more > 0 ? `; and ${more} more` : ""}`
    }
  })
  const { contract, registry } = spec
  const needed = [...new Set(toolsOf(spec).flatMap((tool) => facts.get(tool)?.capabilities ?? []))]
  const begins = beginsOf(spec)
  return reportOf(points, {
    name: spec.name,
    bounds: skillBounds(spec, facts, model),
    execution_class: contract?.execution_class ?? "probabilistic",
    tier: registry?.tier ?? null,
    version: registry?.version ?? null,
    capabilities: contract?.capabilities ?? needed,
    ...(begins.length === 0 ? {} : { begins }),
    does: contract?.does ?? null,
    does_not: contract?.does_not ?? null
  })
}

/** The report of a file that cannot be read as a skill. */
export const unreadableReport = (name: string, problems: ReadonlyArray<string>): SkillReport => {
  const detail = problems.slice(0, NAMED_MAX).join("; ")
  const points = SKILL_POINTS.map((point): SkillPoint => ({
    point,
    ok: false,
    detail: point === "shape" ? detail : "the file is not well-formed"
  }))
  return reportOf(points, {
    name,
    bounds: { model_calls: 0, tokens: null, usd: null, locks: [] },
    execution_class: "probabilistic",
    tier: null,
    version: null,
    capabilities: [],
    does: null,
    does_not: null
  })
}
