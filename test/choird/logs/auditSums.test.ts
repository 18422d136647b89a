import { assert, describe, it } from "@effect/vitest"
import { AUDIT_SUMS_MAX, AUDIT_WINDOW_MS, makeAuditSums } from "#src/choird/logs/auditSums.ts"

describe("sums of refusals", () => {
  it("are bounded, however many kinds a flood has (R77)", () => {
    const sums = makeAuditSums()
    let rows = 0
    for (let index = 0; index < 10 * AUDIT_SUMS_MAX; index += 1) {
      const entry = { who: `agent:${index}`, action: "rpc.HEARTBEAT", detail: { refused: "AUTH" } }
      if (sums.note(entry, 0) !== undefined) rows += 1
    }
    assert.strictEqual(rows, AUDIT_SUMS_MAX + 1)
    const due = sums.due(AUDIT_WINDOW_MS)
    assert.deepStrictEqual(
      due.map(({ count }) => count),
      [9 * AUDIT_SUMS_MAX - 1]
    )
    assert.deepStrictEqual(sums.due(AUDIT_WINDOW_MS), [])
    assert.isDefined(sums.note({ who: "new", action: "x", detail: { refused: "AUTH" } }, 2 * AUDIT_WINDOW_MS))
  })
})
