/** A plan in words, for chats and models. Pure. */
import type { DateTime } from "effect"
import type { PlanSlot, PlanSummary } from "#schema/Plan.ts"
import type { PlanLine } from "#src/shared/plans/hostPlans.ts"
import { timeText, whenText } from "#src/shared/plans/whenText.ts"
import { whenOf } from "./planRows.ts"
import { UTC, zoneOfPlan } from "./planZone.ts"

/** How a time went. */
const slotText = ({ at, delivered_at, failure, missed, state }: PlanSlot, zone: DateTime.TimeZone, now_ms: number) => {
  const due = timeText(Date.parse(at), zone, now_ms)
  if (state === "skipped") return `skipped ${due}`
  if (state === "missed") return `missed ${due}, while Choir was off`
  if (failure !== null) return `not delivered ${due}: ${failure}`
  if (delivered_at === null) return `waits for its chat since ${due}`
  return missed > 0 ? `delivered ${due}, after ${missed} that passed while Choir was off` : `delivered ${due}`
}

export const planLine = (plan: PlanSummary, now_ms: number): PlanLine => {
  const { last, next_at, plan_id, state, text } = plan
  const zone = zoneOfPlan(plan) ?? UTC
  const next = next_at === null || state !== "open" ? {} : { next: timeText(Date.parse(next_at), zone, now_ms) }
  return {
    plan_id,
    when: whenText(whenOf(plan), zone, now_ms),
    ...next,
    zone: zone === UTC ? "UTC" : plan.zone,
    text,
    state,
    ...(last === null ? {} : { last: slotText(last, zone, now_ms) })
  }
}
