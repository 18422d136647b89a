/** The plans of an agent: what happens at a time by itself, kept by choird. */
import { Schema } from "effect"
import { AgentId, ResourceName } from "./Ids.ts"
import { TimeZone } from "./TimeZone.ts"

/** Plans of an agent that are open or paused. */
export const PLANS_OPEN_MAX = 64
/** Plans that are made for an agent within a day, those that ended included. */
export const PLANS_MADE_A_DAY_MAX = 200
/** Characters of a plan's words. */
export const PLAN_TEXT_CHARS_MAX = 2000
/** Characters of the words for a time, with or without the text beside them. */
export const PLAN_WORDS_CHARS_MAX = 4000

/** The number of a plan, counted by agent. */
export const PlanId = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2_147_483_647 })).pipe(
  Schema.brand("PlanId")
)
export type PlanId = typeof PlanId.Type

export const PlanKind = Schema.Literals(["once", "every", "cron"])
export type PlanKind = typeof PlanKind.Type

/** `open`: it waits for its next time. `ended`: its last time is over, or its agent is gone. */
export const PlanState = Schema.Literals(["open", "paused", "ended", "removed"])
export type PlanState = typeof PlanState.Type

/** `said`: the message was stored for its chat. `skipped`: a person left this time out. `missed`: it was too late. */
export const SlotState = Schema.Literals(["said", "skipped", "missed"])
export type SlotState = typeof SlotState.Type

const Instant = Schema.String

/** A time of a plan that is over. */
export const PlanSlot = Schema.Struct({
  at: Instant,
  state: SlotState,
  /** Times before it that passed unsaid while choird was off. */
  missed: Schema.Natural,
  /** When the chat's messenger took the message; null while it waits, and where it was given up. */
  delivered_at: Schema.NullOr(Instant),
  /** Why the messenger will never take it. */
  failure: Schema.NullOr(Schema.String)
})
export type PlanSlot = typeof PlanSlot.Type

/** A plan as lists show it. Instants are ISO 8601 in UTC. */
export const PlanSummary = Schema.Struct({
  agent_id: AgentId,
  plan_id: PlanId,
  kind: PlanKind,
  /** The instant of a plan that happens once; else its times in words, or as a cron expression. */
  schedule: Schema.String,
  zone: Schema.String,
  text: Schema.String,
  /** The chat that gets it. */
  dm: ResourceName,
  state: PlanState,
  /** Why it is paused or has ended, where no person did that. */
  reason: Schema.NullOr(Schema.String),
  next_at: Schema.NullOr(Instant),
  /** `agent:<id>`, `gateway:<name>/<dm>` or `operator`. */
  made_by: Schema.String,
  created_at: Instant,
  last: Schema.NullOr(PlanSlot)
})
export type PlanSummary = typeof PlanSummary.Type

/** A new plan in a person's words. */
export const NewPlan = Schema.Struct({
  /** Such as `20m`, `tomorrow 9:00`, `every monday 8:00`, `2027-03-01 18:00` or `0 8 * * 1-5`. */
  when: Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(PLAN_WORDS_CHARS_MAX)),
  text: Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(PLAN_TEXT_CHARS_MAX)),
  /** The chat that gets it; absent: where the agent's person wrote last. */
  dm: Schema.optionalKey(ResourceName),
  /** The zone of the words; absent: the chat's, else the home's. */
  zone: Schema.optionalKey(TimeZone)
})
export type NewPlan = typeof NewPlan.Type
