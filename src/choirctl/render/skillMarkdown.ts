/** A skill as a folder of the Agent Skills standard, for other harnesses: the states as prose, and Choir's own keys below `metadata`. Pure. */
import { Result } from "effect"
import { stringify } from "yaml"
import type { SkillSpec } from "#schema/Skill.ts"
import { toolsOf } from "#src/shared/image/contractProblems.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { readSkillFolder } from "#src/shared/image/skillFolder.ts"

const steps = ({ initial_state, states }: SkillSpec): ReadonlyArray<string> => {
  const names = [initial_state, ...Object.keys(states).filter((name) => name !== initial_state)]
  return names.flatMap((name) => {
    const state = states[name]
    if (state === undefined || state.terminal) return []
    const ways = state.transitions.map(({ on, to }) =>
      states[to]?.terminal === true ? `- ${on}: end (${to})` : `- ${on}: go to "${to}"`
    )
    const allowed = state.allowed_tools.length === 0 ? "none" : state.allowed_tools.join(", ")
    return [`## ${name}`, "", state.objective ?? "", "", `Tools: ${allowed}`, "", "Then:", "", ...ways, ""]
  })
}

const promise = ({ contract }: SkillSpec): ReadonlyArray<string> =>
  contract === undefined
    ? []
    : [
        `It ${contract.does}. It does not ${contract.does_not}.`,
        "",
        ...(contract.assertions.length === 0
          ? []
          : [
              "These must be true of the result:",
              "",
              ...contract.assertions.map(({ statement }) => `- ${statement}`),
              ""
            ])
      ]

/** The text of its SKILL.md. Choir reads it back as a skill of one state with its contract and schemas, and of a script all of it. */
export const skillMarkdown = (spec: SkillSpec): string => {
  const { contract, description, input_schema, name, output_schema, registry } = spec
  // Choir reads one state back, whose steps are prose, so that what the states assert is in the prose alone.
  const own = {
    ...(contract === undefined ? {} : { contract }),
    ...(registry === undefined ? {} : { registry }),
    ...(input_schema === undefined ? {} : { input_schema }),
    ...(output_schema === undefined ? {} : { output_schema })
  }
  const front = {
    name,
    description,
    "allowed-tools": toolsOf(spec),
    ...(Object.keys(own).length === 0 ? {} : { metadata: own })
  }
  return [
    "---",
    stringify(front, { aliasDuplicateObjects: false, lineWidth: 0 }).trimEnd(),
    "---",
    "",
    `# ${name}`,
    "",
    ...promise(spec),
    ...steps(spec)
  ]
    .join("\n")
    .trimEnd()
    .concat("\n")
}

const LOST: Readonly<Record<string, (spec: SkillSpec) => string>> = {
  states: ({ states }) =>
    `states: its ${Object.values(states).filter(({ terminal }) => !terminal).length} have their own tools and transitions; a SKILL.md is one state that may use all the tools`,
  initial_state: () => "",
  max_steps: ({ max_steps }) => `max_steps: ${max_steps}, which a SKILL.md cannot express`,
  interruptible: () => "interruptible: a SKILL.md can always be cancelled by a model"
}

/** The parts of a skill that a reader of its SKILL.md would not get, each with the reason; none where Choir reads the same skill back. */
export const exportLosses = (spec: SkillSpec): ReadonlyArray<string> => {
  const again = Result.flatMap(readSkillFolder(spec.name, skillMarkdown(spec)), (draft) =>
    readSkill(spec.name, JSON.stringify(draft))
  )
  if (Result.isFailure(again)) return again.failure
  const read: Readonly<Record<string, unknown>> = again.success
  return Object.entries(spec).flatMap(([key, value]) => {
    if (JSON.stringify(read[key]) === JSON.stringify(value)) return []
    const lost = LOST[key]?.(spec) ?? `${key}: a SKILL.md has no place for it`
    return lost === "" ? [] : [lost]
  })
}
