/**
 * The decisions that start, move and end the skill of a lane: one at a time, along the transitions of its states, within its steps.
 * The image's texts say what is allowed; the events say what happened.
 */
import type { Schema } from "effect"
import type { Budgets } from "#schema/Config.ts"
import type { ChoirEvent, EventDraft, PayloadOf } from "#schema/Event.ts"
import type { LaneId } from "#schema/Ids.ts"
import { CANCEL_EVENT, ERROR_EVENT, skillState, type SkillSpec, type SkillState } from "#schema/Skill.ts"
import { schemaOf } from "#schema/SkillContract.ts"
import { shownName, ToolName, toWireName } from "#schema/Tool.ts"
import { valueProblem } from "#src/shared/image/jsonSchema.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { CORE_WRITEBACK } from "#src/shared/session/writtenBack.ts"
import type { ActiveSkill, LaneMemory, OpenCall, SessionState } from "#src/shared/session/State.ts"
import { accept, controlBatch, type Decision, type Command, refuse, reject, type Situation } from "./Command.ts"
import type { SkillBook } from "#src/agent/image/SkillRegistry.ts"

export const SKILL_START = ToolName.make("choir.skill.start")
export const SKILL_TRANSITION = ToolName.make("choir.skill.transition")

/** The tools and transitions that a lane's model may use in its skill's present state. */
export interface SkillRules {
  /** Names of tools beside the transition. */
  readonly tools: ReadonlyArray<ToolName>
  readonly transitions: ReadonlyArray<string>
}

/** The events with which a model may leave a state. */
export const skillEvents = ({ interruptible }: SkillSpec, { transitions }: SkillState): ReadonlyArray<string> => [
  ...transitions.map(({ on }) => on),
  ...(interruptible ? [CANCEL_EVENT] : [])
]

/** `undefined` for a lane without a skill. A skill that the image does not have any more allows nothing. */
export const skillRules = ({ skill }: LaneMemory, skills: SkillBook): SkillRules | undefined => {
  if (skill === undefined) return undefined
  const spec = skills.get(skill.name)
  const state = spec === undefined ? undefined : skillState(spec, skill.state)
  return spec === undefined || state === undefined
    ? { tools: [], transitions: [] }
    : { tools: state.allowed_tools, transitions: skillEvents(spec, state) }
}

type Allowed = NonNullable<PayloadOf<"ToolResultCommitted">["allowed"]>

/** The same by the names that a model knows. */
export const toldRules = ({ tools, transitions }: SkillRules): Allowed => ({
  tools: [...tools, SKILL_TRANSITION].map(toWireName),
  transitions
})

/** Why the skill of a lane does not let it call a tool; `undefined` when it does. */
export const skillRefusal = (
  memory: LaneMemory,
  skills: SkillBook,
  tool: string
): { readonly reason: string; readonly allowed: Allowed } | undefined => {
  const rules = skillRules(memory, skills)
  if (memory.skill === undefined || rules === undefined || tool === SKILL_TRANSITION || tool === CORE_WRITEBACK)
    return undefined
  if (rules.tools.some((allowed) => allowed === tool)) return undefined
  const { name, state } = memory.skill
  const why =
    tool === SKILL_START ? "a skill starts no other one" : `its step ${state} does not allow ${shownName(tool)}`
  return { reason: `the skill ${name} is at work, and ${why}`, allowed: toldRules(rules) }
}

const isSkillCall = ({ name }: OpenCall): boolean => name.replaceAll("-", ".").startsWith("choir.skill.")

/**
 * Whether a call that starts or moves a skill has its turn: what else its output proposed belongs to the state before, and has ended.
 */
export const isSkillTurn = (state: SessionState, lane: LaneId, call: OpenCall): boolean => {
  const calls = laneOf(state, lane)?.calls ?? []
  const own = calls.findIndex(({ call_id }) => call_id === call.call_id)
  return !calls.some((other, index) => (isSkillCall(other) ? index < own : true))
}

