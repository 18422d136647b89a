/**
 * The rules of the skill of a lane: what its present step allows, and when it has failed. The image's texts say what is allowed; the events
 * say what happened. How a skill begins is in `startSkill.ts`, how it moves in `moveSkill.ts`.
 */
import { builtIn } from "#schema/BuiltInTool.ts"
import type { Capability } from "#schema/Capability.ts"
import type { EventDraft, PayloadOf } from "#schema/Event.ts"
import type { LaneId } from "#schema/Ids.ts"
import { CANCEL_EVENT, ERROR_EVENT, skillState, type SkillSpec, type SkillState } from "#schema/Skill.ts"
import { shownName, ToolName, toWireName } from "#schema/Tool.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { CORE_WRITEBACK } from "#src/shared/session/writtenBack.ts"
import type { ActiveSkill, CoreLane, EdgeLane, LaneMemory, OpenCall, SessionState } from "#src/shared/session/State.ts"
import { accept, type Decision, type Command, reject, type Rejected, type Situation } from "./Command.ts"
import { scriptProblem } from "./skillScript.ts"
import type { SkillBook } from "#src/agent/image/SkillRegistry.ts"

export const SKILL_START = builtIn("choir.skill.start")
export const SKILL_TRANSITION = builtIn("choir.skill.transition")

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
    tool === SKILL_START ? "a skill cannot start another skill" : `its step ${state} does not allow ${shownName(tool)}`
  return { reason: `the skill ${name} is running, and ${why}`, allowed: toldRules(rules) }
}

/** Why the skill of a lane may not use a tool: the tool can do what its contract does not declare, or its agent is not granted. */
export const capabilityRefusal = (
  { skill }: LaneMemory,
  { grants, skills }: Pick<Situation, "grants" | "skills">,
  tool: string,
  needed: ReadonlyArray<Capability>
): Rejected | undefined => {
  const declared = skill === undefined ? undefined : skills.get(skill.name)?.contract?.capabilities
  if (skill === undefined || declared === undefined) return undefined
  const capabilities = needed.filter((each) => !declared.includes(each) || !grants.includes(each))
  return capabilities.length === 0
    ? undefined
    : {
        reason: `the skill ${skill.name} may not use ${shownName(tool)}: it needs ${capabilities.join(", ")}, which is not declared or not granted`,
        denied: { skill: skill.name, capabilities }
      }
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
  memory: EdgeLane | CoreLane,
  { budgets: { skill_retry_budget }, find, skills }: Situation
): { readonly reason: string; readonly goes: boolean } | undefined => {
  const { skill } = memory
  if (skill === undefined) return undefined
  const spec = skills.get(skill.name)
  if (spec === undefined || skillState(spec, skill.state) === undefined)
    return {
      reason: `the agent's image no longer has the state ${skill.state} of the skill ${skill.name}`,
      goes: false
    }
  if (skill.step >= spec.max_steps)
    return { reason: `the skill's limit of ${spec.max_steps} steps (max_steps) is reached`, goes: false }
  const broken = scriptProblem(memory, spec, find)
  if (broken !== undefined) return { reason: broken, goes: true }
  return skill.violations > skill_retry_budget
    ? {
        reason: `the rules of its step ${skill.state} were broken ${skill.violations} times (budgets.skill_retry_budget ${skill_retry_budget})`,
        goes: true
      }
    : undefined
}

/** An event that begins, moves or ends a skill. */
export type SkillDraft = Extract<EventDraft, { readonly event_type: "SkillTransitionCommitted" }>

export const transition = (
  lane: LaneId,
  { name, state, step }: Pick<ActiveSkill, "name" | "state" | "step">,
  more: Pick<PayloadOf<"SkillTransitionCommitted">, "on" | "to"> & Partial<PayloadOf<"SkillTransitionCommitted">>
): SkillDraft => ({
  event_type: "SkillTransitionCommitted",
  lane,
  payload: { skill: name, from: state, step, ...more }
})

/** The skill's own end, at a state that is terminal, by the model's `cancel`, or by what went wrong. */
export const endOf = (spec: SkillSpec, on: string, to: string): PayloadOf<"SkillTransitionCommitted">["ended"] => {
  if (skillState(spec, to)?.terminal !== true) return undefined
  return on === ERROR_EVENT ? "failed" : "completed"
}

/** A failure sends the skill along its state's own error transition, or ends it as failed. */
export const failSkill = (
  state: SessionState,
  { lane }: Extract<Command, { type: "FailSkill" }>,
  situation: Situation
): Decision => {
  const memory = laneOf(state, lane)
  const failed = memory === undefined ? undefined : failure(memory, situation)
  if (memory?.skill === undefined || failed === undefined) return reject("no skill of the lane has failed")
  if (memory.calls.length > 0) return reject("calls of the lane are open")
  const { goes, reason } = failed
  const spec = situation.skills.get(memory.skill.name)
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
