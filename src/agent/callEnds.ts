/** How the calls of a lane end: each has one result, the first that is committed. */
import { Effect } from "effect"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { OpenCall, SessionState } from "#src/shared/session/State.ts"
import type { Arbiter } from "./Arbiter.ts"
import type { ToolResult } from "./toolResult.ts"

export const openCalls = (state: SessionState, lane: LaneId): ReadonlyArray<OpenCall> =>
  laneOf(state, lane)?.calls ?? []

export const makeCallEnds = (arbiter: Arbiter["Service"]) => {
  /**
   * A result of a call that was closed meanwhile, as by a cancel, is dropped: the first one stands. One that no event can hold is
   * an error without its content, since a call that stays open would run again.
   */
  const finish = (lane: LaneId, call: OpenCall, result: ToolResult) =>
    arbiter.commit({ type: "Result", lane, call_id: call.call_id, result }).pipe(
      Effect.catchIf(
        ({ unfit }) => unfit === true,
        ({ reason }) => {
          const summary = `the result of ${call.name.slice(0, 64)} cannot be kept: ${reason}`
          const told: ToolResult = { status: "error", summary, duration_ms: result.duration_ms }
          return arbiter.commit({ type: "Result", lane, call_id: call.call_id, result: told })
        }
      ),
      Effect.ignore
    )

  /** Closes what is open, for a lane that does not go on or was interrupted. */
  const closeOpen = (lane: LaneId, status: "cancelled", why: string) =>
    Effect.forEach(
      openCalls(arbiter.state(), lane),
      (call) => {
        // What leaves the machine may have left it before the interrupt came.
        const doubt =
          call.stage === "committed" && call.effect === "external" ? "; whether it took effect is not known" : ""
        return finish(lane, call, { status, summary: `${why}${doubt}`, duration_ms: 0 })
      },
      { discard: true }
    )

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
      "the agent went down while this ran; whether it took effect is not known: check before you do it again, and tell the user"
    return Effect.forEach(
      inDoubt,
      ({ call, lane }) => finish(lane, call, { status: "unknown_after_crash", summary, duration_ms: 0 }),
      { discard: true }
    )
  })

  return { finish, closeOpen, closeInDoubt }
}
