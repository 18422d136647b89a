/** What is open, taken from the state into every prompt, so that no summary can lose it: jobs, questions, obligations. */
import { reported, reportLine } from "#src/shared/session/reported.ts"
import type { CoreLane, PendingReport, SessionState } from "#src/shared/session/State.ts"
import type { ChatMessage } from "#src/agent/model/chatCompletion.ts"
import { note } from "./note.ts"
import type { Find } from "#src/agent/arbiter/Proposal.ts"

/** Characters of a job's newest report that edge's prompts repeat. */
const PROJECTED_REPORT_CHARS_MAX = 500

const short = (text: string): string =>
  text.length <= PROJECTED_REPORT_CHARS_MAX ? text : `${text.slice(0, PROJECTED_REPORT_CHARS_MAX).toWellFormed()}…`

const jobLine = ({ job_name, question, report_rev, started_at, step }: CoreLane, find: Find): string => {
  const said = report_rev === 0 ? undefined : reported(find(report_rev))
  const last = said === undefined ? "" : `; ${short(reportLine(said))}`
  const waits = question === undefined ? "" : "; it waits for the user's answer, to be passed on with choir-core-inject"
  return `job ${job_name}: step ${step}, since ${started_at}${last}${waits}`
}

/** Edge's open matters beside the one that it is asked about, or nothing when there are none. */
export const edgeProjection = (
  state: SessionState,
  find: Find,
  asked: PendingReport | undefined
): ReadonlyArray<ChatMessage> => {
  const { parked } = state.edge
  const lines = [
    ...(parked === undefined
      ? []
      : [
          `an earlier request of the user waits for a person's approval (${parked.calls.map(({ name }) => name).join(", ")}); it goes on by itself once that is decided`
        ]),
    ...[...state.cores.values()].map((core) => jobLine(core, find)),
    ...state.reports
      .filter((report) => report.rev !== asked?.rev)
      .map(({ job_name, kind }) =>
        kind === "stopped"
          ? `job ${job_name} ended; its report to the user is still to come`
          : `job ${job_name} asks something; the user is still to be told`
      ),
    ...(state.queued_inbox_id > state.last_inbox_id ? ["a further message of the user waits"] : [])
  ]
  if (lines.length === 0) return []
  return [note(`Open now:\n${lines.map((line) => `- ${line}`).join("\n")}`)]
}

/** What a job has to know of its own state beyond its events. */
export const coreProjection = ({ question }: CoreLane): ReadonlyArray<ChatMessage> =>
  question === undefined
    ? []
    : [note("Nobody has answered your question yet. Continue with what you can, or end and say what is missing.")]