/** Why a lane's skill cannot continue; `goes` says whether the state may still send it elsewhere. */
const failure = (
  { skill }: LaneMemory,
  skills: SkillBook,
  { skill_retry_budget }: Budgets
): { readonly reason: string; readonly goes: boolean } | undefined => {
  if (skill === undefined) return undefined
  const spec = skills.get(skill.name)
  if (spec === undefined || skillState(spec, skill.state) === undefined)
    return { reason: `the agent's image has no state ${skill.state} of a skill ${skill.name} any more`, goes: false }
  if (skill.step >= spec.max_steps)
    return { reason: `the skill's limit of ${spec.max_steps} steps (max_steps) is reached`, goes: false }
  return skill.violations > skill_retry_budget
    ? {
        reason: `its step ${skill.state} was not followed ${skill.violations} times (budgets.skill_retry_budget ${skill_retry_budget})`,
        goes: true
      }
    : undefined
}

/** An event that begins, moves or ends a skill. */
export type SkillDraft = Extract<EventDraft, { readonly event_type: "SkillTransitionCommitted" }>

const transition = (
  lane: LaneId,
  { name, state, step }: Pick<ActiveSkill, "name" | "state" | "step">,
  more: Pick<PayloadOf<"SkillTransitionCommitted">, "on" | "to"> & Partial<PayloadOf<"SkillTransitionCommitted">>
): SkillDraft => ({
  event_type: "SkillTransitionCommitted",
  lane,
  payload: { skill: name, from: state, step, ...more }
})

/** The beginning of a skill on a lane that has none, or why it cannot begin. */
export const beginning = (
  lane: LaneId,
  name: string,
  input: Schema.Json | undefined,
  skills: SkillBook
): SkillDraft | string => {
  const spec = skills.get(name)
  if (spec === undefined)
    return `there is no skill ${name.slice(0, 64)}; there are ${[...skills.keys()].join(", ") || "none"}`
  const { initial_state, input_schema } = spec
  const problem = input_schema === undefined ? undefined : valueProblem(schemaOf(input_schema), input ?? {})
  if (problem !== undefined) return `the input does not fit the skill ${name}: ${problem}`
  const begun = { name, state: "", step: 0 }
  return transition(lane, begun, { on: "start", to: initial_state, ...(input === undefined ? {} : { input }) })
}

/** The only skills that a job may begin; undefined for all. */
const refsOf = (started: ChoirEvent | undefined): ReadonlyArray<string> | undefined =>
  started?.event_type === "CoreStarted" ? started.payload.start.skill_refs : undefined

export const startSkill = (
  state: SessionState,
  { call_id, input, lane, skill }: Extract<Command, { type: "StartSkill" }>,
  { find, skills }: Situation
): Decision => {
  const memory = laneOf(state, lane)
  if (memory === undefined) return reject(`the job on ${lane} has stopped`)
  if (memory.skill !== undefined) return reject(`the skill ${memory.skill.name} is at work; end it first`)
  if ("job_id" in memory && memory.in_skill !== undefined)
    return reject(`the skill ${memory.in_skill} started this job, and a skill starts no other one`)
  const refs = "job_id" in memory ? refsOf(find(memory.started_rev)) : undefined
  if (refs !== undefined && !refs.some((name) => name === skill))
    return reject(`this job may begin ${refs.length === 0 ? "no skill" : `only ${refs.join(", ")}`}`)
  // A skill rules its lane, and what was set aside knows nothing of its steps.
  if (!("job_id" in memory) && memory.parked !== undefined)
    return reject("an earlier request waits for a person's approval; start the skill when that one is done")
  const begun = beginning(lane, skill, input, skills)
  if (typeof begun === "string") return reject(begun)
  const [committed, result] = controlBatch(lane, call_id, `the skill ${skill} began`, { skill, status: "started" })
  return accept(committed, begun, result)
}

