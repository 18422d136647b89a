/** When a message of a person is done with, as `choirctl chat --message` wants to know it (docs/protocol.md, Console). */
import type { InboxId } from "#schema/Ids.ts"
import { waitsForPerson } from "#src/shared/session/parked.ts"
import type { SessionState } from "#src/shared/session/State.ts"

/** The messages that something is still done for: the open turn, running jobs, and reports that are to be made. */
const openMessages = ({ cores, edge, reports }: SessionState): ReadonlySet<InboxId> => {
  const turns = [edge.turn, edge.parked?.turn].map((turn) =>
    turn?.kind === "report" ? turn.report.inbox_id : turn?.inbox_id
  )
  const ids = [...turns, ...[...cores.values(), ...reports].map(({ inbox_id }) => inbox_id)]
  return new Set(ids.filter((id) => id !== undefined))
}

/** The messages worth watching in a session that is met in this state: the open ones and the newest. */
export const watchedAtFirst = (state: SessionState): ReadonlySet<InboxId> =>
  state.last_inbox_id === 0n
    ? openMessages(state)
    : new Set([...openMessages(state), state.last_inbox_id.toString() as InboxId])

/** Of the watched messages, which were committed before, those that nothing more will be said about. */
export const settledIn = (state: SessionState, watched: ReadonlySet<InboxId>): ReadonlyArray<InboxId> => {
  // A turn that waits for a person keeps nobody else's message open.
  const isBusy = state.edge.state !== "EDGE_IDLE" && state.edge.state !== "EDGE_TERMINATED"
  if (isBusy && !waitsForPerson(state.edge)) return []
  const open = openMessages(state)
  return [...watched].filter((id) => !open.has(id))
}
