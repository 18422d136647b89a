/** The times at which a plan is due. Pure: nothing here reads a clock. */
import { Cron, type DateTime } from "effect"
import { DAY_MS } from "#src/shared/days.ts"
import { instantOf, wallOf } from "./wallClock.ts"
import { minutesOf, repeatsOf, type Repeats } from "./schedule.ts"
import type { When } from "./When.ts"

const MINUTE_MS = 60_000
/** 29 February is at most eight years away. */
const DAYS_WALKED_MAX = 366 * 8 + 1

const dayOf = (wall_ms: number): number => Math.floor(wall_ms / DAY_MS)

/** The instants of one day of a calendar, in order. Times in a gap are one instant, the first after it. */
const instantsOf = (cron: Cron.Cron, day: number, zone: DateTime.TimeZone): ReadonlyArray<number> => {
  const start = day * DAY_MS
  // A look at the month first: a calendar of one day in four years has thousands of others.
  if (cron.months.size > 0 && !cron.months.has(new Date(start).getUTCMonth() + 1)) return []
  const minutes = minutesOf(cron)
  if (!Cron.match(cron, new Date(start + (minutes[0] ?? 0) * MINUTE_MS))) return []
  const [first, end] = [instantOf(start, zone), instantOf(start + DAY_MS, zone)]
  // Most days have one offset from midnight to midnight, so that their times need no look at the zone.
  if (wallOf(first, zone) === start && end - first === DAY_MS && wallOf(end, zone) === start + DAY_MS)
    return minutes.map((minute) => first + minute * MINUTE_MS)
  return [...new Set(minutes.map((minute) => instantOf(start + minute * MINUTE_MS, zone)))]
}

/** The times of a calendar from an instant, one way or the other, without those of its own day on the other side of it. */
function* walk(cron: Cron.Cron, zone: DateTime.TimeZone, from_ms: number, step: 1 | -1): Generator<number> {
  const start = dayOf(wallOf(from_ms, zone))
  let found = -1
  for (let walked = -1; walked - found < DAYS_WALKED_MAX; walked += 1) {
    const times = instantsOf(cron, start + step * walked, zone)
    if (times.length > 0) found = walked
    for (const at_ms of step === 1 ? times : times.toReversed())
      if (step === 1 ? at_ms > from_ms : at_ms <= from_ms) yield at_ms
  }
}

/** The time with a number from 1, of what repeats from an instant. */
const numbered = (repeats: Exclude<Repeats, { kind: "calendar" }>, zone: DateTime.TimeZone, from_ms: number) => {
  if (repeats.kind === "elapsed") return (number: number) => from_ms + number * repeats.every_ms
  const wall_ms = wallOf(from_ms, zone)
  return (number: number) => instantOf(wall_ms + number * repeats.days * DAY_MS, zone)
}

/** The number of the last time that is not after an instant; 0 where there is none. */
const numberAt = (
  repeats: Exclude<Repeats, { kind: "calendar" }>,
  time: (number: number) => number,
  after_ms: number
) => {
  const every_ms = repeats.kind === "elapsed" ? repeats.every_ms : repeats.days * DAY_MS
  let number = Math.max(0, Math.floor((after_ms - time(0)) / every_ms) - 1)
  while (time(number + 1) <= after_ms) number += 1
  // A clock that changed may have made the guess one too large.
  while (number > 0 && time(number) > after_ms) number -= 1
  return number
}

/** The first time after an instant; undefined where there is none. `from_ms` is when the plan was made: intervals count from there. */
export const nextTime = (
  when: When,
  zone: DateTime.TimeZone,
  from_ms: number,
  after_ms: number
): number | undefined => {
  if (when.kind === "once") return when.at_ms > after_ms ? when.at_ms : undefined
  const repeats = repeatsOf(when, zone)
  if (repeats === undefined) return undefined
  if (repeats.kind === "calendar") {
    const found = walk(repeats.calendar, repeats.zone, after_ms, 1).next()
    return found.done === true ? undefined : found.value
  }
  const time = numbered(repeats, zone, from_ms)
  return time(numberAt(repeats, time, after_ms) + 1)
}

function* backwards(when: When, zone: DateTime.TimeZone, from_ms: number, until_ms: number): Generator<number> {
  if (when.kind === "once") {
    if (when.at_ms <= until_ms) yield when.at_ms
    return
  }
  const repeats = repeatsOf(when, zone)
  if (repeats === undefined) return
  if (repeats.kind === "calendar") {
    yield* walk(repeats.calendar, repeats.zone, until_ms, -1)
    return
  }
  const time = numbered(repeats, zone, from_ms)
  for (let number = numberAt(repeats, time, until_ms); number > 0; number -= 1) yield time(number)
}

/** The times after `after_ms` up to and with `until_ms`, the newest first, at most `count_max`. */
export const passedTimes = (
  when: When,
  zone: DateTime.TimeZone,
  from_ms: number,
  after_ms: number,
  until_ms: number,
  count_max: number
): ReadonlyArray<number> => {
  const found: Array<number> = []
  for (const at_ms of backwards(when, zone, from_ms, until_ms)) {
    if (at_ms <= after_ms || found.length >= count_max) break
    // Two times of the wall in one gap are one instant.
    if (found.at(-1) !== at_ms) found.push(at_ms)
  }
  return found
}
