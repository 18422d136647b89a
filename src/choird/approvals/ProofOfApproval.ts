/** The proof that a person approved, without which nothing is executed (R55). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { rowId } from "#src/choird/database/rowId.ts"
import type { ApprovalRow } from "./approvalRows.ts"
import { mayFollow } from "./approvalStatus.ts"

/** Proof of an approval, made only from a row that says so. */
export class ProofOfApproval {
  /** A private field, so that no other object has this type. */
  readonly #row: ApprovalRow

  private constructor(row: ApprovalRow) {
    this.#row = row
  }

  /** Undefined for a row that nobody approved, or that was executed before. */
  static of(row: ApprovalRow): ProofOfApproval | undefined {
    return mayFollow(row.status, "executing") ? new ProofOfApproval(row) : undefined
  }

  /** The proof for an execution that began and was cut short. Undefined for any other row. */
  static begun(row: ApprovalRow): ProofOfApproval | undefined {
    return row.status === "executing" ? new ProofOfApproval(row) : undefined
  }

  get row(): ApprovalRow {
    return this.#row
  }
}

/** Begins the one execution of what was approved; fails as a defect if it was begun before. */
export const beginExecution = Effect.fnUntraced(function* ({ row }: ProofOfApproval) {
  const sql = yield* SqlClient.SqlClient
  const begun = yield* sql`UPDATE choir_control.pending_approvals SET status = 'executing'
    WHERE id = ${rowId(row.approval_id) ?? 0n} AND status = 'approved' RETURNING id`
  if (begun.length === 0) return yield* Effect.die(new Error(`the approval ${row.approval_id} was executed twice`))
})
