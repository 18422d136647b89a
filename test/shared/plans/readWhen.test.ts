import { assert, describe, it } from "@effect/vitest"
import { DateTime, Result } from "effect"
import { readWhen } from "#src/shared/plans/readWhen.ts"
import { PLAN_EVERY_MINUTES_MIN } from "#src/shared/plans/schedule.ts"
import { timeText, whenText } from "#src/shared/plans/whenText.ts"
import type { When } from "#src/shared/plans/When.ts"

const BERLIN = DateTime.zoneMakeNamedUnsafe("Europe/Berlin")
/** A Monday, 13:40 in Berlin. */
const NOW = "2026-11-30T12:40:00Z"

const readAt = (now: string, text: string, zone: DateTime.TimeZone = BERLIN) =>
  readWhen(text, { now_ms: Date.parse(now), zone })

const instant = (text: string, now = NOW, zone: DateTime.TimeZone = BERLIN): string => {
  const { when } = Result.getOrThrow(readAt(now, text, zone))
  return when.kind === "once" ? new Date(when.at_ms).toISOString().replace(/:00\.000Z$/u, "") : when.schedule
}

const problem = (text: string, now = NOW): string => Result.getOrThrow(Result.flip(readAt(now, text)))
const doubt = (text: string): string | undefined => Result.getOrThrow(readAt(NOW, text)).doubt

