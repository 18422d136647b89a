/** The decision about a schedule at an instant: run its newest time, skip it, or neither. Pure. */
import type { DateTime } from "effect"
import { type SkillSchedule, timesBetween } from "#src/shared/image/skillSchedule.ts"

/** A time that passed while nobody could run the skill is made up for until it is this old. */
export const SLOT_LATE_MS_MAX = 6 * 3_600_000
/** Times that passed are counted up to here: an agent may have been off for years. */
export const SLOTS_MISSED_MAX = 100

/** The newest time of a skill that has a row. */
export interface LastSlot {
  readonly slot_ms: number
  /** The schedules as they were written then. */
  readonly schedule: string
}

export type SlotDecision =
  /** The schedule is new, or another one than before: times up to this instant do not count. */
  | { readonly type: "begin"; readonly slot_ms: number }
  /** The skill is due. `missed` times before it are too old to be made up for. */
  | { readonly type: "run"; readonly slot_ms: number; readonly missed: number }
  /** All that passed is too old. */
  | { readonly type: "skip"; readonly slot_ms: number; readonly missed: number }

/** Schedules as one text, by which a changed one is recognized. */
export const scheduleText = (schedules: ReadonlyArray<SkillSchedule>): string =>
  schedules.map(({ text }) => text).join("; ")

/** Of several times that passed, the newest is run for all of them. Undefined where nothing is due. */
export const decideSlot = (
  schedules: ReadonlyArray<SkillSchedule>,
  zone: DateTime.TimeZone,
  last: LastSlot | undefined,
  now_ms: number
): SlotDecision | undefined => {
  if (last?.schedule !== scheduleText(schedules))
    return { type: "begin", slot_ms: Math.max(now_ms, last?.slot_ms ?? now_ms) }
  const times = timesBetween(schedules, zone, last.slot_ms, now_ms, SLOTS_MISSED_MAX)
  const [newest] = times
  if (newest === undefined) return undefined
  const missed = times.filter((slot_ms) => isLate(slot_ms, now_ms)).length
  return { type: isLate(newest, now_ms) ? "skip" : "run", slot_ms: newest, missed }
}

/** Whether a time is too old to be made up for. */
export const isLate = (slot_ms: number, now_ms: number): boolean => now_ms - slot_ms > SLOT_LATE_MS_MAX
