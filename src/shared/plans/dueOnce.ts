/** The one time that found words name. */
import { type DateTime, Result } from "effect"
import { DAY_MS } from "#src/shared/days.ts"
import { clockText, DEFAULT_TIME } from "./doubts.ts"
import type { Duration } from "./durations.ts"
import type { FoundWords } from "./foundWords.ts"
import type { ClockTime } from "./moments.ts"
import { PLAN_YEARS_AHEAD_MAX } from "./schedule.ts"
import { instantOf, wallOf } from "./wallClock.ts"
import type { When } from "./When.ts"

/** The instant at which somebody writes, and the time zone of the words. */
export interface At {
  readonly now_ms: number
  readonly zone: DateTime.TimeZone
}

const MINUTE_MS = 60_000
const WEEK_DAYS = 7
const DAYS_AHEAD_MAX = PLAN_YEARS_AHEAD_MAX * 366
const MONTHS_AHEAD_MAX = PLAN_YEARS_AHEAD_MAX * 12

const monthsLater = (wall_ms: number, months: number): number => {
  const date = new Date(wall_ms)
  const day = date.getUTCDate()
  date.setUTCDate(1)
  date.setUTCMonth(date.getUTCMonth() + months)
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  return date.setUTCDate(Math.min(day, last))
}

const timeOfDay = ({ hour, minute, second }: ClockTime) => ((hour * 60 + minute) * 60 + second) * 1000

const atDuration = (
  { days, elapsed_ms, months }: Duration,
  time: ClockTime | undefined,
  { now_ms, zone }: At
): number => {
  if (days === 0 && months === 0) return now_ms + elapsed_ms
  // JavaScript has no date for the largest numbers.
  if (days > DAYS_AHEAD_MAX || months > MONTHS_AHEAD_MAX) return Number.POSITIVE_INFINITY
  const moved = monthsLater(wallOf(now_ms, zone), months) + days * DAY_MS
  const wall = time === undefined ? moved : Math.floor(moved / DAY_MS) * DAY_MS + timeOfDay(time)
  return instantOf(wall, zone) + elapsed_ms
}

const atMoment = ({ date, offset, time }: FoundWords, { now_ms, zone }: At): number => {
  const instant = (wall_ms: number) => (offset === undefined ? instantOf(wall_ms, zone) : wall_ms - offset * MINUTE_MS)
  const ofDay = timeOfDay(time ?? DEFAULT_TIME)
  const wall_now = offset === undefined ? wallOf(now_ms, zone) : now_ms + offset * MINUTE_MS
  if (date === undefined) {
    const today = Math.floor(wall_now / DAY_MS) * DAY_MS + ofDay
    return instant(today) > now_ms ? instant(today) : instant(today + DAY_MS)
  }
  const day = (year: number) => Date.UTC(year, date.month - 1, date.day) + ofDay
  if (date.next === "year") {
    // Not every year has a 29 February.
    const first = new Date(wall_now).getUTCFullYear()
    const years = Array.from({ length: 9 }, (_, later) => first + later)
    const isDue = (year: number) => new Date(day(year)).getUTCDate() === date.day && instant(day(year)) > now_ms
    return instant(day(years.find(isDue) ?? first))
  }
  let wall = day(date.year)
  while (date.next === "week" && instant(wall) <= now_ms) wall += WEEK_DAYS * DAY_MS
  return instant(wall)
}

/** The time, or what is wrong with it. */
export const dueOnce = (found: FoundWords, at: At): Result.Result<When, string> => {
  const at_ms = found.duration === undefined ? atMoment(found, at) : atDuration(found.duration, found.time, at)
  if (at_ms > at.now_ms + DAYS_AHEAD_MAX * DAY_MS)
    return Result.fail(`That is more than ${PLAN_YEARS_AHEAD_MAX} years ahead: write an earlier date.`)
  if (at_ms > at.now_ms) return Result.succeed({ kind: "once", at_ms })
  return Result.fail(
    found.date !== undefined && found.time === undefined
      ? `It is past ${clockText(DEFAULT_TIME)} on that day: write the time too, such as "today 18:00".`
      : "That time has passed: write one that is still to come."
  )
}
