import { assert, describe, it } from "@effect/vitest"
import type { ChoirEvent, PayloadOf } from "#schema/Event.ts"
import { coreLane, JobName, Rev, SessionId } from "#schema/Ids.ts"
import { recordedRun } from "#src/choird/trials/recordedRuns.ts"

const lane = coreLane(JobName.make("run"))
const place = {
  session_id: SessionId.make("0123456789abcdef"),
  lane,
  started_rev: Rev.make(4),
  ended_rev: Rev.make(9),
  outcome: "completed"
} as const

const start = (given: Partial<PayloadOf<"SkillTransitionCommitted">>): ReadonlyArray<ChoirEvent> => [
  {
    event_type: "SkillTransitionCommitted",
    lane,
    rev: Rev.make(4),
    payload: { skill: "x", from: "", to: "look", step: 0, on: "start", ...given }
  } as never
]

describe("a recorded run", () => {
  it("has the input of a skill without a contract", () => {
    assert.deepStrictEqual(recordedRun(place, start({ input: { goal: "tidy" } })).input, { goal: "tidy" })
  })

  it("has the input of a skill with a contract, which its beginning wrote into STATE", () => {
    assert.deepStrictEqual(recordedRun(place, start({ writes: { path: "." } })).input, { path: "." })
  })

  it("has none where its words were forgotten", () => {
    assert.notProperty(recordedRun(place, start({})), "input")
  })
})
