/** The outcomes of a lane's calls. Each call has one result: the first that is committed. */
import { Effect } from "effect"
import type { PayloadOf } from "#schema/Event.ts"
import type { LaneId } from "#schema/Ids.ts"
import { shownName } from "#schema/Tool.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { withSources } from "#src/shared/session/sources.ts"
import type { OpenCall, SessionState } from "#src/shared/session/State.ts"
import type { Outbound, TouchedFiles } from "#src/agent/arbiter/Command.ts"
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
export const resultOf = (outcome: ToolOutcome, started_ms: number, now_ms: number, dirty: boolean): ToolResult => {
  const { files: _files, output, sends: _sends, sources = [], ...rest } = outcome
  return {
    ...rest,
    ...(output === undefined ? {} : { output: inlineResult(output) }),
    ...(sources.length === 0 ? {} : { untrusted: true, sources: withSources([], sources) }),
    duration_ms: Math.max(0, now_ms - started_ms),
    ...(dirty ? { dirty: true } : {})
  }
}

export const openCalls = (state: SessionState, lane: LaneId): ReadonlyArray<OpenCall> =>
  laneOf(state, lane)?.calls ?? []

/**
 * Commits the result of a call. A result is dropped when the call was closed meanwhile, as by a cancel. A result that no event can hold
 * becomes an error without its content, since a call that stays open would run again.
 */
export const finishCall = (
  lane: LaneId,
  call: OpenCall,
  result: ToolResult,
  {
    files,
    in_doubt = false,
    sends
  }: {
    readonly files?: TouchedFiles | undefined
    readonly in_doubt?: boolean
    readonly sends?: Outbound | undefined
  } = {}
) =>
  Effect.flatMap(Arbiter, (arbiter) =>
    commitEnd(
      arbiter,
      {
        type: "Result",
        lane,
        call_id: call.call_id,
        result,
        in_doubt,
        ...(sends === undefined ? {} : { sends }),
        ...(files === undefined ? {} : { files })
      },
      (state) => openCalls(state, lane).some(({ call_id }) => call_id === call.call_id),
      (reason) => {
        const summary = `the result of ${shownName(call.name.slice(0, 64))} cannot be kept: ${reason}`
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
      return finishCall(lane, call, result, { in_doubt })
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
      return finishCall(lane, call, result, { in_doubt })
    }
    const summary = "it was interrupted before it began"
    return finishCall(lane, call, { status: "cancelled", summary, duration_ms: 0 })
  })