/** The skill's own end, at a state that is terminal, by the model's `cancel`, or by what went wrong. */
const endOf = (spec: SkillSpec, on: string, to: string): PayloadOf<"SkillTransitionCommitted">["ended"] => {
  if (skillState(spec, to)?.terminal !== true) return undefined
  return on === ERROR_EVENT ? "failed" : "completed"
}

export const moveSkill = (
  state: SessionState,
  { call_id, lane, on, output }: Extract<Command, { type: "MoveSkill" }>,
  { skills }: Situation
): Decision => {
  const memory = laneOf(state, lane)
  const skill = memory?.skill
  const call = memory?.calls.find((open) => open.call_id === call_id)
  if (memory === undefined || skill === undefined || call === undefined)
    return reject("no skill is at work on this lane; choir-skill-start begins one")
  if (call.output_rev < skill.entered_rev)
    return reject(`the skill is in its step ${skill.state} since; one transition at a time`)
  const spec = skills.get(skill.name)
  const from = spec === undefined ? undefined : skillState(spec, skill.state)
  const allowed = toldRules(skillRules(memory, skills) ?? { tools: [], transitions: [] })
  if (spec === undefined || from === undefined) return refuse(`the skill ${skill.name} is not in the image`, allowed)
  const left = output === undefined ? {} : { output }
  const done = (to: string, ended: PayloadOf<"SkillTransitionCommitted">["ended"], summary: string): Decision => {
    const told = ended === undefined ? { skill: skill.name, step: to } : { skill: skill.name, ended }
    const [committed, result] = controlBatch(lane, call_id, summary, told)
    const move = transition(lane, skill, { on, to, ...left, ...(ended === undefined ? {} : { ended }) })
    return accept(committed, move, result)
  }
  if (on === CANCEL_EVENT && spec.interruptible) return done("", "cancelled", `the skill ${skill.name} was cancelled`)
  const taken = from.transitions.find((known) => known.on === on)
  if (taken === undefined)
    return refuse(`the step ${skill.state} of the skill ${skill.name} has no transition ${on.slice(0, 64)}`, allowed)
  const ended = endOf(spec, on, taken.to)
  const problem =
    ended === "completed" && spec.output_schema !== undefined
      ? valueProblem(schemaOf(spec.output_schema), output ?? {})
      : undefined
  if (problem !== undefined) return refuse(`the output does not fit the skill ${skill.name}: ${problem}`, allowed)
  return done(taken.to, ended, `${skill.name}: ${skill.state} to ${taken.to}`)
}

/** A failure sends the skill along its state's own error transition, or ends it as failed. */
export const failSkill = (
  state: SessionState,
  { lane }: Extract<Command, { type: "FailSkill" }>,
  { budgets, skills }: Situation
): Decision => {
  const memory = laneOf(state, lane)
  const failed = memory === undefined ? undefined : failure(memory, skills, budgets)
  if (memory?.skill === undefined || failed === undefined) return reject("no skill of the lane has failed")
  if (memory.calls.length > 0) return reject("calls of the lane are open")
  const { goes, reason } = failed
  const spec = skills.get(memory.skill.name)
  const from = spec === undefined ? undefined : skillState(spec, memory.skill.state)
  const handler = goes ? from?.transitions.find(({ on }) => on === ERROR_EVENT) : undefined
  const to = handler?.to ?? ""
  const ended = spec === undefined || handler === undefined ? "failed" : endOf(spec, ERROR_EVENT, to)
  return accept(
    transition(lane, memory.skill, { on: ERROR_EVENT, to, reason, ...(ended === undefined ? {} : { ended }) })
  )
}

/** The end of the skill of a lane that ends; nothing where it runs none. */
export const endedWithLane = (lane: LaneId, { skill }: LaneMemory, reason: string): ReadonlyArray<EventDraft> =>
  skill === undefined ? [] : [transition(lane, skill, { on: CANCEL_EVENT, to: "", ended: "cancelled", reason })]
