/** A skill as a folder of the Agent Skills standard, for other harnesses: the states as prose, and Choir's own keys below `metadata`. Pure. */
import { stringify } from "yaml"
import type { SkillSpec } from "#schema/Skill.ts"
import { toolsOf } from "./contractProblems.ts"

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
          : ["The result has to hold:", "", ...contract.assertions.map(({ statement }) => `- ${statement}`), ""])
      ]

/** The text of its SKILL.md. Choir reads it back as a skill of one state with its contract, and of a script all of it. */
export const skillMarkdown = (spec: SkillSpec): string => {
  const { contract, description, name, registry } = spec
  // Choir reads one state back, whose steps are prose, so that what the states assert is in the prose alone.
  const own = {
    ...(contract === undefined ? {} : { contract }),
    ...(registry === undefined ? {} : { registry })
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
