/** choirctl skill: the skills of an agent, in a list and one by one. */
import { Effect, Option, type Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { SkillName, type SkillSpec } from "#schema/Skill.ts"
import type { SkillDetail, SkillSummary } from "#schema/AgentsApi.ts"
import { SkillGrade } from "#schema/SkillCheck.ts"
import { ExecutionClass, retriesOf } from "#schema/SkillContract.ts"
import { SkillTier } from "#schema/SkillRegistryEntry.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { fields, safeLine, table } from "#src/choirctl/terminal/text.ts"
import { gradeText } from "#src/shared/image/skillReportText.ts"
import { agentId } from "#src/choirctl/commands/flags/arguments.ts"
import { skillTry } from "./skillTry.ts"
import { skillRuns } from "./runs.ts"
import { skillCancel, skillRun } from "./skillRun.ts"
import { add } from "./skillAdd.ts"
import { check, reportText } from "./skillCheck.ts"
import { exported } from "./skillExport.ts"

const skillTable = (rows: ReadonlyArray<SkillSummary>, color: boolean): string =>
  table(
    ["SKILL", "FROM", "GRADE", "CLASS", "TIER", "STATES", "STEPS", "DESCRIPTION"],
    rows.map(({ description, execution_class, grade, max_steps, name, passed, source, states, tier }) => [
      name,
      source,
      `${grade} ${passed}/9`,
      execution_class,
      tier ?? "",
      String(states),
      String(max_steps),
      safeLine(description)
    ]),
    color
  )

const isObject = (value: Schema.Json | undefined): value is Readonly<Record<string, Schema.Json>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The keys of an input with their types; those that may be left out have a `?`. */
const inputText = ({ contract, input_schema }: SkillSpec): string => {
  if (typeof input_schema === "string") return input_schema
  const { properties, required } = input_schema ?? {}
  const needed = Array.isArray(required) ? required : []
  const known = isObject(properties) ? Object.entries(properties) : []
  const keys = known.map(([key, schema]) => {
    const type = isObject(schema) && typeof schema["type"] === "string" ? `: ${schema["type"]}` : ""
    return `${key}${needed.includes(key) ? "" : "?"}${type}`
  })
  if (keys.length > 0) return safeLine(keys.join(", "))
  if (contract === undefined) return "any object"
  return contract.state_read.length === 0 ? "none" : `fields of STATE: ${contract.state_read.join(", ")}`
}

const triggersText = ({ registry }: SkillSpec): string =>
  safeLine((registry?.triggers ?? []).map(({ kind, match, mode }) => `${mode} on ${kind} "${match}"`).join("; ")) ||
  "none"

const thresholdText = ({ contract }: SkillSpec): string =>
  contract?.confidence_threshold === undefined
    ? "none: no result is judged"
    : `${contract.confidence_threshold}: a less confident result is judged, at most ${retriesOf(contract)} are sent back`

/** Each state with its tools and where it leads, the first one first. */
const skillText = ({ report, source, spec }: SkillDetail, color: boolean): string => {
  const head = fields([
    ["skill", spec.name],
    ["from", source],
    ["description", safeLine(spec.description)],
    ["input", inputText(spec)],
    ["triggers", triggersText(spec)],
    ["threshold", thresholdText(spec)],
    ["initial state", spec.initial_state],
    ["grade", gradeText(report)],
    ["steps", `at most ${spec.max_steps}`],
    ["interruptible", spec.interruptible ? "yes" : "only by a person"]
  ])
  const states = table(
    ["STATE", "LEADS TO", "TOOLS", "OBJECTIVE"],
    Object.entries(spec.states).map(([name, { allowed_tools, objective, terminal, transitions }]) => [
      name,
      terminal ? "the end" : transitions.map(({ on, to }) => `${on}: ${to}`).join(", "),
      allowed_tools.join(", "),
      safeLine(objective ?? "")
    ]),
    color
  )
  return `${head}\n\n${states}\n\n${reportText(report, color)}`
}

const list = Command.make(
  "list",
  {
    id: agentId,
    tier: Flag.Literals("tier", SkillTier.literals).pipe(
      Flag.withDescription("Only skills of this tier"),
      Flag.optional
    ),
    execution_class: Flag.Literals("class", ExecutionClass.literals).pipe(
      Flag.withDescription("Only skills of this class"),
      Flag.optional
    ),
    grade: Flag.Literals("grade", SkillGrade.literals).pipe(
      Flag.withDescription("Only skills of this grade"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ id, ...wanted }) {
    const rows = yield* ask("skills", (choird) => choird.list({ params: { id } }))
    const has = (row: SkillSummary) =>
      (["tier", "execution_class", "grade"] as const).every((key) =>
        Option.match(wanted[key], { onNone: () => true, onSome: (value) => row[key] === value })
      )
    yield* print(rows.filter(has), skillTable)
  })
).pipe(
  Command.withDescription("List the skills of an agent: the built-in ones and those of its newest image"),
  Command.withExamples([{ command: "choirctl skill list agent-1 --grade verified" }])
)

const name = Argument.String("skill").pipe(
  Argument.withDescription("Skill name from choirctl skill list"),
  Argument.withSchema(SkillName)
)

const show = Command.make(
  "show",
  { id: agentId, name },
  Effect.fnUntraced(function* ({ id, name }) {
    const skill = yield* ask("skills", (choird) => choird.show({ params: { id, name } }))
    yield* print(skill, skillText)
  })
).pipe(
  Command.withDescription("Show a skill's states with their tools and transitions"),
  Command.withExamples([{ command: "choirctl skill show agent-1 tool-builder" }])
)

export const skill = Command.make("skill").pipe(
  Command.withSubcommands([list, show, check, skillTry, add, exported, skillRun, skillCancel, skillRuns])
)
