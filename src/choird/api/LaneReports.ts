/** What each lane last said of itself by REPORT_STATUS: for people who watch, never for decisions. */
import { Context, Effect, Layer } from "effect"
import type { ReportStatus } from "#schema/AgentApi.ts"
import type { SessionId } from "#schema/Ids.ts"
import { LANES_REPORTED_MAX } from "#src/shared/limits.ts"

export class LaneReports extends Context.Service<
  LaneReports,
  {
    /** Keeps the report in the place of the lane's last one; beyond LANES_REPORTED_MAX lanes the one silent for longest goes. */
    report(session_id: SessionId, status: ReportStatus): Effect.Effect<void>
    /** The newest report of each lane, the one silent for longest first. */
    latest(session_id: SessionId): Effect.Effect<ReadonlyArray<ReportStatus>>
    /** Drops the reports of a session whose socket closes. */
    forget(session_id: SessionId): Effect.Effect<void>
  }
>()("choir/choird/LaneReports") {
  static readonly layer = Layer.sync(LaneReports, () => {
    const sessions = new Map<SessionId, Map<string, ReportStatus>>()
    return LaneReports.of({
      report: (session_id, status) =>
        Effect.sync(() => {
          const lanes = sessions.get(session_id) ?? new Map<string, ReportStatus>()
          sessions.set(session_id, lanes)
          lanes.delete(status.lane)
          lanes.set(status.lane, status)
          const [oldest] = lanes.keys()
          if (lanes.size > LANES_REPORTED_MAX && oldest !== undefined) lanes.delete(oldest)
        }),
      latest: (session_id) => Effect.sync(() => [...(sessions.get(session_id)?.values() ?? [])]),
      forget: (session_id) => Effect.sync(() => void sessions.delete(session_id))
    })
  })
}
