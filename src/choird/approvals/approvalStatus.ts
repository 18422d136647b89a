/** The states of an approval (R52): pending, one decision, and one execution if it was approved. Pure. */
import type { ApprovalStatus, Resolution } from "#schema/Approval.ts"

export type ApprovalStep = Resolution | "executing" | "done" | "failed"

const STEPS: Readonly<Record<ApprovalStatus, ReadonlyArray<ApprovalStep>>> = {
  pending: ["approved", "rejected", "expired"],
  approved: ["executing"],
  executing: ["done", "failed"],
  rejected: [],
  expired: [],
  done: [],
  failed: []
}

/** Whether a step may follow a status. */
export const mayFollow = (status: ApprovalStatus, step: ApprovalStep): boolean => STEPS[status].includes(step)

/** The decision that a status implies. */
export const resolutionOf = (status: ApprovalStatus): Resolution | undefined =>
  status === "pending" ? undefined : status === "rejected" || status === "expired" ? status : "approved"

/** The facts that a decision depends on. */
export interface ApprovalFacts {
  readonly status: ApprovalStatus
  readonly now_ms: number
  readonly expires_ms: number
  /** Lowercase hex of the payload's digest. */
  readonly hash: string
  /** True if nobody is left to do it: the session of a tool call has ended. */
  readonly isOver: boolean
}

/** A person's decision; the digits identify the payload that the person saw (R54). */
export interface Wanted {
  readonly resolution: "approved" | "rejected"
  readonly hash8: string
}

/**
 * `NOT_ALONE`: no number was given, and this is not the one request that waits and was delivered. The last two: the grant that the
 * person wants along with an approval cannot be made, so nothing is decided.
 */
export type Refusal =
  | "ALREADY_DECIDED"
  | "EXPIRED"
  | "SESSION_ENDED"
  | "CHANGED"
  | "NOT_ALONE"
  | "NO_GRANT"
  | "GRANTS_FULL"

/** `refusal` is the answer to the person; the row may be resolved nevertheless, as `expired`. */
export interface Verdict {
  readonly resolution?: Resolution
  readonly refusal?: Refusal
}

export const verdict = (facts: ApprovalFacts, { hash8, resolution }: Wanted): Verdict => {
  if (facts.status !== "pending") return { refusal: facts.status === "expired" ? "EXPIRED" : "ALREADY_DECIDED" }
  if (facts.now_ms >= facts.expires_ms) return { resolution: "expired", refusal: "EXPIRED" }
  if (facts.isOver) return { resolution: "expired", refusal: "SESSION_ENDED" }
  return facts.hash.startsWith(hash8) ? { resolution } : { refusal: "CHANGED" }
}
