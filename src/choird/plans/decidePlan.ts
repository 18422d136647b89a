/** The decision about a plan at an instant: say it, pass its times over, or neither. Pure. */
import type { DateTime } from "effect"
import { nextTime, passedTimes } from "#src/shared/plans/planTimes.ts"
import type { When } from "#src/shared/plans/When.ts"

/** A repeated reminder that is older than this is not said any more; one that happens once always is. */
const PLAN_LATE_MS_MAX = 6 * 3_600_000
/** Times that passed are counted up to here: choird may have been off for years. */
export const PLAN_MISSED_MAX = 100

/** A plan that waits. */
export interface Waiting {
  readonly when: When
  readonly zone: DateTime.TimeZone
  /** When it was made; intervals count from there. */
  readonly from_ms: number
  readonly next_ms: number
}

export interface PlanDecision {
  /** `said`: now. `missed`: all that passed is too old. */
  readonly state: "said" | "missed"
  /** The newest time that has passed. */
  readonly slot_ms: number
  /** Times that passed and are not said. */
  readonly missed: number
  /** The time after now; absent where there is none. */
  readonly next_ms: number | undefined
}

/** Of several times that passed, the newest is said for all of them. Undefined where nothing is due. */
export const decidePlan = ({ from_ms, next_ms, when, zone }: Waiting, now_ms: number): PlanDecision | undefined => {
  if (next_ms > now_ms) return undefined
  if (when.kind === "once") return { state: "said", slot_ms: next_ms, missed: 0, next_ms: undefined }
  const [slot_ms = next_ms, ...earlier] = passedTimes(when, zone, from_ms, next_ms - 1, now_ms, PLAN_MISSED_MAX)
  const isLate = now_ms - slot_ms > PLAN_LATE_MS_MAX
  return {
    state: isLate ? "missed" : "said",
    slot_ms,
    missed: earlier.length + (isLate ? 1 : 0),
    next_ms: nextTime(when, zone, from_ms, now_ms)
  }
}