describe("words for a time", () => {
  it("mean elapsed time where they are hours and minutes, and the wall where they are days, also over a change of clocks", () => {
    const night = "2026-10-24T20:00:00Z"
    assert.strictEqual(instant("in 12 hours x", night), "2026-10-25T08:00")
    assert.strictEqual(instant("in 90 minutes x", night), "2026-10-24T21:30")
    assert.strictEqual(instant("in 1h30m x", night), "2026-10-24T21:30")
    assert.strictEqual(instant("in 1 day x", night), "2026-10-25T21:00")
    assert.strictEqual(instant("in 2 weeks x", night), "2026-11-07T21:00")
    assert.strictEqual(instant("in 1 month x", "2026-01-31T10:00:00Z"), "2026-02-28T10:00")
    assert.strictEqual(instant("in 1 day and 2 hours x", night), "2026-10-25T23:00")
    for (const text of ["in 3 days at 9:00 x", "x in 3 days at 9:00", "at 9:00 in 3 days x", "in 3 days x at 9:00"])
      assert.strictEqual(instant(text), "2026-12-03T08:00", text)
  })

  it("mean the first instant after a gap, and the first of two", () => {
    assert.strictEqual(instant("tomorrow 2:30 x", "2026-03-28T12:00:00Z"), "2026-03-29T01:00")
    assert.strictEqual(instant("tomorrow 2:30 x", "2026-10-24T12:00:00Z"), "2026-10-25T00:30")
  })

  it("mean the next such time where they do not name a day, a week or a year", () => {
    assert.strictEqual(instant("13:41 x"), "2026-11-30T12:41")
    assert.strictEqual(instant("13:40 x"), "2026-12-01T12:40")
    assert.strictEqual(instant("monday 13:00 x"), "2026-12-07T12:00")
    assert.strictEqual(instant("monday 14:00 x"), "2026-11-30T13:00")
    assert.strictEqual(instant("sunday 14:00 x"), "2026-12-06T13:00")
    assert.strictEqual(instant("1 Nov 9:00 x"), "2027-11-01T08:00")
    assert.strictEqual(instant("29 Feb 9:00 x", "2028-03-05T10:00:00Z"), "2032-02-29T08:00")
    assert.strictEqual(instant("next week x"), "2026-12-07T08:00")
  })

  it("are in the zone that they name, or in that of the person", () => {
    assert.strictEqual(instant("tomorrow 9:00 UTC x"), "2026-12-01T09:00")
    assert.strictEqual(instant("2026-12-24T18:00:00Z x"), "2026-12-24T18:00")
    assert.strictEqual(instant("tomorrow 9:00 est-il là"), "2026-12-01T08:00")
    const auckland = DateTime.zoneMakeNamedUnsafe("Pacific/Auckland")
    // It is Tuesday there.
    assert.strictEqual(instant("tomorrow 9:00 x", NOW, auckland), "2026-12-01T20:00")
    assert.include(problem("every day at 8:00 UTC x"), "your own zone")
  })

  it("come with a doubt where the words go on beside the time that was taken", () => {
    for (const [text, left] of [
      ["in an hour and a half x", "and a half x"],
      ["10 minutes before 9:00 tomorrow x", "before 9:00 tomorrow x"],
      ["every day at 8:00 and 20:00 take pills", "and 20:00 take pills"],
      ["every weekday except friday at 9 x", "except friday at 9 x"],
      ["every monday to friday at 9 x", "friday at 9 x"],
      ["every 30 minutes until 18:00 x", "until 18:00 x"],
      ["every hour between 9 and 17 x", "between 9 and 17 x"],
      ["friday in a week call bob", "in a week call bob"],
      ["in a week on friday at 9 x", "on friday at 9 x"],
      ["3pm or 4pm x", "or 4pm x"],
      ["alle zwei wochen montags um 9 x", "montags um 9 x"],
      ["um 14 uhr 30 x", "30 x"],
      ["täglich um 8:00 und 20:00 x", "und 20:00 x"]
    ] as const)
      assert.strictEqual(doubt(text), `"${left}" was read as text, not as a part of the time.`, text)
    assert.strictEqual(doubt("mon-fri 9:00 x"), "Of a span of time its beginning was taken.")
    assert.strictEqual(doubt("tomorrow 9:00-10:00 x"), "Of a span of time its beginning was taken.")
    for (const text of [
      "in 20 minutes to take the bread out",
      "tomorrow 9:00 meeting at 10:00",
      "tomorrow 9:00 buy 20 eggs"
    ])
      assert.isUndefined(doubt(text), text)
  })

  it("come with a doubt where they could mean something else", () => {
    assert.strictEqual(doubt("at 8 x"), "8 was read as 08:00; for the evening write 20:00.")
    assert.strictEqual(doubt("every weekday at 8 x"), "8 was read as 08:00; for the evening write 20:00.")
    assert.strictEqual(doubt("12/10 18:00 x"), "12/10 was read as 12 Oct; for the other date write 10 Dec.")
    assert.strictEqual(doubt("tomorrow x"), "No time of day was written: 09:00 was taken.")
    assert.strictEqual(doubt("tonight x"), "No hour was written: 22:00 was taken.")
    assert.strictEqual(doubt("9h x"), "9h was read as 9 hours from now; for the time of day write 9:00.")
    for (const text of [
      "at 8:00 x",
      "8am x",
      "um 8 Uhr x",
      "à 8h x",
      "24/12 18:00 x",
      "at noon x",
      "at 18 x",
      "in 2 days x"
    ])
      assert.isUndefined(doubt(text), text)
  })

  it("leave out short words that name a weekday in another language", () => {
    for (const [text, at, rest] of [
      ["do the dishes at 9:00", "2026-12-01T08:00", "do the dishes"],
      ["sat nav update 18:00", "2026-11-30T17:00", "sat nav update"],
      ["mon ami à 18:00", "2026-11-30T17:00", "mon ami"],
      ["meet Bob at 18:00", "2026-11-30T17:00", "meet Bob"],
      ["fri at 8:00 bins", "2026-12-04T07:00", "bins"]
    ] as const) {
      assert.strictEqual(instant(text), at, text)
      assert.strictEqual(Result.getOrThrow(readAt(NOW, text)).rest, rest)
    }
    assert.match(problem("do it"), /^There is no time in it/u)
  })

  it("leave the words beside them, which may be none", () => {
    const rest = (text: string) => Result.getOrThrow(readAt(NOW, text)).rest
    assert.strictEqual(rest("in 20 minutes"), "")
    assert.strictEqual(rest("remind me to call Ada, tomorrow at 9:00."), "call Ada")
    assert.strictEqual(rest("tomorrow 9:00: take  two  pills\n- red\n- blue"), "take  two  pills\n- red\n- blue")
    assert.strictEqual(rest("in 5 minutes that the tea is ready"), "the tea is ready")
    assert.strictEqual(rest("call everybody tomorrow at 9:00"), "call everybody")
  })

  it("are refused with a sentence where a plan cannot have such a time", () => {
    const cases: ReadonlyArray<readonly [string, string]> = [
      ["", "There is no time in it"],
      ["buy 2 eggs", "There is no time in it"],
      ["yesterday at 9 x", "has passed"],
      ["2020-01-01 9:00 x", "has passed"],
      ["last monday at 9:00 x", "has passed"],
      ["today x", "It is past 09:00 on that day"],
      ["in 6 years x", "more than 5 years ahead"],
      ["in 9999999 months x", "more than 5 years ahead"],
      ["in 9999999 days x", "more than 5 years ahead"],
      ["1 Jan 2040 9:00 x", "more than 5 years ahead"],
      ["every 9 minutes x", `at most every ${PLAN_EVERY_MINUTES_MIN} minutes`],
      ["every 30 seconds x", "whole minutes"],
      ["* * * * * x", `at most every ${PLAN_EVERY_MINUTES_MIN} minutes`],
      ["0,5 8 * * * x", `at most every ${PLAN_EVERY_MINUTES_MIN} minutes`],
      ["0,59 * * * * x", `at most every ${PLAN_EVERY_MINUTES_MIN} minutes`],
      ["0 25 * * * x", "not a cron expression"],
      ["every 9999999 days x", "within 5 years"],
      ["every 3 days at 8 x", "leave the time of day out"],
      ["every 2 hours at 8:00 x", "leave the time of day out"],
      ["every week at 8:00 x", "day of the week"],
      ["every month at 8:00 x", "day of the month"],
      ["every month on the 31st x", "Not every month has a day 31"],
      ["every year on 24 Dec at 9:00 x", "cron expression"],
      ["every second monday at 9:00 x", "every 14 days"],
      ["every 1st friday of a month the bills at 9:00", "every 14 days"],
      [`tomorrow 9:00 ${"x".repeat(4000)}`, "more than 4000 characters"]
    ]
    for (const [text, expected] of cases) assert.include(problem(text), expected, text)
  })

  it("take a cron expression of five fields", () => {
    assert.strictEqual(instant("*/10 8-18 * * mon-fri x"), "*/10 8-18 * * mon-fri")
    assert.strictEqual(instant("0 8 1 1 * (cron)"), "0 8 1 1 *")
  })

  it("are read in milliseconds whatever the text says", () => {
    const parts = [
      "1",
      "1 ",
      "1:",
      "1/",
      "1-",
      "1.",
      "1,1 ",
      " ",
      "\n",
      "-",
      ": ",
      "1 min 1 h ",
      "1 m ",
      "in 1 ",
      "every ",
      "every 1 "
    ]
    const words = [
      "monday and ",
      "1 jan ",
      "een half uur ",
      "1 uur 1 dag ",
      "через 1 час ",
      "十",
      "1小时",
      "每",
      "* ",
      "a, ",
      "12月"
    ]
    const texts = [...parts, ...words].flatMap((part) => {
      const long = part.repeat(Math.floor(3900 / part.length))
      return [long, `x${long}`, `tomorrow 9:00 ${long} x`, `x ${long} tomorrow 9:00`]
    })
    // The first pass compiles patterns.
    for (const text of texts) for (const pass of [1, 2]) assert.isDefined(readAt(NOW, text), String(pass))
    let slowest = 0
    for (const text of texts) {
      const quickest = Math.min(
        ...[1, 2, 3].map(() => {
          const before = performance.now()
          readAt(NOW, text)
          return performance.now() - before
        })
      )
      slowest = Math.max(slowest, quickest)
    }
    assert.isBelow(slowest, 50)
  })
})

