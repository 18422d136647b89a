/** The message of the turn in which an agent wrote something, as its log has it. */
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { EDGE, type LaneId, type SessionId } from "#schema/Ids.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { readPage } from "#src/choird/sessions/storedEvents.ts"
import { eventOf, readRow } from "#src/shared/events/eventRow.ts"

/** Canonical bytes of a turn that are looked through for the end of the one before. */
const TURN_BYTES_MAX = 256 * 1024

/** Where in a session something was written. */
export interface WrittenAt {
  readonly session_id: SessionId
  readonly lane: LaneId
  readonly rev: number
}

const isAnswered = (event: ChoirEvent): boolean =>
  event.event_type === "AgentMessage" && event.lane === EDGE && event.payload.kind !== "notice"

/** The person's own words; undefined of a job, of a turn that no message began, and of words that somebody else wrote. */
export const turnMessage = Effect.fnUntraced(function* ({ lane, rev, session_id }: WrittenAt) {
  if (lane !== EDGE) return undefined
  const sql = yield* SqlClient.SqlClient
  const [asked] = yield* sql<{ readonly rev: number }>`SELECT rev FROM choir_control.session_events
    WHERE session_id = ${session_id} AND rev < ${rev} AND event_type = 'UserMsg' ORDER BY rev DESC LIMIT 1`
  if (asked === undefined) return undefined
  const rows = yield* readPage(session_id, asked.rev, TURN_BYTES_MAX)
  const events = rows
    .filter((row) => row.rev < rev)
    .flatMap((row) => {
      const event = Result.flatMap(
        Result.mapError(readRow(row), (reason) => ({ reason })),
        eventOf
      )
      return Result.isSuccess(event) ? [event.success] : []
    })
  const [message, ...after] = events
  if (message?.event_type !== "UserMsg" || message.payload.forwarded === true) return undefined
  return after.length < rev - asked.rev - 1 || after.some(isAnswered) ? undefined : message.payload.text
})
