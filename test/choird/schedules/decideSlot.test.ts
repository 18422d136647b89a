import { assert, describe, it } from "@effect/vitest"
import { DateTime, Result } from "effect"
import { decideSlot, type LastSlot, SLOT_LATE_MS_MAX, SLOTS_MISSED_MAX } from "#src/choird/schedules/decideSlot.ts"
import { readSchedule } from "#src/shared/image/skillSchedule.ts"

const UTC = DateTime.zoneMakeNamedUnsafe("UTC")
const ms = (text: string) => Date.parse(text)

const decided = (text: string, last: LastSlot | undefined, now: string) =>
  decideSlot([Result.getOrThrow(readSchedule(text))], UTC, last, ms(now))
const after = (schedule: string, slot: string): LastSlot => ({ schedule, slot_ms: ms(slot) })
const DAILY = "daily at 07:30"

describe("a time of a schedule", () => {
  it("does not count before the schedule was there, nor before it was changed", () => {
    const begin = { type: "begin", slot_ms: ms("2026-11-02T09:00Z") }
    assert.deepStrictEqual(decided(DAILY, undefined, "2026-11-02T09:00Z"), begin)
    const earlier = after("daily at 08:30", "2026-11-02T08:30Z")
    assert.deepStrictEqual(decided(DAILY, earlier, "2026-11-02T09:00Z"), begin)
    // A clock that went back loses no row behind a later one.
    const later = after("daily at 08:30", "2026-11-02T09:30Z")
    assert.deepStrictEqual(decided(DAILY, later, "2026-11-02T09:00Z"), { type: "begin", slot_ms: later.slot_ms })
  })

  it("is run once it has come, and not again", () => {
    const last = after(DAILY, "2026-11-02T07:00Z")
    assert.isUndefined(decided(DAILY, last, "2026-11-02T07:29:59Z"))
    const run = { type: "run", slot_ms: ms("2026-11-02T07:30Z"), missed: 0 } as const
    assert.deepStrictEqual(decided(DAILY, last, "2026-11-02T07:30Z"), run)
    assert.isUndefined(decided(DAILY, after(DAILY, "2026-11-02T07:30Z"), "2026-11-02T07:31Z"))
  })

  it("is made up for until it is too old, and of several the newest is", () => {
    const last = after(DAILY, "2026-11-01T07:30Z")
    const slot_ms = ms("2026-11-02T07:30Z")
    const at = (now_ms: number) => new Date(now_ms).toISOString()
    assert.deepStrictEqual(decided(DAILY, last, at(slot_ms + SLOT_LATE_MS_MAX)), { type: "run", slot_ms, missed: 0 })
    const late = decided(DAILY, last, at(slot_ms + SLOT_LATE_MS_MAX + 1))
    assert.deepStrictEqual(late, { type: "skip", slot_ms, missed: 1 })
    const week = decided(DAILY, after(DAILY, "2026-10-26T07:30Z"), "2026-11-02T08:00Z")
    assert.deepStrictEqual(week, { type: "run", slot_ms, missed: 6 })
    const hours = decided("every hour", after("every hour", "2026-11-02T03:00Z"), "2026-11-02T08:00Z")
    assert.deepStrictEqual(hours, { type: "run", slot_ms: ms("2026-11-02T08:00Z"), missed: 0 })
  })

  it("is counted up to a limit where an agent was off for years", () => {
    const found = decided("every hour", after("every hour", "2020-01-01T00:00Z"), "2026-11-02T08:00Z")
    assert.deepInclude(found, { type: "run", missed: SLOTS_MISSED_MAX - 7 })
  })
})
