/**
 * How a skill moves: along the transitions of its states, with results that keep to its scopes and hold its assertions. A result that does not is
 * sent back with the reason, as often as the contract says, and then the skill fails.
 */
import { Result, type Schema } from "effect"
import type { EventDraft, PayloadOf } from "#schema/Event.ts"
import { CANCEL_EVENT, ERROR_EVENT, skillState, type SkillSpec, type SkillState } from "#schema/Skill.ts"
import { retriesOf, schemaOf, type SkillContract } from "#schema/SkillContract.ts"
import { valueProblem } from "#src/shared/image/jsonSchema.ts"
import { isScript } from "#src/shared/image/scriptStates.ts"
import type { StateValues } from "#src/shared/image/statePath.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { RETRY_EVENT } from "#src/shared/session/skills.ts"
import type { ActiveSkill, OpenCall, SessionState } from "#src/shared/session/State.ts"
import {
  accept,
  type Command,
  controlBatch,
  type Decision,
  type Find,
  refuse,
  reject,
  type Situation
} from "./Command.ts"
import { endOf, skillRules, toldRules, transition } from "./decideSkills.ts"
import { assertionsOf } from "./skillAssertions.ts"
import { needsJudge, verdictOf, verdictProblem } from "./skillVerdict.ts"
import { scopesOf, stateValues, writesProblem } from "./skillState.ts"

type Move = Extract<Command, { type: "MoveSkill" }>
type Payload = PayloadOf<"SkillTransitionCommitted">
type Allowed = NonNullable<PayloadOf<"ToolResultCommitted">["allowed"]>

/** A transition that a state has, within the skill that a lane runs. */
interface Step {
  readonly move: Move
  readonly call: OpenCall
  readonly skill: ActiveSkill
  readonly spec: SkillSpec
  readonly from: SkillState
  readonly allowed: Allowed
  readonly find: Find
}

/** The proofs of a result that its transition keeps, whether it was taken or not. */
type Evidence = Pick<Payload, "asserted" | "confidence" | "judged">

/** The transition, and the call that asked for it as done. The model gets `output` at the skill's end. */
const done = (
  { move: { call_id, lane, on }, skill }: Step,
  to: string,
  ended: Payload["ended"],
  more: Partial<Payload>,
  output?: Schema.Json
): Decision => {
  const summary =
    ended === "cancelled" ? `the skill ${skill.name} was cancelled` : `${skill.name}: ${skill.state} to ${to}`
  const told =
    ended === undefined
      ? { skill: skill.name, step: to }
      : { skill: skill.name, ended, ...(output === undefined ? {} : { output }) }
  const [committed, result] = controlBatch(lane, call_id, summary, told)
  return accept(
    committed,
    transition(lane, skill, { on, to, ...more, ...(ended === undefined ? {} : { ended }) }),
    result
  )
}

/** The end of a call whose result was not taken, around the transition that follows from that. */
const refused = ({ move: { call_id, lane } }: Step, moved: EventDraft, summary: string): Decision =>
  accept({ event_type: "ToolCallCommitted", lane, payload: { call_id, locks: [] } }, moved, {
    event_type: "ToolResultCommitted",
    lane,
    payload: { call_id, status: "error", summary, duration_ms: 0 }
  })

/** The skill takes its state's `error`, or ends as failed. */
const failed = (step: Step, reason: string, evidence: Evidence): Decision => {
  const { from, move, skill, spec } = step
  const handler = from.transitions.find(({ on }) => on === ERROR_EVENT)
  const to = handler?.to ?? ""
  const ended = handler === undefined ? "failed" : endOf(spec, ERROR_EVENT, to)
  const payload = { on: ERROR_EVENT, to, reason, attempt: skill.attempt, ...evidence }
  const moved = transition(move.lane, skill, { ...payload, ...(ended === undefined ? {} : { ended }) })
  return refused(step, moved, reason)
}

/** A result that is not taken: the step is done again with the reason, while attempts are left. */
const sentBack = (step: Step, contract: SkillContract, problem: string, evidence: Evidence): Decision => {
  const { move, skill } = step
  const attempts = 1 + retriesOf(contract)
  const reason = `attempt ${skill.attempt + 1} of ${attempts} was rejected: ${problem}`
  if (skill.attempt + 1 >= attempts) return failed(step, reason, evidence)
  // Held apart from the fields of STATE, which keep what they had.
  const kept = move.writes === undefined ? {} : { output: move.writes }
  const payload = { on: RETRY_EVENT, to: skill.state, reason, attempt: skill.attempt, ...kept, ...evidence }
  return refused(step, transition(move.lane, skill, payload), reason)
}

/** A result that breaks the skill's rules. The runtime cannot correct its own script, so that the script fails. */
const broken = (step: Step, reason: string): Decision =>
  isScript(step.spec) ? failed(step, reason, {}) : refuse(reason, step.allowed)

/** The newest verdict on this very result. */
const verdictOn = ({ call, find, skill }: Step) => {
  const event = skill.judged_rev > call.output_rev ? find(skill.judged_rev) : undefined
  return event?.event_type === "ModelOutput" && event.payload.judges === call.call_id ? event.payload : undefined
}

