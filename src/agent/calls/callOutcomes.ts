/** The outcomes of a lane's calls. Each call has one result: the first that is committed. */
import { Effect } from "effect"
import type { PayloadOf } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { withSources } from "#src/shared/session/sources.ts"
import type { OpenCall, SessionState } from "#src/shared/session/State.ts"
import { Arbiter, commitEnd } from "#src/agent/arbiter/Arbiter.ts"
import { closingCall } from "#src/agent/arbiter/decideCalls.ts"
import { inlineResult } from "#src/agent/model/prompt/inlineResult.ts"
import type { ToolOutcome } from "#src/agent/tools/Tool.ts"

/** A result as its event has it. */
export type ToolResult = Omit<PayloadOf<"ToolResultCommitted">, "call_id">

export const rejected = (summary: string, more: Partial<ToolResult> = {}): ToolResult => ({
  status: "rejected",
  summary,
  duration_ms: 0,
  ...more
})

/** The result of a run between two times. `dirty` says that it read what a job was writing (D26). */
export const resultOf = (
  { output, sources = [], ...outcome }: ToolOutcome,
  started_ms: number,
  now_ms: number,
  dirty: boolean
): ToolResult => ({
  ...outcome,
  ...(output === undefined ? {} : { output: inlineResult(output) }),
  ...(sources.length === 0 ? {} : { untrusted: true, sources: withSources([], sources) }),
  duration_ms: Math.max(0, now_ms - started_ms),
  ...(dirty ? { dirty: true } : {})
})

export const openCalls = (state: SessionState, lane: LaneId): ReadonlyArray<OpenCall> =>
  laneOf(state, lane)?.calls ?? []

/**
 * Commits the result of a call. A result is dropped when the call was closed meanwhile, as by a cancel. A result that no event can hold
 * becomes an error without its content, since a call that stays open would run again.
 */
export const finishCall = (lane: LaneId, call: OpenCall, result: ToolResult, in_doubt = false) =>
  Effect.flatMap(Arbiter, (arbiter) =>
    commitEnd(
      arbiter,
      { type: "Result", lane, call_id: call.call_id, result, in_doubt },
      (state) => openCalls(state, lane).some(({ call_id }) => call_id === call.call_id),
      (reason) => {
        const summary = `the result of ${call.name.slice(0, 64)} cannot be kept: ${reason}`
        const without: ToolResult = { status: "error", summary, duration_ms: result.duration_ms }
        return { type: "Result", lane, call_id: call.call_id, result: without }
      }
    )
  )

const close = (lane: LaneId, calls: ReadonlyArray<OpenCall>, why: string) =>
  Effect.forEach(
    calls,
    (call) => {
      const { in_doubt, result } = closingCall(lane, call, why)
      return finishCall(lane, call, result, in_doubt)
    },
    { discard: true }
  )

/** Closes the open calls of a lane that does not continue. */
export const closeOpen = (lane: LaneId, why: string) =>
  Effect.flatMap(Arbiter, (arbiter) => close(lane, openCalls(arbiter.state(), lane), why))

/** Closes the calls that have no locks yet, so that none of them begins when the calls before it are interrupted and release theirs. */
export const closeWaiting = (lane: LaneId, why: string) =>
  Effect.flatMap(Arbiter, (arbiter) => {
    const waiting = openCalls(arbiter.state(), lane).filter(({ stage }) => stage !== "committed")
    return close(lane, waiting, why)
  })

/** Commits the end of a call that is interrupted while it holds its locks. `began` says whether its tool was started. */
export const finishInterrupted = (lane: LaneId, { call_id }: OpenCall, began: boolean) =>
  Effect.flatMap(Arbiter, (arbiter) => {
    const call = openCalls(arbiter.state(), lane).find((open) => open.call_id === call_id)
    if (call?.stage !== "committed") return Effect.void
    if (began) {
      const { in_doubt, result } = closingCall(lane, call, "it was interrupted while it ran")
      return finishCall(lane, call, result, in_doubt)
    }
    const summary = "it was interrupted before it began"
    return finishCall(lane, call, { status: "cancelled", summary, duration_ms: 0 })
  })

const IN_DOUBT =
  "the agent went down while this ran; whether it took effect, once or twice, is not known: check before you do it again, and tell the user"

/** Closes the calls of an earlier epoch whose outcome is unknown. Calls without an effect stay open and run again (D3, R6). */
export const closeInDoubt = Effect.flatMap(Arbiter, (arbiter) => {
  const state = arbiter.state()
  const lanes = [EDGE, ...[...state.cores.values()].map(({ lane }) => lane)]
  const inDoubt = lanes.flatMap((lane) =>
    openCalls(state, lane)
      .filter(({ effect, stage }) => stage === "committed" && effect !== "none")
      .map((call) => ({ lane, call }))
  )
  return Effect.forEach(
    inDoubt,
    ({ call, lane }) =>
      finishCall(lane, call, {
        status: "unknown_after_crash",
        summary: IN_DOUBT,
        ...(call.effect === "external" ? { acted: "unknown" } : {}),
        duration_ms: 0
      }),
    { discard: true }
  )
})
