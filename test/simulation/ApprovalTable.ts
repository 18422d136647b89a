/** choird's approvals in memory. What is understood and what a decision comes to is choird's own code. */
import { Result } from "effect"
import type { ApprovalStatus, AskedApproval, Resolution } from "#schema/Approval.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { ApprovalId, type CallId, type SessionId } from "#schema/Ids.ts"
import type { ApprovalRequest } from "#src/choird/approvals/Approvals.ts"
import { type ApprovalStep, mayFollow, resolutionOf, verdict } from "#src/choird/approvals/approvalStatus.ts"
import { isAsked } from "#src/choird/approvals/callApprovals.ts"
import { understand } from "#src/choird/approvals/requestTypes.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { Violation } from "./Kernel.ts"

export interface ApprovalRow {
  readonly approval_id: ApprovalId
  readonly session_id: SessionId
  readonly call_id: CallId
  readonly hash: string
  readonly expires_ms: number
  status: ApprovalStatus
}

/** Tells an agent, and forgets what it was told once it asked again. */
export interface Telling {
  readonly resolved: (row: ApprovalRow, status: Resolution) => void
  readonly heard: (row: ApprovalRow) => void
}

export class ApprovalTable {
  readonly rows: Array<ApprovalRow> = []
  /** Calls that the stored log says to need a person. */
  readonly #confirmed = new Set<CallId>()
  readonly #telling: Telling

  constructor(telling: Telling) {
    this.#telling = telling
  }

  /** The answer to a request, or the type of its refusal. */
  ask(
    session: { readonly session_id: SessionId; readonly state: SessionState },
    { call_id, payload, request_type }: ApprovalRequest,
    now_ms: number,
    timeout_ms: number
  ): AskedApproval | string {
    const understood = understand(request_type, payload)
    if (Result.isFailure(understood)) return understood.failure.kind
    if (understood.success.type !== "confirm_tool") return "NOT_AVAILABLE"
    const { call, hash } = understood.success
    let row = this.#of(call_id)
    if (row !== undefined && row.hash !== hash) return "CALL_ID_REUSED"
    if (row === undefined) {
      if (!isAsked(session.state, call_id, call)) return "NOT_OPEN"
      const approval_id = ApprovalId.make(String(this.rows.length + 1))
      const { session_id } = session
      row = { approval_id, session_id, call_id, hash, expires_ms: now_ms + timeout_ms, status: "pending" }
      this.rows.push(row)
    }
    const { approval_id, status } = row
    if (status !== "pending") this.#telling.heard(row)
    return { approval_id, status: resolutionOf(status) ?? "pending" }
  }

  /** A person's click. */
  decide(row: ApprovalRow, resolution: "approved" | "rejected", now_ms: number, isOver: boolean): void {
    const decided = verdict({ ...row, now_ms, isOver }, { resolution, hash8: row.hash.slice(0, 8) })
    if (decided.resolution !== undefined) this.#resolve(row, decided.resolution)
  }

  /** Ends what is due, and answers when the next one will be. */
  expire(now_ms: number): number | undefined {
    for (const row of this.waiting()) if (row.expires_ms <= now_ms) this.#resolve(row, "expired")
    const left = this.waiting().map(({ expires_ms }) => expires_ms)
    return left.length === 0 ? undefined : Math.min(...left)
  }

  waiting(): ReadonlyArray<ApprovalRow> {
    return this.rows.filter(({ status }) => status === "pending")
  }

  /** What a stored event does to the approval of its call. */
  follow({ event_type, payload, rev }: ChoirEvent): void {
    if (event_type === "ToolCallRequested" && payload.confirm !== undefined) this.#confirmed.add(payload.call_id)
    if (event_type === "ToolCallCommitted" && this.#confirmed.has(payload.call_id)) {
      const row = this.#of(payload.call_id)
      if (row === undefined || row.approval_id !== payload.approval_id)
        throw new Violation("I12", `the call ${payload.call_id} goes on at ${rev} without its approval`)
      this.#become(row, "executing")
    }
    if (event_type !== "ToolResultCommitted") return
    const row = this.#of(payload.call_id)
    if (row === undefined) return
    if (row.status === "pending") this.#become(row, "expired")
    if (row.status === "executing") this.#become(row, payload.status === "success" ? "done" : "failed")
    this.#telling.heard(row)
  }

  /** I12: what needs a person runs while its approval is being executed, and never else. */
  starts(call_id: CallId): void {
    const status = this.#of(call_id)?.status
    if (this.#confirmed.has(call_id) && status !== "executing")
      throw new Violation("I12", `the call ${call_id} runs while its approval is ${status ?? "not even asked for"}`)
  }

  #of(call_id: CallId): ApprovalRow | undefined {
    return this.rows.find((row) => row.call_id === call_id)
  }

  #resolve(row: ApprovalRow, resolution: Resolution): void {
    this.#become(row, resolution)
    this.#telling.resolved(row, resolution)
  }

  /** I12: one decision, one execution. */
  #become(row: ApprovalRow, step: ApprovalStep): void {
    if (!mayFollow(row.status, step))
      throw new Violation("I12", `approval ${row.approval_id} is ${row.status} and becomes ${step}`)
    row.status = step
  }
}
