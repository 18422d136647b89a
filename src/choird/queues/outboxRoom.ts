/** The room of an agent for messages that nobody has read yet: what is beyond is counted in one notice, or waits with the agent (D6). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, JobName, ResourceName, SessionId } from "#schema/Ids.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"
import { MIB } from "#src/shared/text/bytesText.ts"

/** Undelivered rows of an agent at one DM, and bytes of their texts, up to which its texts that answer nobody are stored. */
export const UNASKED_ROWS_MAX = 1000
export const UNASKED_BYTES_MAX = 16 * MIB
/** The limits up to which its answers to people are stored, and files that it sends unasked. */
export const UNDELIVERED_ROWS_MAX = 4000
export const UNDELIVERED_BYTES_MAX = 64 * MIB

/** The source of the notice that counts the messages beyond. Its last part is their number. */
export const UNSHOWN = "unshown/"

interface Waiting {
  readonly rows: number
  readonly bytes: number
}

/** Answers to people are never left out; files that nobody asked for, and notices on the way to an answer, have as much room as these, and other news has less. */
export type Room = "answer" | "files" | "news"

/** A message that an event makes. */
interface Said {
  readonly dm: ResourceName
  readonly text: string
  readonly room: Room
}

/**
 * The messages that have room, and those that have none; undefined where an answer has none. Pure.
 *
 * @param waiting the rows of each DM. A DM that nobody reads takes no room from the others.
 */
export const withRoom = <M extends Said>(waiting: ReadonlyMap<ResourceName, Waiting>, messages: ReadonlyArray<M>) => {
  const taken: Array<M> = []
  const beyond: Array<M> = []
  const used = new Map(waiting)
  for (const message of messages) {
    const [rows_max, bytes_max] =
      message.room === "news" ? [UNASKED_ROWS_MAX, UNASKED_BYTES_MAX] : [UNDELIVERED_ROWS_MAX, UNDELIVERED_BYTES_MAX]
    const { bytes, rows } = used.get(message.dm) ?? { rows: 0, bytes: 0 }
    const after = bytes + Buffer.byteLength(message.text)
    if (rows < rows_max && after <= bytes_max) {
      taken.push(message)
      used.set(message.dm, { rows: rows + 1, bytes: after })
    } else if (message.room === "answer") return undefined
    else beyond.push(message)
  }
  return { taken, beyond }
}

/**
 * The undelivered rows that an agent's events made, by DM. choird's own rows have bounds of their own.
 *
 * @param replaced the jobs whose earlier lines give way to the messages that come.
 */
export const waitingOf = Effect.fnUntraced(function* (
  { agent_id, session_id }: { readonly agent_id: AgentId; readonly session_id: SessionId },
  replaced: ReadonlyArray<JobName>
) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Waiting & { readonly dm: ResourceName }>`SELECT dm, count(*)::int AS rows,
      sum(octet_length(text))::float8 AS bytes
    FROM choir_control.outbox
    WHERE agent_id = ${agent_id} AND delivered_at IS NULL AND failed_at IS NULL AND source = 'event'
      AND NOT (session_id = ${session_id} AND split_part(source_id, ':', 3) = ANY(${replaced}::text[]))
    GROUP BY dm`
  return new Map(rows.map(({ bytes, dm, rows: count }) => [dm, { rows: count, bytes }]))
})

/** Messages of an agent at a DM that leave no sure room for its next answer there. */
export interface Crowd {
  readonly agent_id: AgentId
  readonly dm: ResourceName
  readonly count: number
}

/** Where the next answer of an agent may have no room, so that the agent waits with it until somebody reads. */
export const crowds = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Crowd>`SELECT agent_id, dm, count(*)::int AS count
    FROM choir_control.outbox
    WHERE delivered_at IS NULL AND failed_at IS NULL AND source = 'event' GROUP BY agent_id, dm
    HAVING count(*) >= ${UNDELIVERED_ROWS_MAX} OR sum(octet_length(text)) > ${UNDELIVERED_BYTES_MAX - EVENT_BYTES_MAX}
    ORDER BY agent_id, dm`
})

/**
 * The notice about messages beyond the room, and those that the one of the same session before it counted, which nobody has read and which
 * it replaces. It names one log, so it counts no other session's.
 */
export const unshownNotice = Effect.fnUntraced(function* (
  { agent_id, session_id }: { readonly agent_id: AgentId; readonly session_id: SessionId },
  place: { readonly gateway: ResourceName; readonly dm: ResourceName },
  { count, rev }: { readonly count: number; readonly rev: number }
) {
  const sql = yield* SqlClient.SqlClient
  const earlier = yield* sql<{ readonly count: number }>`DELETE FROM choir_control.outbox
    WHERE dm = ${place.dm} AND agent_id = ${agent_id} AND session_id = ${session_id} AND delivered_at IS NULL AND failed_at IS NULL
      AND source = 'choird' AND starts_with(source_id, ${UNSHOWN}) RETURNING split_part(source_id, '/', 3)::int AS count`
  const all = earlier.reduce((sum, each) => sum + each.count, count)
  return {
    ...place,
    source: "choird",
    source_id: `${UNSHOWN}${session_id}:${rev}:${place.dm}/${all}`,
    agent_id,
    session_id,
    kind: "notice",
    text: `${all} further ${all === 1 ? "message" : "messages"} from ${agent_id} ${all === 1 ? "is" : "are"} not shown here, because too many of its messages are unread. The log has them all: choirctl session events ${session_id}`,
    in_reply_to: null
  } as const
})
