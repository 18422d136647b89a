/** A schedule of a plan, taken apart: how long its interval is, or on which days and at which minutes it is due. */
import { Cron, DateTime, Option, Result } from "effect"
import { readSchedule } from "#src/shared/image/skillSchedule.ts"
import { DAY_MS } from "#src/shared/days.ts"
import type { When } from "./When.ts"

/** The shortest interval of a plan. */
export const PLAN_EVERY_MINUTES_MIN = 10
/** The furthest that a plan may lie ahead. */
export const PLAN_YEARS_AHEAD_MAX = 5

const UTC = DateTime.zoneMakeNamedUnsafe("UTC")
const MINUTE_MS = 60_000
const UNIT_MS = { minute: MINUTE_MS, hour: 60 * MINUTE_MS }
const DAY_MINUTES = 1440
const EVERY = /^every (?:([1-9]\d{0,6}) )?(minute|hour|day)s?$/u

export type Repeats =
  /** Elapsed time, whatever the clocks do. */
  | { readonly kind: "elapsed"; readonly every_ms: number }
  /** Days at the time of day at which the plan was made. */
  | { readonly kind: "days"; readonly days: number }
  /** Days and minutes on the wall of a zone; the calendar itself is in UTC. */
  | { readonly kind: "calendar"; readonly calendar: Cron.Cron; readonly zone: DateTime.TimeZone }

export type Schedule = Exclude<When, { readonly kind: "once" }>

/** A schedule taken apart, or undefined for a text that is not one. */
export const repeatsOf = ({ kind, schedule }: Schedule, zone: DateTime.TimeZone): Repeats | undefined => {
  if (kind === "cron") {
    const calendar = Option.getOrUndefined(Result.getSuccess(Cron.parse(schedule, UTC)))
    const isFive = schedule.trim().split(/\s+/u).length === 5
    return calendar === undefined || !isFive ? undefined : { kind: "calendar", calendar, zone }
  }
  const [, count = "1", unit] = EVERY.exec(schedule) ?? []
  if (unit === "day") return { kind: "days", days: Number(count) }
  if (unit !== undefined) return { kind: "elapsed", every_ms: Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS] }
  const read = readSchedule(schedule)
  if (Result.isFailure(read)) return undefined
  const { days, hours, minutes, months, tz, weekdays } = read.success.times(zone)
  const calendar = Cron.make({ days, hours, minutes, months, weekdays, tz: UTC })
  return { kind: "calendar", calendar, zone: Option.getOrElse(tz, () => zone) }
}

const all = (from: number, until: number) => Array.from({ length: until - from }, (_, index) => from + index)

/** The minutes of a day at which a calendar is due, in order. */
export const minutesOf = ({ hours, minutes }: Cron.Cron): ReadonlyArray<number> => {
  const [found, within] = [hours.size > 0 ? [...hours] : all(0, 24), minutes.size > 0 ? [...minutes] : all(0, 60)]
  return found.flatMap((hour) => within.map((minute) => hour * 60 + minute)).toSorted((a, b) => a - b)
}

const isTooOften = (repeats: Repeats): boolean => {
  if (repeats.kind === "days") return false
  if (repeats.kind === "elapsed") return repeats.every_ms < PLAN_EVERY_MINUTES_MIN * MINUTE_MS
  const minutes = minutesOf(repeats.calendar)
  // The first of the next day follows the last.
  return minutes.some(
    (at, index) => (minutes[index + 1] ?? DAY_MINUTES + (minutes[0] ?? 0)) - at < PLAN_EVERY_MINUTES_MIN
  )
}

const isTooSeldom = (repeats: Repeats): boolean => {
  const most_ms = PLAN_YEARS_AHEAD_MAX * 365 * DAY_MS
  return repeats.kind !== "calendar" && (repeats.kind === "days" ? repeats.days * DAY_MS : repeats.every_ms) > most_ms
}

/** A schedule that plans may have, or what is wrong with it. */
export const checkSchedule = (schedule: Schedule, zone: DateTime.TimeZone): Result.Result<Schedule, string> => {
  const repeats = repeatsOf(schedule, zone)
  if (repeats === undefined)
    return Result.fail(
      `"${schedule.schedule}" is not a schedule: write "every weekday at 8:00", "every 3 days" or "0 8 * * 1-5".`
    )
  if (isTooOften(repeats))
    return Result.fail(`A plan comes at most every ${PLAN_EVERY_MINUTES_MIN} minutes: write a longer interval.`)
  if (isTooSeldom(repeats))
    return Result.fail(`A plan comes within ${PLAN_YEARS_AHEAD_MAX} years: write a shorter interval.`)
  return Result.succeed(schedule)
}
