/** The runtime's report on a job, where the model gives none. */
import type { ChoirEvent } from "#schema/Event.ts"
import { reportOf } from "#src/shared/session/jobReport.ts"
import type { PendingReport } from "#src/shared/session/State.ts"

export const plainReport = ({ job_name }: PendingReport, event: ChoirEvent | undefined): string => {
  if (event?.event_type === "CoreStopped")
    return `The job ${job_name} ended (${event.payload.outcome}): ${event.payload.summary}`
  return `The job ${job_name} asks: ${reportOf(event)?.text ?? "it did not say what"}`
}
