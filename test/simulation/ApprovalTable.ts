/**
 * choird's approvals in memory: calls that a person confirms, and proposals that choird carries out. What is understood, what a decision
 * comes to and what may be carried out is choird's own code.
 */
import { Result } from "effect"
import type { ApprovalStatus, AskedApproval, Resolution } from "#schema/Approval.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { ApprovalId, type CallId, type SessionId } from "#schema/Ids.ts"
import { type ApprovalRequest, isAsked, proposedOn } from "#src/choird/approvals/askApproval.ts"
import { type ApprovalStep, mayFollow, resolutionOf, verdict } from "#src/choird/approvals/approvalStatus.ts"
import { ProofOfApproval } from "#src/choird/approvals/ProofOfApproval.ts"
import type { ApprovalRow as StoredRow } from "#src/choird/approvals/approvalRows.ts"
import { decidedNote, endedNote, type Ending } from "#src/choird/approvals/proposalNotes.ts"
import { understand } from "#src/choird/approvals/requestTypes.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { Violation } from "./Kernel.ts"

export interface ApprovalRow {
  readonly approval_id: ApprovalId
  readonly session_id: SessionId
  readonly call_id: CallId
  readonly hash: string
  readonly summary: string
  readonly isProposal: boolean
  readonly request_type: string
  /** The payload as it was stored, which a later version may not be able to read. */
  canonical: string
  /** What choird found out about a proposal. */
  readonly facts: unknown
  readonly expires_ms: number
  status: ApprovalStatus
  /** The one decision, beside the status that the product's rules move. */
  decided: Resolution | undefined
  /** How often it was carried out. */
  carried: number
}

/** What somebody clicked on, with the digits of the payload that was seen. */
export interface Click {
  readonly resolution: "approved" | "rejected"
  readonly hash8: string
}

/** Tells an agent, and forgets what it was told once it asked again. Of a proposal it is told in words. */
export interface Telling {
  readonly resolved: (row: ApprovalRow, status: Resolution, note?: string) => void
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
    const asked = understood.success
    const { hash, summary } = asked
    const isProposal = asked.type === "proposal"
    const isOpen =
      asked.type === "proposal"
        ? proposedOn(session.state, call_id, asked.proposal.kind, asked.payload) !== undefined
        : isAsked(session.state, call_id, asked.call)
    let row = this.#of(call_id)
    if (row !== undefined && row.hash !== hash) return "CALL_ID_REUSED"
    if (row === undefined) {
      if (!isOpen) return "NOT_OPEN"
      const approval_id = ApprovalId.make(String(this.rows.length + 1))
      const { session_id } = session
      const expires_ms = now_ms + timeout_ms
      row = {
        approval_id,
        session_id,
        call_id,
        hash,
        summary,
        isProposal,
        request_type,
        canonical: asked.canonical,
        facts: {},
        expires_ms,
        status: "pending",
        decided: undefined,
        carried: 0
      }
      this.rows.push(row)
    }
    const { approval_id, status } = row
    if (status !== "pending" && !row.isProposal) this.#telling.heard(row)
    return { approval_id, status: resolutionOf(status) ?? "pending" }
  }

  /** I12: a person's click counts for the payload that the person saw, and in time. What is proposed outlives its session. */
  decide(row: ApprovalRow, click: Click, now_ms: number, isEnded: boolean): void {
    const { resolution } = verdict({ ...row, now_ms, isOver: isEnded && !row.isProposal }, click)
    if (resolution === undefined) return
    if (resolution === click.resolution && !row.hash.startsWith(click.hash8))
      throw new Violation("I12", `approval ${row.approval_id} is ${resolution} by who saw another payload`)
    if (resolution === click.resolution && now_ms >= row.expires_ms)
      throw new Violation("I12", `approval ${row.approval_id} is ${resolution} after its time`)
    this.#resolve(row, resolution)
  }

  /** What choird's proof lets be carried out now. */
  provable(): ReadonlyArray<ApprovalRow> {
    return this.rows.filter((row) => row.isProposal && this.proofOf(row) !== undefined)
  }

  proofOf(row: ApprovalRow): ProofOfApproval | undefined {
    const stored = row as unknown as StoredRow
    return ProofOfApproval.of(stored) ?? ProofOfApproval.begun(stored)
  }

  /** Proposals whose execution has not begun. */
  undecided(): ReadonlyArray<ApprovalRow> {
    return this.rows.filter(({ isProposal, status }) => isProposal && (status === "pending" || status === "approved"))
  }

  /** I12: what is carried out was approved. Whoever was cut short begins again. */
  begin(row: ApprovalRow): void {
    if (row.decided !== "approved")
      throw new Violation("I12", `approval ${row.approval_id} is carried out and was ${row.decided ?? "not decided"}`)
    if (row.status !== "executing") this.#become(row, "executing")
  }

  /** I12: it is carried out once. */
  finish(row: ApprovalRow, ending: Ending): void {
    row.carried += 1
    if (row.carried > 1) throw new Violation("I12", `approval ${row.approval_id} was carried out twice`)
    this.#become(row, ending.status)
    this.#telling.resolved(row, "approved", endedNote(row, ending))
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
    if (row === undefined || row.isProposal) return
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
    row.decided = resolution
    this.#telling.resolved(row, resolution, row.isProposal ? decidedNote(row, resolution) : undefined)
  }

  /** I12: one decision, one execution. */
  #become(row: ApprovalRow, step: ApprovalStep): void {
    if (!mayFollow(row.status, step))
      throw new Violation("I12", `approval ${row.approval_id} is ${row.status} and becomes ${step}`)
    row.status = step
  }
}
