/**
 * The message and the summary that a session which reached a limit leaves to the next one of its agent (D58). All of it is written with the event that ends the session, and
 * with the row of the next session, so that no crash between the two loses a message or has it answered twice.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { type AgentId, EDGE, type SessionId } from "#schema/Ids.ts"
import type { Source } from "#schema/Source.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { rowId } from "#src/choird/database/rowId.ts"

/** Whether an event ends its session at a limit. Pure. */
export const isLimitEnd = (event: ChoirEvent): event is EventOf<"Cancelled"> =>
  event.event_type === "Cancelled" &&
  event.payload.target === EDGE &&
  event.payload.turn === undefined &&
  event.payload.by === "budget"

/** The label of a summary by a model that had read text from outside; what an old history does not name counts as memory. */
export const carriedSources = ({ sources, tainted }: SessionState["edge"]): ReadonlyArray<Source> =>
  tainted && sources.length === 0 ? ["memory"] : sources

/**
 * The message without an answer waits again, and the session says that the next one continues it. An order for a new conversation that waited
 * for the answer still holds.
 */
export const carryOver = Effect.fnUntraced(function* (
  { agent_id, session_id }: { readonly agent_id: AgentId; readonly session_id: SessionId },
  events: ReadonlyArray<ChoirEvent>,
  { edge }: SessionState
) {
  const end = events.find(isLimitEnd)
  if (end === undefined) return
  const sql = yield* SqlClient.SqlClient
  const { carried, signal_id } = end.payload
  if (signal_id === undefined)
    yield* sql`UPDATE choir_control.sessions SET carries_on = ${canonicalJson({ sources: carriedSources(edge) })}::jsonb
      WHERE session_id = ${session_id}`
  const id = carried === undefined ? undefined : rowId(carried)
  if (id === undefined) return
  yield* sql`UPDATE choir_control.inbox SET acked_rev = NULL, carried = true
    WHERE inbox_id = ${id} AND agent_id = ${agent_id} AND session_id = ${session_id}`
})

/** Tells a new session of the agent's last one, where that is continued. To be called before the new one is the agent's last. */
export const continueLast = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`INSERT INTO choir_control.signals (session_id, kind, payload)
    SELECT ${session_id}::text, 'Continue',
      jsonb_build_object('session_id', s.session_id, 'summary', s.summary, 'sources', s.carries_on -> 'sources')
    FROM choir_control.agents AS a JOIN choir_control.sessions AS s ON s.session_id = a.last_session_id
    WHERE a.agent_id = ${agent_id} AND s.status = 'closed' AND s.carries_on IS NOT NULL AND s.summary IS NOT NULL`
})

/** The next session of the agent begins without what was said before. */
export const continueNothing = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE choir_control.sessions SET carries_on = NULL WHERE agent_id = ${agent_id} AND carries_on IS NOT NULL`
})
