import { assert, describe, it } from "@effect/vitest"
import { DateTime, Result } from "effect"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { gateReport } from "#src/shared/image/skillGate.ts"
import { reportLines } from "#src/shared/image/skillReportText.ts"
import { readSchedule, timesBetween } from "#src/shared/image/skillSchedule.ts"

const BERLIN = DateTime.zoneMakeNamedUnsafe("Europe/Berlin")

const times = (text: string, from: string, to: string, count_max = 100) =>
  timesBetween([Result.getOrThrow(readSchedule(text))], BERLIN, Date.parse(from), Date.parse(to), count_max)
    .map((ms) => new Date(ms).toISOString().replace(":00.000Z", ""))
    .toReversed()

describe("a schedule", () => {
  it("has its times after one instant, up to and with another", () => {
    const cases: ReadonlyArray<readonly [string, string, string, ReadonlyArray<string>]> = [
      ["daily at 07:30", "2026-11-01T06:30Z", "2026-11-03T06:30Z", ["2026-11-02T06:30", "2026-11-03T06:30"]],
      ["weekdays at 07:30", "2026-11-06T12:00Z", "2026-11-09T12:00Z", ["2026-11-09T06:30"]],
      ["weekends at 10:00", "2026-11-06T12:00Z", "2026-11-09T12:00Z", ["2026-11-07T09:00", "2026-11-08T09:00"]],
      ["mon, thu at 18:00", "2026-11-02T00:00Z", "2026-11-06T00:00Z", ["2026-11-02T17:00", "2026-11-05T17:00"]],
      ["monthly on 1 at 09:00", "2026-10-15T00:00Z", "2026-12-15T00:00Z", ["2026-11-01T08:00", "2026-12-01T08:00"]],
      ["every 6 hours", "2026-11-02T00:00Z", "2026-11-02T12:00Z", ["2026-11-02T05:00", "2026-11-02T11:00"]],
      ["daily at 07:30 in America/New_York", "2026-11-02T00:00Z", "2026-11-02T23:00Z", ["2026-11-02T12:30"]],
      // The clock goes from 2 to 3 and the time comes an hour later; then from 3 to 2, and it comes once.
      ["daily at 02:30", "2026-03-28T12:00Z", "2026-03-29T12:00Z", ["2026-03-29T01:30"]],
      ["daily at 02:30", "2026-10-24T12:00Z", "2026-10-25T12:00Z", ["2026-10-25T00:30"]]
    ]
    for (const [text, from, to, expected] of cases) assert.deepStrictEqual(times(text, from, to), expected, text)
  })

  it("answers the newest times of many", () => {
    assert.deepStrictEqual(times("every hour", "2020-01-01T00:00Z", "2026-11-02T12:00Z", 2), [
      "2026-11-02T11:00",
      "2026-11-02T12:00"
    ])
  })

  it("comes each day once over a year of any zone", () => {
    for (const place of ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]) {
      const found = times(`daily at 02:15 in ${place}`, "2026-01-01T00:00Z", "2027-01-01T00:00Z", 1000)
      const day = new Intl.DateTimeFormat("en-CA", { timeZone: place, dateStyle: "short" })
      const days = new Set(found.map((at) => day.format(new Date(`${at}Z`))))
      assert.strictEqual(days.size, found.length, place)
      assert.include([365, 366], found.length, place)
    }
  })

  it("is refused with the forms that there are", () => {
    const problem = (text: string) => Result.getOrThrow(Result.flip(readSchedule(text)))
    for (const text of [
      "0 7 * * *",
      "daily at 7:30",
      "every 5 hours",
      "every 0 hours",
      "monthly on 31 at 09:00",
      "noon"
    ])
      assert.include(problem(text), `"${text}" is not a schedule: write "daily at 07:30"`)
    for (const text of ["daily at 24:00", "mon, moon at 07:00", "daily at 07:30 in Europe/Berlin in Rome", " at 07:00"])
      assert.include(problem(text), "is not a schedule")
    assert.include(problem("daily at 07:30 in Mars/Base"), 'no time zone "Mars/Base"')
  })
})

const skill = (trigger: object, more: object = {}) =>
  readSkill(
    "clocked",
    JSON.stringify({
      name: "clocked",
      description: "Begin at a time.",
      initial_state: "look",
      max_steps: 3,
      states: {
        look: { objective: "Look.", allowed_tools: ["choir.fs.read"], transitions: [{ on: "complete", to: "done" }] },
        done: { terminal: true }
      },
      registry: { version: "1.0.0", tier: "pm", triggers: [trigger] },
      ...more
    })
  )

describe("a skill with a schedule", () => {
  it("is refused where nothing could begin it", () => {
    const problems = (trigger: object, more?: object) => Result.getOrThrow(Result.flip(skill(trigger, more)))
    const [form, mode] = problems({ kind: "schedule", match: "sometimes" })
    assert.include(form, `at ["registry"]["triggers"][0]["match"]: "sometimes" is not a schedule`)
    assert.include(mode, `write "start"`)
    const input_schema = { type: "object", properties: { folder: { type: "string" } }, required: ["folder"] }
    const daily = { kind: "schedule", match: "daily at 07:30", mode: "start" }
    assert.include(problems(daily, { input_schema })[0], "a schedule gives the skill no input")
    assert.isTrue(Result.isSuccess(skill(daily, { input_schema: { ...input_schema, required: [] } })))
  })

  it("says on every card when it begins by itself", () => {
    const report = (trigger: object) => gateReport(Result.getOrThrow(skill(trigger)))
    const lines = reportLines(report({ kind: "schedule", match: "mon, thu at 18:00", mode: "start" }))
    assert.include(lines, "begins by itself: mon, thu at 18:00")
    assert.notInclude(reportLines(report({ kind: "keyword", match: "clock" })).join(), "begins by itself")
    const keyword = reportLines(report({ kind: "keyword", match: "clock", mode: "start" }))
    assert.include(keyword, `begins by itself: at a message or a job's task with the words "clock"`)
  })
})
