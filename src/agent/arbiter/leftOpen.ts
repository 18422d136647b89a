/**
 * The open points of a session that ends, by its log and without a model: the calls that already ran for the message which the next session answers,
 * so that none runs twice, and the jobs that ended before they were done.
 */
import { EDGE } from "#schema/Ids.ts"
import { SUMMARY_LIMITS } from "#schema/Summary.ts"
import { shownName } from "#schema/Tool.ts"
import type { PendingReport, SessionState } from "#src/shared/session/State.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import type { Find } from "./Command.ts"

/** Half of a summary's entries: the other half is its model's. */
const LEFT_OPEN_MAX = SUMMARY_LIMITS.entries / 2
/** Events of the open turn that are looked at, the newest. */
const EVENTS_LOOKED_AT_MAX = 2000

const entry = (text: string): string => firstPart(text.replaceAll(/\s+/gu, " ").trim(), SUMMARY_LIMITS.entry_chars)

/** The calls of the open turn that changed something or acted outside, the newest last. */
const doneInTurn = ({ edge: { turn }, rev: head }: SessionState, find: Find): ReadonlyArray<string> => {
  if (turn === undefined) return []
  const asked = new Map<string, string>()
  const done: Array<string> = []
  for (let rev = Math.max(turn.rev, head - EVENTS_LOOKED_AT_MAX); rev <= head; rev += 1) {
    const event = find(rev)
    if (event?.lane !== EDGE) continue
    if (event.event_type === "ToolCallRequested" && event.payload.effect !== "none")
      asked.set(event.payload.call_id, `${shownName(event.payload.tool)} ${JSON.stringify(event.payload.input)}`)
    if (event.event_type !== "ToolResultCommitted") continue
    const call = asked.get(event.payload.call_id)
    const { status, summary } = event.payload
    if (call !== undefined && status !== "rejected" && status !== "cancelled")
      done.push(`Already done for the message that is not answered yet (${status}: ${summary}): ${call}`)
  }
  return done
}

const endedJob = ({ edge: { window } }: SessionState, { job_id, rev }: PendingReport, find: Find) => {
  const stopped = find(rev)
  if (stopped?.event_type !== "CoreStopped" || stopped.payload.outcome === "completed") return []
  const { job_name, outcome, summary } = stopped.payload
  const started = window
    .map(find)
    .find((event) => event?.event_type === "CoreStarted" && event.payload.job_id === job_id)
  const task = started?.event_type === "CoreStarted" ? `, whose task was: ${started.payload.start.task_spec}` : ""
  return [`The job ${job_name} ended before it was done (${outcome}: ${summary})${task}`]
}

export const leftOpen = (state: SessionState, carried: boolean, find: Find): ReadonlyArray<string> => {
  const done = carried ? doneInTurn(state, find) : []
  const jobs = state.reports.flatMap((report) => endedJob(state, report, find))
  return [...done.slice(-LEFT_OPEN_MAX), ...jobs].slice(0, LEFT_OPEN_MAX).map(entry)
}
