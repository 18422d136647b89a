/** When a message of a person is done with, as `choirctl chat --message` wants to know it (wire.md, Console). */
import type { InboxId } from "#schema/Ids.ts"
import type { SessionState } from "#src/shared/session/State.ts"

/** The messages that something is still done for: the open turn, running jobs, and reports that are to be made. */
const openMessages = ({ cores, edge, reports }: SessionState): ReadonlySet<InboxId> => {
  const turn = edge.turn?.kind === "turn" ? edge.turn.inbox_id : edge.turn?.report.inbox_id
  const ids = [turn, ...[...cores.values(), ...reports].map(({ inbox_id }) => inbox_id)]
  return new Set(ids.filter((id) => id !== undefined))
}

/** The messages worth watching in a session that is met in this state: the open ones and the newest. */
export const watchedAtFirst = (state: SessionState): ReadonlySet<InboxId> =>
  state.last_inbox_id === 0n
    ? openMessages(state)
    : new Set([...openMessages(state), state.last_inbox_id.toString() as InboxId])

/** Of the watched messages, which were committed before, those that nothing more will be said about. */
export const settledIn = (state: SessionState, watched: ReadonlySet<InboxId>): ReadonlyArray<InboxId> => {
  if (state.edge.state !== "EDGE_IDLE" && state.edge.state !== "EDGE_TERMINATED") return []
  const open = openMessages(state)
  return [...watched].filter((id) => !open.has(id))
}
