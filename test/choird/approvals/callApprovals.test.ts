import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { ApprovalStatus } from "#schema/Approval.ts"
import type { ChoirEvent, EventDraft } from "#schema/Event.ts"
import { ApprovalId, CallId, EDGE } from "#schema/Ids.ts"
import type { ApprovalRow } from "#src/choird/approvals/approvalRows.ts"
import { type CallStep, decideSteps } from "#src/choird/approvals/callApprovals.ts"
import { committed, ended } from "../../support/confirmations.ts"

const CALL = CallId.make("call")

const row = (status: ApprovalStatus) => ({ approval_id: ApprovalId.make("7"), call_id: CALL, status }) as ApprovalRow

const at = (draft: EventDraft, rev: number) =>
  ({ ...draft, v: 1, rev, created_at: "2026-01-01T00:00:00.000Z" }) as Extract<
    ChoirEvent,
    { event_type: "ToolCallCommitted" | "ToolResultCommitted" }
  >

const decide = (status: ApprovalStatus | undefined, ...drafts: ReadonlyArray<EventDraft>) =>
  decideSteps(
    drafts.map((draft, index) => at(draft, index + 1)),
    new Map(status === undefined ? [] : [[CALL, row(status)]])
  )

/** The steps as words, each with the status that the row had. */
const words = (decided: Result.Result<ReadonlyArray<CallStep>, string>) =>
  Result.isFailure(decided)
    ? decided.failure
    : decided.success.map((step) =>
        step.type === "begin" ? `begin ${step.proof.row.status}` : `${step.type} ${step.row.status}`
      )

describe("the approvals of calls that events speak of (R54)", () => {
  it("lets a call go on by its own row in `approved`, and by nothing else", () => {
    const refusal = "event 1 commits a call that no person approved"
    for (const status of ApprovalStatus.literals)
      assert.deepStrictEqual(
        words(decide(status, committed("call", "7"))),
        status === "approved" ? ["begin approved"] : refusal
      )
    assert.strictEqual(words(decide("approved", committed("call", "8"))), refusal)
    assert.strictEqual(words(decide(undefined, committed("call", "7"))), refusal)
    const unnamed: EventDraft = { event_type: "ToolCallCommitted", lane: EDGE, payload: { call_id: CALL, locks: [] } }
    assert.strictEqual(words(decide("approved", unnamed)), refusal)
    assert.strictEqual(words(decide(undefined, unnamed)), refusal)
  })

  it("lets it go on once, and refuses all events when one of them cannot be", () => {
    assert.strictEqual(
      words(decide("approved", committed("call", "7"), committed("call", "7"))),
      "event 2 commits a call that no person approved"
    )
    assert.strictEqual(
      words(decide("pending", ended("call", "cancelled"), committed("call", "7"))),
      "event 2 commits a call that no person approved"
    )
  })

  it("ends what a call of one batch began, and expires what nobody decided before the call ended", () => {
    assert.deepStrictEqual(words(decide("approved", committed("call", "7"), ended("call", "success"))), [
      "begin approved",
      "end executing"
    ])
    const alone = ApprovalStatus.literals.flatMap((status) => words(decide(status, ended("call", "error"))))
    assert.deepStrictEqual(
      alone,
      ApprovalStatus.literals.map((status) => (status === "pending" ? "expire pending" : `end ${status}`))
    )
    assert.deepStrictEqual(words(decide(undefined, ended("call", "error"))), [])
  })
})
