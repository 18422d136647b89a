/** The problems of a skill's state machine, reported all at once by path and with what to do. */
import { CANCEL_EVENT, type SkillSpec, skillState, type SkillState } from "#schema/Skill.ts"
import type { ToolCapabilities } from "./builtInTools.ts"
import { schemaProblem } from "./jsonSchema.ts"

/** States of one skill. */
export const SKILL_STATES_MAX = 32

/** Too many states are refused before anything is said of one: that could name all the others. */
export const statesProblem = (states: object): string | undefined =>
  Object.keys(states).length > SKILL_STATES_MAX ? `at ["states"]: ${SKILL_STATES_MAX} states are the most` : undefined

/** Tools that every state has anyway, or none may have: skills are started and moved on by the control plane's rules alone. */
const SKILL_TOOLS = /^choir\.skill\./u

const names = ({ states }: SkillSpec): ReadonlyArray<string> => Object.keys(states)

/** The states that can be reached from one, itself included. */
const reachable = (spec: SkillSpec, from: string): ReadonlySet<string> => {
  const found = new Set<string>()
  const next = [from]
  for (let name = next.pop(); name !== undefined; name = next.pop()) {
    const state = skillState(spec, name)
    if (state === undefined || found.has(name)) continue
    found.add(name)
    next.push(...state.transitions.map(({ to }) => to))
  }
  return found
}

const stateProblems = (
  spec: SkillSpec,
  { allowed_tools, objective, terminal, transitions }: SkillState,
  at: string,
  tools: ToolCapabilities | undefined
): ReadonlyArray<string> => {
  if (terminal)
    return transitions.length + allowed_tools.length > 0
      ? [`${at}: a terminal state does nothing more: leave its transitions and allowed_tools out`]
      : []
  const events = transitions.map(({ on }) => on)
  return [
    ...(objective === undefined ? [`${at}["objective"]: say what is to be done in this state`] : []),
    ...(transitions.length === 0 ? [`${at}["transitions"]: add one, or mark the state with "terminal": true`] : []),
    ...transitions.flatMap(({ on, to }, index) => [
      ...(skillState(spec, to) === undefined
        ? [`${at}["transitions"][${index}]["to"]: there is no state "${to}"; there are ${names(spec).join(", ")}`]
        : []),
      ...(events.indexOf(on) < index
        ? [`${at}["transitions"][${index}]["on"]: "${on}" is taken by an earlier transition of this state`]
        : []),
      ...(on === CANCEL_EVENT
        ? [`${at}["transitions"][${index}]["on"]: "${on}" ends an interruptible skill; choose another word`]
        : [])
    ]),
    ...allowed_tools.flatMap((tool, index) => {
      const where = `${at}["allowed_tools"][${index}]`
      if (SKILL_TOOLS.test(tool)) return [`${where}: ${tool} cannot be allowed: a skill cannot start another skill`]
      if (allowed_tools.indexOf(tool) < index) return [`${where}: ${tool} is there twice`]
      return tools === undefined || tools.has(tool) ? [] : [`${where}: there is no tool ${tool}`]
    })
  ]
}

const wayProblems = (spec: SkillSpec): ReadonlyArray<string> => {
  if (skillState(spec, spec.initial_state) === undefined)
    return [
      `at ["initial_state"]: there is no state "${spec.initial_state}"; there are ${names(spec).join(", ") || "none"}`
    ]
  if (!names(spec).some((name) => skillState(spec, name)?.terminal === true))
    return [`at ["states"]: no state is terminal: add one with "terminal": true`]
  const reached = reachable(spec, spec.initial_state)
  return names(spec).flatMap((name) => {
    if (!reached.has(name))
      return [
        `at ["states"]["${name}"]: no transition leads there from "${spec.initial_state}": add one, or leave it out`
      ]
    const isEndless = ![...reachable(spec, name)].some((other) => skillState(spec, other)?.terminal === true)
    return isEndless ? [`at ["states"]["${name}"]: no way leads from there to a terminal state`] : []
  })
}

/** `tools` are all tools that there are, where they are known. */
export const skillProblems = (spec: SkillSpec, tools?: ToolCapabilities): ReadonlyArray<string> => {
  const many = statesProblem(spec.states)
  if (many !== undefined) return [many]
  const found = stepProblems(spec, tools)
  // Whether states can be reached is checked once each transition leads somewhere.
  return found.length === 0 ? wayProblems(spec) : found
}

const stepProblems = (spec: SkillSpec, tools: ToolCapabilities | undefined): ReadonlyArray<string> => [
  ...(["input_schema", "output_schema"] as const).flatMap((key) => {
    const schema = spec[key]
    const problem = schema === undefined || typeof schema === "string" ? undefined : schemaProblem(schema)
    return problem === undefined ? [] : [`at ["${key}"]: it cannot be checked: ${problem}`]
  }),
  ...names(spec).flatMap((name) => {
    const state = skillState(spec, name)
    return state === undefined ? [] : stateProblems(spec, state, `at ["states"]["${name}"]`, tools)
  })
]
