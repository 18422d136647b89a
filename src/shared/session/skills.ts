/** The effects of events on the skill that a lane runs. Nothing here knows the text of a skill: each event holds what follows from it. */
import { Result } from "effect"
import type { EventOf, PayloadOf } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { STATE_FIELDS_MAX } from "#schema/SkillContract.ts"
import { coreOf, type Folded, inWindow, laneOf, withCore, withLane } from "./lanes.ts"
import type { ActiveSkill, OpenCall, SessionState } from "./State.ts"

/** The word with which the control plane sends a result back. No skill can have it: a model's words hold no colon. */
export const RETRY_EVENT = "control:retry"

type Fields = ActiveSkill["fields"]

/** With the newest values of some fields; the newest STATE_FIELDS_MAX stay. */
const withFields = (fields: Fields, names: ReadonlyArray<string>, rev: number): Fields =>
  names.length === 0
    ? fields
    : [...fields.filter(({ name }) => !names.includes(name)), ...names.map((name) => ({ name, rev }))].slice(
        -STATE_FIELDS_MAX
      )

const begun = ({ payload, rev }: EventOf<"SkillTransitionCommitted">): ActiveSkill => ({
  name: payload.skill,
  state: payload.to,
  step: 0,
  violations: 0,
  violation_rev: 0,
  started_rev: rev,
  entered_rev: rev,
  fields: withFields([], Object.keys(payload.writes ?? {}), rev),
  attempt: 0,
  judged_rev: 0
})

/** A result that is sent back stays where it was, and all that it has used up stays counted. */
const retried = (skill: ActiveSkill, rev: number): ActiveSkill => ({
  ...skill,
  entered_rev: rev,
  attempt: skill.attempt + 1
})

const moved = (skill: ActiveSkill, { payload, rev }: EventOf<"SkillTransitionCommitted">): ActiveSkill => {
  if (payload.on === RETRY_EVENT) return retried(skill, rev)
  const written = [...Object.keys(payload.writes ?? {}), ...(payload.output === undefined ? [] : [payload.from])]
  return {
    ...skill,
    state: payload.to,
    violations: 0,
    violation_rev: 0,
    entered_rev: rev,
    fields: withFields(skill.fields, written, rev)
  }
}

/** A job that saw its skill end may say something other than what it said last. */
const ended = (state: SessionState, lane: LaneId, rev: number): SessionState => {
  const core = coreOf(state, lane)
  return core === undefined
    ? state
    : withCore(state, { ...core, skill_end_rev: rev, output: { ...core.output, isSuperseded: true } })
}

export const skillTransition = (state: SessionState, event: EventOf<"SkillTransitionCommitted">): Folded => {
  const { lane, payload, rev } = event
  const memory = laneOf(state, lane)
  if (memory === undefined) return Result.fail(`no job runs on ${lane}`)
  const { skill } = memory
  if (payload.signal_id !== undefined && payload.from !== "")
    return Result.fail("only the beginning of a skill is ordered")
  if (payload.from === "")
    return skill === undefined
      ? Result.succeed(inWindow(withLane(state, lane, { skill: begun(event) }), lane, rev))
      : Result.fail(`the skill ${skill.name} is running on ${lane}`)
  // Before skills ran, an event could name one that nobody had begun; it changes nothing.
  if (skill === undefined) return Result.succeed(state)
  if (skill.name !== payload.skill || skill.state !== payload.from)
    return Result.fail(`${skill.name} is in ${skill.state}, not ${payload.skill} in ${payload.from}`)
  if (skill.step !== payload.step) return Result.fail(`${skill.name} took ${skill.step} steps, not ${payload.step}`)
  if ((payload.attempt ?? skill.attempt) !== skill.attempt)
    return Result.fail(`${skill.name} is in attempt ${skill.attempt}, not ${payload.attempt}`)
  if (payload.on === RETRY_EVENT && (payload.to !== payload.from || payload.ended !== undefined))
    return Result.fail(`${skill.name} is sent back and does not stay in ${payload.from}`)
  if (payload.ended === undefined && payload.to === "") return Result.fail(`${skill.name} continues in no state`)
  const next = payload.ended === undefined ? moved(skill, event) : undefined
  const seen = inWindow(withLane(state, lane, { skill: next }), lane, rev)
  return Result.succeed(next === undefined ? ended(seen, lane, rev) : seen)
}

const violated = (skill: ActiveSkill, output_rev: number): ActiveSkill =>
  output_rev > skill.entered_rev && output_rev > skill.violation_rev
    ? { ...skill, violations: skill.violations + 1, violation_rev: output_rev }
    : skill

/** A model call is a step of the skill. A job that ends by its words breaks the rules: only a terminal state ends a skill. */
export const afterOutput = (
  state: SessionState,
  lane: LaneId,
  { error, tool_calls }: PayloadOf<"ModelOutput">,
  rev: number
): SessionState => {
  const skill = laneOf(state, lane)?.skill
  if (skill === undefined) return state
  const counted = { ...skill, step: skill.step + 1 }
  const isFinish = lane !== EDGE && error === undefined && tool_calls.length === 0
  return withLane(state, lane, { skill: isFinish ? violated(counted, rev) : counted })
}

/** A verdict on a result of the lane's skill, which the next transition reads. */
export const afterVerdict = (state: SessionState, lane: LaneId, rev: number): SessionState => {
  const skill = laneOf(state, lane)?.skill
  return skill === undefined ? state : withLane(state, lane, { skill: { ...skill, judged_rev: rev } })
}

/** A refusal that says what is allowed is one of the skill's. A call from before the present state breaks no rule of it. */
export const afterResult = (
  skill: ActiveSkill | undefined,
  { output_rev }: OpenCall,
  { allowed, status }: PayloadOf<"ToolResultCommitted">
): ActiveSkill | undefined =>
  skill !== undefined && status === "rejected" && allowed !== undefined ? violated(skill, output_rev) : skill
