/** The deadline of a tool call (E12): one span for the wait for its turn, the intent barrier and the run. */
import { Effect } from "effect"
import type { PayloadOf } from "#schema/Event.ts"
import { shownName, type ToolName } from "#schema/Tool.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

export interface CallDeadline {
  /** Milliseconds until then, at least 0. */
  readonly left: Effect.Effect<number>
  /** The result of a call that went past it; `what` says in what it was. */
  passed(what: string): Effect.Effect<Omit<PayloadOf<"ToolResultCommitted">, "call_id">>
}

/** A deadline that begins now. */
export const makeCallDeadline = (tool: ToolName, timeout_ms: number): Effect.Effect<CallDeadline> =>
  Effect.map(monotonicMs, (began) => {
    const gone_ms = Effect.map(monotonicMs, (now) => now - began)
    return {
      left: Effect.map(gone_ms, (ms) => Math.max(0, timeout_ms - ms)),
      passed: (what) =>
        Effect.map(gone_ms, (duration_ms) => ({
          status: "timeout",
          summary: `${shownName(tool)} ${what} within ${timeout_ms} ms`,
          duration_ms
        }))
    }
  })