describe("the text of a plan's time", () => {
  it("is read back as the same schedule", () => {
    const days = [
      "daily",
      "weekdays",
      "weekends",
      "mon",
      "sun",
      "mon, thu",
      "tue, wed, sat",
      "monthly on 1",
      "monthly on 28"
    ]
    const schedules: ReadonlyArray<When> = [
      ...days.flatMap((day) =>
        ["00:00", "07:30", "12:00", "23:59"].map((time): When => ({ kind: "every", schedule: `${day} at ${time}` }))
      ),
      ...["every 10 minutes", "every 90 minutes", "every hour", "every 6 hours", "every 2 days", "every 14 days"].map(
        (schedule): When => ({ kind: "every", schedule })
      ),
      ...["0 8 * * 1-5", "*/15 * * * *", "0 9 24 12 *", "30 7 1,15 * mon"].map((schedule): When => ({
        kind: "cron",
        schedule
      }))
    ]
    for (const when of schedules) {
      const text = whenText(when, BERLIN, Date.parse(NOW))
      for (const said of [text, `${text} the bins`])
        assert.deepStrictEqual(Result.getOrThrow(readAt(NOW, said)).when, when, said)
    }
  })

  it("is read back as the same minute", () => {
    for (const minutes of [1, 700, 2000, 40_000, 90_000, 600_000, 1_500_000]) {
      const at_ms = Date.parse(NOW) + minutes * 60_000
      const text = timeText(at_ms, BERLIN, Date.parse(NOW))
      assert.deepStrictEqual(Result.getOrThrow(readAt(NOW, text)).when, { kind: "once", at_ms }, text)
    }
  })

  it("names the day as people do", () => {
    const text = (at: string) => timeText(Date.parse(at), BERLIN, Date.parse(NOW))
    assert.strictEqual(text("2026-11-30T17:00Z"), "today at 18:00")
    assert.strictEqual(text("2026-12-01T08:00Z"), "tomorrow at 09:00")
    assert.strictEqual(text("2026-12-24T11:00Z"), "on Thu 24 December at 12:00")
    assert.strictEqual(text("2027-12-24T11:00Z"), "on Fri 24 December 2027 at 12:00")
    assert.strictEqual(text("2026-11-29T11:00Z"), "on Sun 29 November at 12:00")
    const say = (when: When) => whenText(when, BERLIN, Date.parse(NOW))
    assert.strictEqual(say({ kind: "once", at_ms: Date.parse("2026-12-01T08:00Z") }), "tomorrow at 09:00")
    assert.strictEqual(say({ kind: "every", schedule: "weekdays at 08:00" }), "weekdays at 08:00")
    assert.strictEqual(say({ kind: "cron", schedule: "0 8 * * 1-5" }), "0 8 * * 1-5 (cron)")
  })
})
