/** How the calls of a lane end: each has one result, the first that is committed. */
import { Effect } from "effect"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { OpenCall, SessionState } from "#src/shared/session/State.ts"
import { type Arbiter, commitEnd } from "#src/agent/arbiter/Arbiter.ts"
import { closingCall } from "#src/agent/arbiter/decideCalls.ts"
import type { ToolResult } from "#src/agent/tools/toolResult.ts"

export const openCalls = (state: SessionState, lane: LaneId): ReadonlyArray<OpenCall> =>
  laneOf(state, lane)?.calls ?? []

export type CallEnds = ReturnType<typeof makeCallEnds>

export const makeCallEnds = (arbiter: Arbiter["Service"]) => {
  /**
   * A result of a call that was closed meanwhile, as by a cancel, is dropped: the first one stands. One that no event can hold is
   * an error without its content, since a call that stays open would run again.
   */
  const finish = (lane: LaneId, call: OpenCall, result: ToolResult, in_doubt = false) =>
    commitEnd(
      arbiter,
      { type: "Result", lane, call_id: call.call_id, result, in_doubt },
      (state) => openCalls(state, lane).some(({ call_id }) => call_id === call.call_id),
      (reason) => {
        const summary = `the result of ${call.name.slice(0, 64)} cannot be kept: ${reason}`
        const told: ToolResult = { status: "error", summary, duration_ms: result.duration_ms }
        return { type: "Result", lane, call_id: call.call_id, result: told }
      }
    )

  const close = (lane: LaneId, calls: ReadonlyArray<OpenCall>, why: string) =>
    Effect.forEach(
      calls,
      (call) => {
        const { in_doubt, result } = closingCall(lane, call, why)
        return finish(lane, call, result, in_doubt)
      },
      { discard: true }
    )

  /** Closes what is open, for a lane that does not go on. */
  const closeOpen = (lane: LaneId, why: string) =>
    Effect.suspend(() => close(lane, openCalls(arbiter.state(), lane), why))

  /** Closes what was not granted yet, so that it does not begin when the calls before it are interrupted and let go of their locks. */
  const closeWaiting = (lane: LaneId, why: string) =>
    Effect.suspend(() => {
      const waiting = openCalls(arbiter.state(), lane).filter(({ stage }) => stage !== "committed")
      return close(lane, waiting, why)
    })

  /**
   * Commits the end of a call that is interrupted after its locks were granted, while it still holds them. `began` says whether its tool
   * had been started.
   */
  const interrupted = (lane: LaneId, { call_id }: OpenCall, began: boolean) =>
    Effect.suspend(() => {
      const call = openCalls(arbiter.state(), lane).find((open) => open.call_id === call_id)
      if (call?.stage !== "committed") return Effect.void
      if (began) {
        const { in_doubt, result } = closingCall(lane, call, "it was interrupted while it ran")
        return finish(lane, call, result, in_doubt)
      }
      return finish(lane, call, { status: "cancelled", summary: "it was interrupted before it began", duration_ms: 0 })
    })

  /** Closes the calls of an earlier epoch whose end is unknown; those without effect stay open and run again (D3, R6). */
  const closeInDoubt = Effect.suspend(() => {
    const state = arbiter.state()
    const lanes = [EDGE, ...[...state.cores.values()].map(({ lane }) => lane)]
    const inDoubt = lanes.flatMap((lane) =>
      openCalls(state, lane)
        .filter(({ effect, stage }) => stage === "committed" && effect !== "none")
        .map((call) => ({ lane, call }))
    )
    const summary =
      "the agent went down while this ran; whether it took effect, once or twice, is not known: check before you do it again, and tell the user"
    return Effect.forEach(
      inDoubt,
      ({ call, lane }) => finish(lane, call, { status: "unknown_after_crash", summary, duration_ms: 0 }),
      { discard: true }
    )
  })

  return { finish, closeOpen, closeWaiting, closeInDoubt, interrupted }
}