/** The decision on a result that its contract routes to a judge. */
const judged = (
  step: Step,
  contract: SkillContract,
  evidence: Evidence,
  take: (more: Evidence) => Decision
): Decision => {
  const { confidence_threshold: threshold = 1 } = contract
  const answer = verdictOn(step)
  if (answer === undefined)
    return Result.fail({ reason: "a judge has to look at the result first", awaits_verdict: true })
  const verdict = verdictOf(answer)
  if (verdict.type === "outage") return failed(step, `the judge could not be asked: ${verdict.problem}`, evidence)
  const score = verdict.type === "score" ? verdict.score : 0
  const more = { ...evidence, judged: { score, model: answer.model, call_id: answer.call_id } }
  const problem = verdictProblem(verdict, threshold)
  return problem === undefined ? take(more) : sentBack(step, contract, problem, more)
}

const only = (values: StateValues, names: ReadonlyArray<string>): StateValues =>
  Object.fromEntries(Object.entries(values).filter(([name]) => names.includes(name)))

/** A step of a skill with a contract: its writes, its assertions, and at the end the output and the judge. */
const withContract = (step: Step, contract: SkillContract, to: string): Decision => {
  const { find, move, skill, spec } = step
  const { confidence, on, output, writes = {} } = move
  if (output !== undefined) return broken(step, `the skill ${skill.name} has a STATE: put results into writes`)
  const before = stateValues(skill, find)
  const scopes = scopesOf(spec, skill.state) ?? { read: [], write: [] }
  const problem = writesProblem(spec, scopes, writes, before)
  if (problem !== undefined) return broken(step, problem)
  const values = { ...before, ...writes }
  const ended = endOf(spec, on, to)
  const result = only(values, contract.state_write)
  const misfit =
    ended === "completed" && spec.output_schema !== undefined
      ? valueProblem(schemaOf(spec.output_schema), result)
      : undefined
  if (misfit !== undefined) return broken(step, `the output does not fit the skill ${skill.name}: ${misfit}`)
  const { failed: unmet, outcomes } = assertionsOf(spec, on, to, values)
  const evidence: Evidence = {
    ...(outcomes.length === 0 ? {} : { asserted: outcomes }),
    ...(confidence === undefined ? {} : { confidence })
  }
  if (unmet !== undefined) return sentBack(step, contract, unmet, evidence)
  const written = Object.keys(writes).length === 0 ? {} : { writes }
  const take = (more: Evidence) => {
    const payload = { ...written, attempt: skill.attempt, ...more }
    return ended === "completed"
      ? done(step, to, ended, { ...payload, output: result }, result)
      : done(step, to, ended, payload)
  }
  return ended === "completed" && needsJudge(contract, move) ? judged(step, contract, evidence, take) : take(evidence)
}

/** A step of a skill without one: the output of its last state must fit. */
const withoutContract = (step: Step, to: string): Decision => {
  const { allowed, move, skill, spec } = step
  const { confidence, judge_blocks, on, output, writes } = move
  if (writes !== undefined || confidence !== undefined || judge_blocks !== undefined)
    return refuse(`the skill ${skill.name} has no STATE: put results into output`, allowed)
  const ended = endOf(spec, on, to)
  const problem =
    ended === "completed" && spec.output_schema !== undefined
      ? valueProblem(schemaOf(spec.output_schema), output ?? {})
      : undefined
  if (problem !== undefined) return refuse(`the output does not fit the skill ${skill.name}: ${problem}`, allowed)
  return done(step, to, ended, output === undefined ? {} : { output })
}

export const moveSkill = (state: SessionState, move: Move, { find, skills }: Situation): Decision => {
  const { call_id, lane, on, output } = move
  const memory = laneOf(state, lane)
  const skill = memory?.skill
  const call = memory?.calls.find((open) => open.call_id === call_id)
  if (memory === undefined || skill === undefined || call === undefined)
    return reject("no skill is running on this lane")
  if (call.output_rev < skill.entered_rev)
    return reject(`the skill is already in its step ${skill.state}; make one transition at a time`)
  const spec = skills.get(skill.name)
  const from = spec === undefined ? undefined : skillState(spec, skill.state)
  const allowed = toldRules(skillRules(memory, skills) ?? { tools: [], transitions: [] })
  if (spec === undefined || from === undefined) return refuse(`the skill ${skill.name} is not in the image`, allowed)
  const step: Step = { move, call, skill, spec, from, allowed, find }
  if (on === CANCEL_EVENT && spec.interruptible) {
    const left = output === undefined || spec.contract !== undefined ? {} : { output }
    return done(step, "", "cancelled", left)
  }
  const taken = from.transitions.find((known) => known.on === on)
  if (taken === undefined)
    return refuse(`the step ${skill.state} of the skill ${skill.name} has no transition ${on.slice(0, 64)}`, allowed)
  return spec.contract === undefined ? withoutContract(step, taken.to) : withContract(step, spec.contract, taken.to)
}
