/** Skills and tools for people. */
import type { SkillDetail, SkillSummary, ToolSummary } from "#schema/AgentsApi.ts"
import { safeLine } from "#src/choirctl/terminal/safeText.ts"
import { fields, table } from "#src/choirctl/terminal/table.ts"

export const skillTable = (rows: ReadonlyArray<SkillSummary>, color: boolean): string =>
  table(
    ["SKILL", "FROM", "STATES", "STEPS", "DESCRIPTION"],
    rows.map(({ description, max_steps, name, source, states }) => [
      name,
      source,
      String(states),
      String(max_steps),
      safeLine(description)
    ]),
    color
  )

export const toolTable = (rows: ReadonlyArray<ToolSummary>, color: boolean): string =>
  table(
    ["TOOL", "FROM", "EFFECT", "LANES", "DESCRIPTION"],
    rows.map(({ description, effect, exposure, name, source }) => [
      name,
      source,
      effect ?? "",
      exposure ?? "",
      safeLine(description ?? "")
    ]),
    color
  )

/** Each state with its tools and where it leads, the first one first. */
export const skillText = ({ source, spec }: SkillDetail, color: boolean): string => {
  const head = fields([
    ["skill", spec.name],
    ["from", source],
    ["description", safeLine(spec.description)],
    ["begins in", spec.initial_state],
    ["steps", `at most ${spec.max_steps}`],
    ["may be left", spec.interruptible ? "yes" : "only by a person"]
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
  return `${head}\n\n${states}`
}

/** What became of the check of a file. */
export interface CheckedSkill {
  readonly file: string
  readonly ok: boolean
  readonly problems: ReadonlyArray<string>
}

export const checkText = (rows: ReadonlyArray<CheckedSkill>): string =>
  rows.length === 0
    ? "there is no skill file"
    : rows
        .map(({ file, ok, problems }) =>
          ok
            ? `${safeLine(file)}: well-formed`
            : problems.map((problem) => `${safeLine(file)}: ${safeLine(problem)}`).join("\n")
        )
        .join("\n")
