/** Edge's steps for each message of the user's: its own turn, the reports on the jobs that it led to, and the start of each of them. */
import type { InboxId } from "#schema/Ids.ts"
import type { SessionState, Turn } from "./State.ts"

/** The message that a turn is about. A report belongs to the message whose turn started the job. */
export const messageOf = (turn: Turn | undefined): InboxId | undefined =>
  turn?.kind === "report" ? turn.report.inbox_id : turn?.inbox_id

export const stepsFor = ({ message_steps }: SessionState, inbox_id: InboxId | undefined): number =>
  inbox_id === undefined ? 0 : (message_steps.get(inbox_id) ?? 0)

/** Messages of which something is open. */
const openMessages = ({ cores, edge, reports }: SessionState): ReadonlySet<InboxId | undefined> =>
  new Set([
    messageOf(edge.turn),
    messageOf(edge.parked?.turn),
    ...reports.map(({ inbox_id }) => inbox_id),
    ...[...cores.values()].map(({ inbox_id }) => inbox_id)
  ])

/** With one more step for a message. Messages of which nothing is open are forgotten when a new one comes. */
export const withStep = (state: SessionState, inbox_id: InboxId | undefined): SessionState => {
  if (inbox_id === undefined) return state
  const known = state.message_steps
  const open = known.has(inbox_id) ? undefined : openMessages(state)
  const kept = open === undefined ? known : [...known].filter(([id]) => open.has(id))
  return { ...state, message_steps: new Map(kept).set(inbox_id, (known.get(inbox_id) ?? 0) + 1) }
}
