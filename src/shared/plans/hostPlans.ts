/** The inputs and answers of the host tools of plans, as an agent and choird exchange them. */
import { Schema } from "effect"
import { CallId, InboxId } from "#schema/Ids.ts"
import { PLAN_TEXT_CHARS_MAX, PlanId } from "#schema/Plan.ts"
import { Sources } from "#schema/Source.ts"
import { TimeZone } from "#schema/TimeZone.ts"

/** Characters of the words for a time that a model writes. */
const PLAN_WHEN_CHARS_MAX = 200

/** choir.plan.set as its model gives it. */
export const PlanWords = Schema.Struct({
  when: Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(PLAN_WHEN_CHARS_MAX)),
  text: Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(PLAN_TEXT_CHARS_MAX)),
  zone: Schema.optionalKey(TimeZone)
})

/** choir.plan.set. */
export const PlanSetInput = Schema.Struct({
  ...PlanWords.fields,
  /** Whether the lane that writes had read text from outside, and where that came from. */
  untrusted: Schema.Boolean,
  sources: Schema.optionalKey(Sources),
  /** The message that the lane works for: the plan goes to its chat. */
  inbox_id: Schema.optionalKey(InboxId),
  call_id: CallId
})
export type PlanSetInput = typeof PlanSetInput.Type

/** A plan in words for a model. */
export const PlanLine = Schema.Struct({
  plan_id: PlanId,
  /** Its times. */
  when: Schema.String,
  /** Its next time, in words and in the plan's zone; absent of one that is paused or over. */
  next: Schema.optionalKey(Schema.String),
  zone: Schema.String,
  text: Schema.String,
  /** `open` or `paused`. */
  state: Schema.String,
  /** How its newest time went. */
  last: Schema.optionalKey(Schema.String)
})
export type PlanLine = typeof PlanLine.Type

/** The answer of choir.plan.set; `doubt` says what was unclear in the words for the time. */
export const PlanSetAnswer = Schema.Struct({ plan: PlanLine, doubt: Schema.optionalKey(Schema.String) })
export type PlanSetAnswer = typeof PlanSetAnswer.Type

/** choir.plan.list: what the one may see at whose message the lane works. */
export const PlanListInput = Schema.Struct({ inbox_id: Schema.optionalKey(InboxId) })
export const PlanListAnswer = Schema.Struct({
  plans: Schema.Array(PlanLine),
  /** Where text of them came from, if that is outside. */
  sources: Sources
})

/** choir.plan.cancel, of what the same one may see. */
export const PlanCancelInput = Schema.Struct({ ...PlanListInput.fields, plan_id: PlanId, untrusted: Schema.Boolean })
export const PlanCancelAnswer = Schema.Struct({ plan: PlanLine })
