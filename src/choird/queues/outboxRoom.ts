/** The room of an agent for messages that nobody has read yet: what is beyond is counted in one notice, or waits with the agent (D6). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, ResourceName, SessionId } from "#schema/Ids.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"

const MIB = 1024 ** 2

/** Undelivered rows of an agent, and bytes of their texts, up to which its messages that answer nobody are stored. */
export const UNASKED_ROWS_MAX = 1000
export const UNASKED_BYTES_MAX = 16 * MIB
/** Those up to which its answers to people are stored. */
export const UNDELIVERED_ROWS_MAX = 4000
export const UNDELIVERED_BYTES_MAX = 64 * MIB

/** The source of the notice that counts the messages beyond. Its last part is their number. */
export const UNSHOWN = "unshown/"

interface Waiting {
  readonly rows: number
  readonly bytes: number
}

/** A message that an event makes. */
interface Said {
  readonly text: string
  /** Whether it answers a message of a person, other than by a notice. */
  readonly answers: boolean
}

/** The messages that have room, and those that have none; undefined where an answer has none. Pure. */
export const withRoom = <M extends Said>(waiting: Waiting, messages: ReadonlyArray<M>) => {
  const taken: Array<M> = []
  const beyond: Array<M> = []
  let { bytes, rows } = waiting
  for (const message of messages) {
    const [rows_max, bytes_max] = message.answers
      ? [UNDELIVERED_ROWS_MAX, UNDELIVERED_BYTES_MAX]
      : [UNASKED_ROWS_MAX, UNASKED_BYTES_MAX]
    const added = Buffer.byteLength(message.text)
    if (rows < rows_max && bytes + added <= bytes_max) {
      taken.push(message)
      rows += 1
      bytes += added
    } else if (message.answers) return undefined
    else beyond.push(message)
  }
  return { taken, beyond }
}

/** The undelivered rows of an agent, at all DMs. */
export const waitingOf = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Waiting>`SELECT count(*)::int AS rows, coalesce(sum(octet_length(text)), 0)::float8 AS bytes
    FROM choir_control.outbox WHERE agent_id = ${agent_id} AND delivered_at IS NULL AND failed_at IS NULL`
  return row ?? { rows: 0, bytes: 0 }
})

/** The agents whose next answer may have no room, so that they wait until somebody reads. */
export const waitingAgents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ readonly agent_id: AgentId; readonly count: number }>`SELECT agent_id, count(*)::int AS count
    FROM choir_control.outbox WHERE delivered_at IS NULL AND failed_at IS NULL GROUP BY agent_id
    HAVING count(*) >= ${UNDELIVERED_ROWS_MAX} OR sum(octet_length(text)) > ${UNDELIVERED_BYTES_MAX - EVENT_BYTES_MAX}
    ORDER BY agent_id`
})

/** The notice about messages beyond the room, and those that the one before it counted, which nobody has read and which it replaces. */
export const unshownNotice = Effect.fnUntraced(function* (
  { agent_id, session_id }: { readonly agent_id: AgentId; readonly session_id: SessionId },
  place: { readonly gateway: ResourceName; readonly dm: ResourceName },
  { count, rev }: { readonly count: number; readonly rev: number }
) {
  const sql = yield* SqlClient.SqlClient
  const earlier = yield* sql<{ readonly count: number }>`DELETE FROM choir_control.outbox
    WHERE dm = ${place.dm} AND agent_id = ${agent_id} AND delivered_at IS NULL AND failed_at IS NULL
      AND source = 'choird' AND starts_with(source_id, ${UNSHOWN}) RETURNING split_part(source_id, '/', 3)::int AS count`
  const all = earlier.reduce((sum, each) => sum + each.count, count)
  return {
    ...place,
    source: "choird",
    source_id: `${UNSHOWN}${session_id}:${rev}:${place.dm}/${all}`,
    agent_id,
    session_id,
    kind: "notice",
    text: `${all} further ${all === 1 ? "message" : "messages"} of ${agent_id} ${all === 1 ? "is" : "are"} not shown here, because too many of its messages are unread. The log has them all: choirctl session events ${session_id}`,
    in_reply_to: null
  } as const
})
