import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import { nextTime, passedTimes } from "#src/shared/plans/planTimes.ts"
import { instantOf, wallOf } from "#src/shared/plans/wallClock.ts"
import type { When } from "#src/shared/plans/When.ts"

/** Zones with each kind of change: half an hour, at midnight, a whole day, southern, and none. */
const ZONES = [
  "Europe/Berlin",
  "Europe/London",
  "Europe/Kyiv",
  "America/New_York",
  "America/Los_Angeles",
  "America/St_Johns",
  "America/Santiago",
  "America/Asuncion",
  "America/Havana",
  "Africa/Cairo",
  "Asia/Beirut",
  "Asia/Kathmandu",
  "Asia/Tehran",
  "Australia/Lord_Howe",
  "Pacific/Auckland",
  "Pacific/Apia"
].map((name) => DateTime.zoneMakeNamedUnsafe(name))

const BERLIN = DateTime.zoneMakeNamedUnsafe("Europe/Berlin")

const WHENS: ReadonlyArray<When> = [
  { kind: "every", schedule: "every 20 minutes" },
  { kind: "every", schedule: "every 6 hours" },
  { kind: "every", schedule: "every 3 days" },
  { kind: "every", schedule: "daily at 00:00" },
  { kind: "every", schedule: "daily at 02:30" },
  { kind: "every", schedule: "weekdays at 08:00" },
  { kind: "every", schedule: "sat, sun at 00:30" },
  { kind: "every", schedule: "monthly on 1 at 09:00" },
  { kind: "cron", schedule: "*/30 0-3 * * *" },
  { kind: "cron", schedule: "15 2 1,15 * sun" },
  { kind: "cron", schedule: "0 0 29 2 *" }
]

/** Numbers that look random and are the same in each run. */
const numbersFrom = (seed: number) => {
  let state = seed
  return (limit: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
}

const iso = (at_ms: number | undefined) => (at_ms === undefined ? "none" : new Date(at_ms).toISOString().slice(0, 16))

const times = (when: When, from: string, count: number) => {
  const found: Array<string> = []
  let at: number | undefined = Date.parse(from)
  for (let index = 0; index < count; index += 1) {
    at = at === undefined ? undefined : nextTime(when, BERLIN, Date.parse(from), at)
    found.push(iso(at))
  }
  return found
}

describe("the times of a plan", () => {
  it("are later than the instant that they follow, and the same in both directions, in zones whose clocks change", () => {
    const pick = numbersFrom(7)
    for (const zone of ZONES)
      for (const when of WHENS) {
        const from_ms = Date.UTC(2026, pick(12), 1 + pick(28), pick(24), pick(60))
        const after_ms = from_ms + pick(300 * 86_400_000)
        const forward: Array<number> = []
        let at = nextTime(when, zone, from_ms, after_ms)
        while (at !== undefined && forward.length < 25) {
          assert.isAbove(at, forward.at(-1) ?? after_ms)
          forward.push(at)
          at = nextTime(when, zone, from_ms, at)
        }
        const until_ms = forward.at(-1) ?? after_ms
        const backward = passedTimes(when, zone, from_ms, after_ms, until_ms, 1000)
        assert.deepStrictEqual(
          backward.toReversed(),
          forward,
          `${JSON.stringify(when)} in ${DateTime.zoneToString(zone)}`
        )
        assert.deepStrictEqual(passedTimes(when, zone, from_ms, after_ms, until_ms, 3), backward.slice(0, 3))
      }
  })

  it("agree over each change of clocks of a year", () => {
    for (const zone of ZONES)
      for (const schedule of ["daily at 00:00", "daily at 02:30", "every 1 days"]) {
        const when: When = { kind: "every", schedule }
        const [from_ms, until_ms] = [Date.UTC(2026, 0, 1, 1, 30), Date.UTC(2027, 0, 1)]
        let [at, count] = [nextTime(when, zone, from_ms, from_ms), 0]
        while (at !== undefined && at <= until_ms) {
          count += 1
          at = nextTime(when, zone, from_ms, at)
        }
        assert.lengthOf(passedTimes(when, zone, from_ms, from_ms, until_ms, 100_000), count)
        if (schedule.startsWith("daily")) assert.include([364, 365], count, DateTime.zoneToString(zone))
      }
  })

  it("come once in a night whose clock goes back, and right after the gap where it goes forward", () => {
    const daily: When = { kind: "every", schedule: "daily at 02:30" }
    assert.deepStrictEqual(times(daily, "2026-03-28T12:00Z", 2), ["2026-03-29T01:00", "2026-03-30T00:30"])
    assert.deepStrictEqual(times(daily, "2026-10-24T12:00Z", 2), ["2026-10-25T00:30", "2026-10-26T01:30"])
  })

  it("count intervals of hours by elapsed time, and intervals of days on the wall", () => {
    assert.deepStrictEqual(times({ kind: "every", schedule: "every 12 hours" }, "2026-10-24T06:10Z", 3), [
      "2026-10-24T18:10",
      "2026-10-25T06:10",
      "2026-10-25T18:10"
    ])
    assert.deepStrictEqual(times({ kind: "every", schedule: "every 2 days" }, "2026-10-24T06:10Z", 2), [
      "2026-10-26T07:10",
      "2026-10-28T07:10"
    ])
  })

  it("end with one that comes once, and do not begin for what never comes", () => {
    const at_ms = Date.UTC(2026, 11, 24)
    const once: When = { kind: "once", at_ms }
    assert.strictEqual(nextTime(once, BERLIN, 0, at_ms - 1), at_ms)
    assert.isUndefined(nextTime(once, BERLIN, 0, at_ms))
    assert.deepStrictEqual(passedTimes(once, BERLIN, 0, at_ms - 1, at_ms, 5), [at_ms])
    assert.isEmpty(passedTimes(once, BERLIN, 0, at_ms, at_ms + 1, 5))
    for (const schedule of ["0 0 31 2 *", "0 0 * *", "nonsense"])
      assert.isUndefined(nextTime({ kind: "cron", schedule }, BERLIN, 0, at_ms), schedule)
    assert.isUndefined(nextTime({ kind: "every", schedule: "sometimes" }, BERLIN, 0, at_ms))
  })
})

describe("the clock on the wall", () => {
  it("names one instant for each of its times: the first of two, or the end of a gap", () => {
    const at = (zone: string, wall: string) =>
      iso(instantOf(Date.parse(`${wall}Z`), DateTime.zoneMakeNamedUnsafe(zone)))
    assert.strictEqual(at("Europe/Berlin", "2026-03-29T02:10"), "2026-03-29T01:00")
    assert.strictEqual(at("Europe/Berlin", "2026-10-25T02:10"), "2026-10-25T00:10")
    assert.strictEqual(at("Africa/Cairo", "2026-04-24T00:30"), "2026-04-23T22:00")
    assert.strictEqual(at("Australia/Lord_Howe", "2026-10-04T02:10"), "2026-10-03T15:30")
    // A whole day that Samoa did not have.
    assert.strictEqual(at("Pacific/Apia", "2011-12-30T08:00"), "2011-12-30T10:00")
  })

  it("shows again what it was asked for, at each instant that is not repeated", () => {
    const pick = numbersFrom(11)
    for (const zone of ZONES)
      for (let count = 0; count < 200; count += 1) {
        const at_ms = Date.UTC(2026, 0, 1) + pick(720 * 24 * 60) * 60_000
        const again = instantOf(wallOf(at_ms, zone), zone)
        assert.strictEqual(wallOf(again, zone), wallOf(at_ms, zone))
        assert.isAtMost(again, at_ms)
      }
  })
})
