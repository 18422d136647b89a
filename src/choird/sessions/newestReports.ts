/** What running jobs said of themselves last, read from the log: the state names the event, and the event has the words. */
import { Effect } from "effect"
import type { CoreReport } from "#schema/Core.ts"
import type { JobName, SessionId } from "#schema/Ids.ts"
import { reported } from "#src/shared/session/reported.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import type { EventStore } from "./EventStore.ts"

export const newestReports = Effect.fnUntraced(function* (
  events: EventStore["Service"],
  session_id: SessionId,
  { cores }: SessionState
) {
  const revs = [...cores.values()].flatMap(({ report_rev }) => (report_rev === 0 ? [] : [report_rev]))
  const found = yield* events.named(session_id, revs)
  const byRev = new Map(found.map((event) => [event.rev, reported(event)]))
  return new Map<JobName, CoreReport>(
    [...cores.values()].flatMap(({ job_name, report_rev }) => {
      const report = byRev.get(report_rev)
      return report === undefined ? [] : [[job_name, report] as const]
    })
  )
})
