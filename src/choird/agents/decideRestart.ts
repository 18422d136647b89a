/** The decision about a run when one of its epochs has ended (R9, D19). Pure. */
import type { Redacted } from "effect"
import { type Breaker, crash } from "./Breaker.ts"

/** The end of an epoch, known once its container is gone and its socket closed. */
export type EpochEnd =
  /** TERMINATE_SELF was accepted: choird has every event. */
  | { readonly type: "goodbye"; readonly reason: string }
  /** The operator asked for it, and the agent said no goodbye. */
  | { readonly type: "stopped" }
  | { readonly type: "frozen"; readonly reason: string }
  /** The agent is from a later version of Choir, and its session is kept for that (D53). */
  | { readonly type: "newer" }
  /** The session's log is at its limit, for this reason. */
  | { readonly type: "full"; readonly reason: string }
  /** `ready` once it had said hello. The token is the next epoch's; making it fenced this one. */
  | {
      readonly type: "crashed"
      readonly reason: string
      readonly ready: boolean
      readonly token?: Redacted.Redacted | undefined
      /** The agent's own words on why it died; unchecked. */
      readonly last_words?: string | undefined
    }

/** The facts of the session's row and the run when an epoch has ended. */
export interface EpochFacts {
  readonly now_ms: number
  readonly breaker: Breaker
  readonly frozen_reason: string | null
  /** The reason why this choird cannot run the session, if it holds events that are not known here. */
  readonly newer: string | undefined
  /** The reason why the session takes no further events, if its log is at its limit. */
  readonly full: string | undefined
  readonly last_rev: number
  /** Whether an epoch of this run was ready before. */
  readonly proven: boolean
}

export type Next =
  | { readonly type: "restart"; readonly breaker: Breaker; readonly reason: string }
  /** The session is closed, and the next message, or the one that waits, starts another on the same resources. */
  | { readonly type: "await message" }
  /** The session is closed, and another one starts at once: a person asked for it. */
  | { readonly type: "next session" }
  | { readonly type: "end"; readonly status: "stopped" }
  | {
      readonly type: "end"
      readonly status: "crashed"
      readonly kind: "BREAKER" | "FROZEN" | "LOG_FULL" | "NEWER_EVENTS" | "START_FAILED"
      readonly reason: string
    }

/** The end of a run. */
export type Ending = Extract<Next, { readonly type: "end" }>

/** The reasons with which an agent ends a session that has used up its budget, and one that a person wants to be followed by another. */
const BUDGET = "budget"
const NEW = "new"

const crashed = (reason: string, { breaker, now_ms }: EpochFacts): Next => {
  const next = crash(breaker, now_ms)
  return next.tripped === undefined
    ? { type: "restart", breaker: next, reason }
    : { type: "end", status: "crashed", kind: "BREAKER", reason: `${next.tripped}; the last time ${reason}` }
}

const notRun = ({ newer = "its agent is from a later version of Choir" }: EpochFacts): Next => ({
  type: "end",
  status: "crashed",
  kind: "NEWER_EVENTS",
  reason: newer
})

const frozen = (reason: string): Next => ({
  type: "end",
  status: "crashed",
  kind: "FROZEN",
  reason: `its session is frozen: ${reason}`
})

const logFull = (reason: string): Next => ({ type: "end", status: "crashed", kind: "LOG_FULL", reason })

export const decideRestart = (end: EpochEnd, facts: EpochFacts): Next => {
  if (end.type === "frozen") return frozen(end.reason)
  if (facts.frozen_reason !== null) return frozen(facts.frozen_reason)
  switch (end.type) {
    case "goodbye":
      if (end.reason === NEW) return { type: "next session" }
      if (end.reason !== BUDGET) return { type: "end", status: "stopped" }
      // A session at its budget before its first message would have a successor that does the same, forever.
      return facts.last_rev === 0 ? crashed("it ended before its first event", facts) : { type: "await message" }
    case "stopped":
      return { type: "end", status: "stopped" }
    case "crashed":
      if (facts.newer !== undefined) return notRun(facts)
      if (facts.full !== undefined) return logFull(facts.full)
      // The operator who started it is there to read why it failed; only an agent that came up once is tried again.
      return end.ready || facts.proven
        ? crashed(end.reason, facts)
        : { type: "end", status: "crashed", kind: "START_FAILED", reason: end.reason }
    case "newer":
      return notRun(facts)
    case "full":
      return logFull(end.reason)
  }
}
