/**
 * The states of a skill in which text of strangers could carry the user's data out, whatever the model means to do. A state holds what its own tools
 * give, and what came to it: a step of a model has the conversation and the STATE of every step before it, and a call of a script the fields that its
 * params name, with all that flowed into them. Pure.
 */
import { type SkillSpec, skillState } from "#schema/Skill.ts"
import { scriptCall } from "./scriptStates.ts"
import { fieldOf, placesIn } from "./statePath.ts"
import type { AllToolFacts } from "./toolFacts.ts"

/** The states of a machine, with the fields that each may read and write. */
interface Step {
  readonly name: string
  readonly tools: ReadonlyArray<string>
  readonly reads: ReadonlyArray<string>
  readonly writes: ReadonlyArray<string>
  readonly isScript: boolean
}

const stepsOf = (spec: SkillSpec): ReadonlyArray<Step> =>
  Object.keys(spec.states).flatMap((name): ReadonlyArray<Step> => {
    const state = skillState(spec, name)
    if (state === undefined) return []
    const call = scriptCall(spec, name)
    const tools = state.allowed_tools
    if (call === undefined) {
      const { contract } = spec
      const [reads, writes] = [state.state_read ?? contract?.state_read, state.state_write ?? contract?.state_write]
      return [{ name, tools, reads: reads ?? [], writes: writes ?? [], isScript: false }]
    }
    const reads = placesIn(call.params).flatMap(({ path }) => (path === undefined ? [] : [fieldOf(path)]))
    return [{ name, tools, reads, writes: call.type === "step" ? Object.keys(call.writes) : [], isScript: true }]
  })

/** The states out of which something comes into a state. The calls of a script are in their order. */
const sourcesOf = (spec: SkillSpec, steps: ReadonlyArray<Step>, to: Step): ReadonlyArray<Step> =>
  to.isScript
    ? steps
        .slice(0, steps.indexOf(to))
        .filter(({ isScript, writes }) => isScript && writes.some((field) => to.reads.includes(field)))
    : steps.filter(({ name }) => skillState(spec, name)?.transitions.some((way) => way.to === to.name) === true)

/** Each state that a state holds something of, with the shortest way from there, both ends included. */
const waysTo = (spec: SkillSpec, steps: ReadonlyArray<Step>, to: Step): ReadonlyArray<ReadonlyArray<Step>> => {
  const found = new Map<Step, ReadonlyArray<Step>>([[to, [to]]])
  for (const way of found.values()) {
    const [first] = way
    for (const source of first === undefined ? [] : sourcesOf(spec, steps, first))
      if (!found.has(source)) found.set(source, [source, ...way])
  }
  return [...found.values()]
}

/** The fields by which something comes along a way, with the state that wrote each. */
const fieldsAlong = (way: ReadonlyArray<Step>): string => {
  const to = way.at(-1)
  const fields = (to?.reads ?? []).flatMap((field) => {
    const writer = way.slice(0, -1).find(({ writes }) => writes.includes(field))
    return writer === undefined ? [] : [`the field ${field}, which ${writer.name} writes`]
  })
  return [...(to?.isScript === true ? [] : ["its conversation"]), ...fields].join(" and ")
}

/** Tools whose results a state holds, in words that say on which way they came. */
interface Held {
  readonly tools: ReadonlyArray<string>
  readonly said: string
}

const heldBy = (way: ReadonlyArray<Step>, facts: AllToolFacts, key: "sees" | "untrusted"): ReadonlyArray<Held> => {
  const tools = (way[0]?.tools ?? []).filter((tool) => facts.get(tool)?.[key] === true)
  if (tools.length === 0) return []
  const names = tools.join(", ")
  const route = way.map(({ name }) => name).join(" > ")
  return [{ tools, said: way.length === 1 ? names : `${names} by ${route} in ${fieldsAlong(way)}` }]
}

const listed = (held: ReadonlyArray<Held>): string => held.map(({ said }) => said).join("; ")

/** The sentences about a state that holds all three, with the way by which each came there. */
export const leaks = (spec: SkillSpec, facts: AllToolFacts): ReadonlyArray<string> => {
  const steps = stepsOf(spec)
  return steps.flatMap((step) => {
    const acts = step.tools.filter((tool) => facts.get(tool)?.acts === true)
    if (acts.length === 0) return []
    const ways = waysTo(spec, steps, step)
    const of = (key: "sees" | "untrusted") => ways.flatMap((way) => heldBy(way, facts, key))
    const [sees, untrusted] = [of("sees"), of("untrusted")]
    const carries = acts.some((tool) =>
      sees.some(({ tools }) => tools.some((other) => other !== tool || facts.get(tool)?.ownPlace !== true))
    )
    if (untrusted.length === 0 || !carries) return []
    return [
      `the state ${step.name} sees the user's data (${listed(sees)}), reads text of strangers (${listed(untrusted)}) and acts outside (${acts.join(", ")}): split it into states, and put the one that acts before those that read`
    ]
  })
}
