/** How a skill begins on a lane: with a fitting input, where its agent grants everything that it needs, and where none is at work. */
import { Result, type Schema } from "effect"
import type { Capability } from "#schema/Capability.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import type { LaneId } from "#schema/Ids.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import { schemaOf } from "#schema/SkillContract.ts"
import { shownName } from "#schema/Tool.ts"
import { valueProblem } from "#src/shared/image/jsonSchema.ts"
import type { StateValues } from "#src/shared/image/statePath.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { accept, type Command, controlBatch, type Decision, reject, type Rejected, type Situation } from "./Command.ts"
import { type SkillDraft, transition } from "./decideSkills.ts"
import { valuesProblem } from "./skillState.ts"

/** Why an agent's grants do not let it begin a skill. */
export const ungranted = (spec: SkillSpec, grants: ReadonlyArray<Capability>): Rejected | undefined => {
  const capabilities = (spec.contract?.capabilities ?? []).filter((capability) => !grants.includes(capability))
  return capabilities.length === 0
    ? undefined
    : {
        reason: `the skill ${spec.name} needs ${capabilities.join(", ")}, which this agent is not granted: a person adds it to skills.grants in config.json`,
        denied: { skill: spec.name, capabilities }
      }
}

/** Why an agent that lacks a tool of a resource cannot begin a skill that requires it. */
const toolless = ({ name, registry }: SkillSpec, unbound: ReadonlyMap<string, string>): Rejected | undefined => {
  const missing = (registry?.required_tools ?? []).filter((tool) => unbound.has(tool))
  const [first] = missing
  return first === undefined
    ? undefined
    : {
        reason: `the skill ${name} needs ${missing.map(shownName).join(", ")}, which this agent does not have: ${unbound.get(first)}. A person can change that in config.json`
      }
}

/** The facts of a skill with a contract that its first event keeps, so that nobody needs its text to tell what ran. */
const told = ({ contract, registry }: SkillSpec) => ({
  ...(contract === undefined ? {} : { execution_class: contract.execution_class }),
  ...(registry === undefined ? {} : { version: registry.version, tier: registry.tier })
})

const isObject = (value: Schema.Json): value is StateValues =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The input of a skill with a contract gives fields of its STATE their first values. */
const inputProblem = (spec: SkillSpec, input: Schema.Json): string | undefined => {
  const problem = spec.input_schema === undefined ? undefined : valueProblem(schemaOf(spec.input_schema), input)
  if (problem !== undefined || spec.contract === undefined) return problem
  return isObject(input) ? valuesProblem(spec, input) : "it must be an object of STATE fields"
}

/** The facts by which a skill begins. */
export type BeginSituation = Pick<Situation, "grants" | "skills" | "unbound">

/** The beginning of a skill on a lane that has none, or why it cannot begin. `trigger` is what began it, where no model did. */
export const beginning = (
  lane: LaneId,
  name: string,
  input: Schema.Json | undefined,
  { grants, skills, unbound }: BeginSituation,
  trigger?: string
): Result.Result<SkillDraft, Rejected> => {
  const spec = skills.get(name)
  if (spec === undefined)
    return Result.fail({
      reason: `there is no skill ${name.slice(0, 64)}; there are ${[...skills.keys()].join(", ") || "none"}`
    })
  const denied = ungranted(spec, grants) ?? toolless(spec, unbound)
  if (denied !== undefined) return Result.fail(denied)
  const problem = inputProblem(spec, input ?? {})
  if (problem !== undefined) return Result.fail({ reason: `the input does not fit the skill ${name}: ${problem}` })
  const given =
    input === undefined ? {} : spec.contract === undefined ? { input } : isObject(input) ? { writes: input } : {}
  return Result.succeed(
    transition(
      lane,
      { name, state: "", step: 0 },
      { on: "start", to: spec.initial_state, ...given, ...told(spec), ...(trigger === undefined ? {} : { trigger }) }
    )
  )
}

/** The only skills that a job may begin; undefined for all. */
const refsOf = (started: ChoirEvent | undefined): ReadonlyArray<string> | undefined =>
  started?.event_type === "CoreStarted" ? started.payload.start.skill_refs : undefined

export const startSkill = (
  state: SessionState,
  { call_id, input, lane, skill }: Extract<Command, { type: "StartSkill" }>,
  situation: Situation
): Decision => {
  const memory = laneOf(state, lane)
  if (memory === undefined) return reject(`the job on ${lane} has stopped`)
  if (memory.skill !== undefined) return reject(`the skill ${memory.skill.name} is running; end it first`)
  if ("job_id" in memory && memory.in_skill !== undefined)
    return reject(`the skill ${memory.in_skill} started this job, and a skill cannot start another skill`)
  const refs = "job_id" in memory ? refsOf(situation.find(memory.started_rev)) : undefined
  if (refs !== undefined && !refs.some((name) => name === skill))
    return reject(`this job may begin ${refs.length === 0 ? "no skill" : `only ${refs.join(", ")}`}`)
  // A skill rules its lane, and what was set aside knows nothing of its steps.
  if (!("job_id" in memory) && memory.parked !== undefined)
    return reject("an earlier request waits for a person's approval; start the skill when that one is done")
  return Result.flatMap(beginning(lane, skill, input, situation), (begun) => {
    const [committed, result] = controlBatch(lane, call_id, `the skill ${skill} began`, { skill, status: "started" })
    return accept(committed, begun, result)
  })
}
