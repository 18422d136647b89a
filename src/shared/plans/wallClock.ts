/**
 * The clock on the wall of a time zone, as milliseconds that count its days and hours as if they were UTC: so a day is always 24 hours, and days are
 * added without a thought of clocks that change.
 */
import { DateTime } from "effect"

const HOUR_MS = 3_600_000
/** No zone is further behind UTC, or further before it. */
const BEHIND_MS = 12 * HOUR_MS
const BEFORE_MS = 14 * HOUR_MS

const offsetAt = (at_ms: number, zone: DateTime.TimeZone): number =>
  DateTime.zonedOffset(DateTime.makeZonedUnsafe(at_ms, { timeZone: zone }))

export const wallOf = (at_ms: number, zone: DateTime.TimeZone): number => at_ms + offsetAt(at_ms, zone)

/** The first instant of a span at which the zone has the offset of the span's end. */
const changeWithin = (from_ms: number, until_ms: number, zone: DateTime.TimeZone): number => {
  const after = offsetAt(until_ms, zone)
  let [before_ms, at_ms] = [from_ms, until_ms]
  while (at_ms - before_ms > 1) {
    const middle = Math.floor((before_ms + at_ms) / 2)
    if (offsetAt(middle, zone) === after) at_ms = middle
    else before_ms = middle
  }
  return at_ms
}

/** The instant at which the wall shows a time: the first of two, or the first instant after a gap that swallows it. */
export const instantOf = (wall_ms: number, zone: DateTime.TimeZone): number => {
  const earlier = offsetAt(wall_ms - BEFORE_MS, zone)
  const later = offsetAt(wall_ms + BEHIND_MS, zone)
  if (earlier === later) return wall_ms - earlier
  const [first, second] = [wall_ms - Math.max(earlier, later), wall_ms - Math.min(earlier, later)]
  for (const at_ms of [first, second]) if (wallOf(at_ms, zone) === wall_ms) return at_ms
  return changeWithin(first, second, zone)
}
