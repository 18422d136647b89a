/** A job whose agent claims more tokens, money and time than numbers hold. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { CallId, coreLane, JobName } from "#schema/Ids.ts"
import { CoreSummary } from "#schema/SessionsApi.ts"
import { summaryOf } from "#src/choird/sessions/jobSummaries.ts"
import { workBefore } from "#src/shared/session/jobWork.ts"
import { costSum, tokenSum } from "#src/shared/session/sums.ts"
import type { CoreLane } from "#src/shared/session/State.ts"

const earlier = { tokens: Number.MAX_SAFE_INTEGER, cost_usd: Number.MAX_VALUE, ms: Number.MAX_SAFE_INTEGER }

/** The parts of a job that its summary shows. */
const claimed = {
  job_name: JobName.make("digger"),
  job_id: CallId.make("01900000-0000-7000-8000-000000000000"),
  lane: coreLane(JobName.make("digger")),
  state: "CORE_RUNNING",
  step: 1,
  tool_calls: 1,
  started_at: "2026-99-99T99:99:99.999Z",
  spent: { input_tokens: Number.MAX_SAFE_INTEGER, output_tokens: 9, cost_usd: Number.MAX_VALUE },
  work: { files_read: 0, changed: [], commands: 0, last_tool: "", earlier }
} as unknown as CoreLane

describe("a job whose agent claims more than numbers hold", () => {
  it("can be shown to the operator", () => {
    const shown = Schema.encodeSync(CoreSummary)(summaryOf(claimed, undefined, Date.UTC(2026, 0)))
    assert.strictEqual(shown.tokens, Number.MAX_SAFE_INTEGER)
    assert.strictEqual(shown.cost_usd, Number.MAX_VALUE)
  })

  it("begins its next life with sums that a snapshot can hold", () => {
    assert.deepStrictEqual(workBefore(claimed, "2026-01-01T00:00:00.000Z").earlier, earlier)
  })

  it("adds to a session's sums no more than they hold", () => {
    assert.strictEqual(tokenSum(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER)
    assert.strictEqual(costSum(Number.MAX_VALUE, Number.MAX_VALUE), Number.MAX_VALUE)
    assert.strictEqual(costSum(-Number.MAX_VALUE, -Number.MAX_VALUE), -Number.MAX_VALUE)
  })
})
