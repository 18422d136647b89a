/** All that retention does to the tables of events; everything else about them is in sessions/. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { SessionId } from "#schema/Ids.ts"
import { EVENTS_REMOVED_MAX } from "./limits.ts"

/** Removes some events of a session that is archived or deleted, the newest first; how many. */
export const removeEvents = (sql: SqlClient.SqlClient, session_id: SessionId) =>
  Effect.map(
    sql`DELETE FROM choir_control.session_events WHERE session_id = ${session_id} AND rev IN (
      SELECT rev FROM choir_control.session_events WHERE session_id = ${session_id}
      ORDER BY rev DESC LIMIT ${EVENTS_REMOVED_MAX}) RETURNING rev`,
    (rows) => rows.length
  )
