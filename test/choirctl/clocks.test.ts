import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { allowed, looksAtTimeOfDay, type TimeOfDay } from "../support/timeOfDay.ts"

/** Where choirctl looks at the time of day, for what, and how often. */
const TIME_OF_DAY: TimeOfDay = {
  "backup/backupHome.ts": "the name of a backup",
  "backup/exportSession.ts": "the date of an export",
  "backup/restorePlace.ts": "the name of a folder",
  "commands/approval.ts": ["how long stored requests wait, for people", 3],
  "commands/memory.ts": "the age of what is remembered",
  "commands/runs.ts": ["the age of runs by the times of their events, for people", 3],
  "commands/session.ts": ["the age of sessions and signals, for people", 2],
  "doctor/hostChecks.ts": "whether the clock is set"
}

it("no code of choirctl computes a span from the time of day", () => {
  assert.deepStrictEqual(looksAtTimeOfDay(join(import.meta.dirname, "../../src/choirctl")), allowed(TIME_OF_DAY))
})
