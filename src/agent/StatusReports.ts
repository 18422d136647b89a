/**
 * Tells choird how jobs do (REPORT_STATUS, CoreEvent of spec 12.7). The log holds every report; this only shows the newest to people
 * who watch, so that it is coalesced and may be lost.
 */
import { Context, Effect, Layer, Queue } from "effect"
import type { CoreEvent } from "#schema/Core.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import type { LaneId } from "#schema/Ids.ts"
import { CORE_EVENT_CHARS_MAX, RPC_TIMEOUT_MS, STATUS_INTERVAL_MS } from "#src/shared/limits.ts"
import { coreOf } from "#src/shared/session/lanes.ts"
import { AgentSettings } from "./AgentSettings.ts"
import { Arbiter } from "./Arbiter.ts"
import { ControlPlane } from "./ControlPlane.ts"
import { jobProof } from "./jobProof.ts"
import { Replication } from "./Replication.ts"

/** Sends what jobs say of themselves. */
export class StatusReports extends Context.Service<
  StatusReports,
  {
    /** Keeps what a job said until it is sent; a newer one takes its place. */
    tell(lane: LaneId, event: CoreEvent): void
    /** Sends what there is, each lane's newest, at most once in STATUS_INTERVAL_MS. */
    readonly run: Effect.Effect<never>
  }
>()("choir/agent/StatusReports") {
  static readonly layer = Layer.effect(
    StatusReports,
    Effect.suspend(() => make())
  )
}

/** How a job ended, in the words of its CoreStopped. */
const ending = (event: ChoirEvent): CoreEvent | undefined =>
  event.event_type === "CoreStopped"
    ? {
        job_name: event.payload.job_name,
        kind: event.payload.outcome === "completed" ? "final_result" : "error",
        text: event.payload.summary.slice(0, CORE_EVENT_CHARS_MAX).toWellFormed()
      }
    : undefined

const make = Effect.fnUntraced(function* () {
  const arbiter = yield* Arbiter
  const plane = yield* ControlPlane
  const replication = yield* Replication
  const settings = yield* AgentSettings
  const newest = new Map<LaneId, CoreEvent>()
  const wake = yield* Queue.sliding<void>(1)

  const tell = (lane: LaneId, event: CoreEvent) => {
    newest.set(lane, event)
    Queue.offerUnsafe(wake, undefined)
  }
  yield* arbiter.onCommit((events) => {
    for (const event of events) {
      const end = ending(event)
      if (end !== undefined) tell(event.lane, end)
    }
  })

  const send = Effect.fnUntraced(function* (lane: LaneId, core_event: CoreEvent) {
    const state = arbiter.state()
    const job = coreOf(state, lane)
    const { budgets } = settings.current().config
    const tokens = budgets.total_session_tokens - state.spent.tokens
    const tool_calls = budgets.max_tool_calls_per_session - state.spent.tool_calls
    const status = {
      lane,
      state: job?.state ?? (core_event.kind === "final_result" ? "CORE_COMPLETED" : "CORE_TERMINATED"),
      step: job?.step ?? 0,
      ...(job?.skill === undefined ? {} : { skill: job.skill.name }),
      budget_remaining: { tokens, tool_calls },
      core_event
    }
    if (job === undefined) return yield* plane.report(status)
    yield* plane.report(status, yield* jobProof(job, replication))
  })
  const round = Effect.gen(function* () {
    yield* Queue.take(wake)
    const due = [...newest]
    newest.clear()
    yield* Effect.forEach(due, ([lane, event]) => Effect.ignore(Effect.timeout(send(lane, event), RPC_TIMEOUT_MS)), {
      discard: true
    })
    yield* Effect.sleep(STATUS_INTERVAL_MS)
  })
  return StatusReports.of({ tell, run: Effect.forever(round) })
})
