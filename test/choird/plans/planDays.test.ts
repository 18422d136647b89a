/** Years of plans in a world whose choird is off for hours, whose clock jumps, and in whose zones the clocks change: each time once, or counted as missed. */
import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import { decidePlan, PLAN_MISSED_MAX } from "#src/choird/plans/decidePlan.ts"
import { nextTime } from "#src/shared/plans/planTimes.ts"
import type { When } from "#src/shared/plans/When.ts"
import { SIZE } from "../../support/size.ts"

const ZONES = [
  "UTC",
  "Europe/Berlin",
  "Europe/London",
  "Europe/Lisbon",
  "Europe/Dublin",
  "America/New_York",
  "America/Los_Angeles",
  "America/St_Johns",
  "America/Santiago",
  "America/Asuncion",
  "Australia/Sydney",
  "Australia/Lord_Howe",
  "Pacific/Auckland",
  "Pacific/Chatham",
  "Africa/Cairo",
  "Asia/Beirut"
]
const WHENS: ReadonlyArray<When> = [
  { kind: "every", schedule: "daily at 02:30" },
  { kind: "every", schedule: "weekdays at 08:00" },
  { kind: "every", schedule: "every 90 minutes" },
  { kind: "every", schedule: "monthly on 1 at 00:00" },
  { kind: "cron", schedule: "0 3 * * 0" }
]
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const START_MS = Date.parse("2026-03-01T00:00:00Z")

/** Numbers from 0 to 1 by a seed. */
const randomOf = (seed: number) => {
  let state = seed * 2_654_435_761 + 1
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) >>> 0
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32
  }
}

interface Lived {
  readonly said: ReadonlyArray<number>
  readonly missed: number
  readonly until_ms: number
}

/** Lives days with one plan: choird looks every quarter of an hour, and is off now and then for up to three days. */
const live = (when: When, zone: DateTime.TimeZone, days: number, random: () => number): Lived => {
  const claimed = new Map<number, "said" | "missed">()
  let missed = 0
  let next_ms = nextTime(when, zone, START_MS, START_MS)
  let now_ms = START_MS
  const end_ms = START_MS + days * DAY_MS
  while (now_ms < end_ms) {
    now_ms += random() < 0.01 ? Math.floor(random() * 72) * HOUR_MS : HOUR_MS / 4
    const decision = next_ms === undefined ? undefined : decidePlan({ when, zone, from_ms: START_MS, next_ms }, now_ms)
    if (decision === undefined) continue
    assert.isFalse(claimed.has(decision.slot_ms), "a time is claimed once")
    claimed.set(decision.slot_ms, decision.state)
    missed += decision.missed
    next_ms = decision.next_ms
    assert.isAbove(next_ms ?? Infinity, now_ms)
  }
  return { said: [...claimed].flatMap(([at, state]) => (state === "said" ? [at] : [])), missed, until_ms: now_ms }
}

/** The times of a plan by the calendar alone. */
const timesOf = (when: When, zone: DateTime.TimeZone, until_ms: number) => {
  const all: Array<number> = []
  let at = nextTime(when, zone, START_MS, START_MS)
  while (at !== undefined && at <= until_ms) {
    all.push(at)
    at = nextTime(when, zone, START_MS, at)
  }
  return all
}

describe("years of plans", () => {
  const days = SIZE.planDays
  it.each(ZONES)(`in %s have each time said once or counted as missed (${days} days a plan)`, (name) => {
    const zone = DateTime.zoneMakeNamedUnsafe(name)
    for (const [number, when] of WHENS.entries()) {
      const { missed, said, until_ms } = live(when, zone, days, randomOf(number + name.length))
      const times = timesOf(when, zone, until_ms)
      const all = new Set(times)
      assert.deepStrictEqual(
        said.filter((at) => !all.has(at)),
        []
      )
      assert.isAtLeast(PLAN_MISSED_MAX, 72)
      assert.strictEqual(said.length + missed, times.length, JSON.stringify(when))
    }
  })
})
