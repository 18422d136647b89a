/** The rows of the inbox that wait for further pieces, within the transactions of Inbox.ts. An agent's lock is held. */
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, InboxId } from "#schema/Ids.ts"
import { canonicalJson, storableJson } from "#src/shared/text/canonicalJson.ts"
import type { Incoming } from "./Incoming.ts"
import { type Held, heldUntil, joined, JOIN_MS_MAX } from "./messageJoin.ts"

/** Held messages that are let go in one transaction. */
const RELEASED_PAGE_MAX = 100

type HeldRow = Held & { readonly inbox_id: InboxId }

/** The message that the sender's next one may continue. */
export const heldOf = Effect.fnUntraced(function* ({ agent_id, dm, gateway, join }: Incoming) {
  if (join === undefined) return undefined
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<HeldRow>`SELECT inbox_id::text, text, attachments, joining FROM choir_control.inbox
    WHERE agent_id = ${agent_id} AND gateway = ${gateway} AND dm = ${dm} AND held_until IS NOT NULL
      AND joining ->> 'sender' = ${join.sender}`
  return row
})

/** Ends a hold; the row is signalled by the caller. */
export const letGo = Effect.fnUntraced(function* (inbox_id: InboxId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE choir_control.inbox SET held_until = NULL, joining = NULL WHERE inbox_id = ${inbox_id}::bigint`
})

/** Adds a piece to a held message; answers whether it is one. The piece keeps a row without a text, by which its repetition is known. */
export const append = Effect.fnUntraced(function* (held: HeldRow, piece: Incoming) {
  const { attachments, client_id, forwarded = false, gateway, join, message_id, thread_id } = piece
  const whole = join === undefined ? undefined : joined(held, join, attachments)
  if (join === undefined || whole === undefined) return false
  const sql = yield* SqlClient.SqlClient
  const now_ms = yield* Clock.currentTimeMillis
  yield* sql`UPDATE choir_control.inbox SET text = ${storableJson(whole.text)},
      attachments = ${canonicalJson(storableJson(whole.attachments))}::jsonb,
      joining = ${canonicalJson(whole.joining)}::jsonb,
      forwarded = forwarded OR ${forwarded},
      held_until = to_timestamp(${heldUntil(whole.joining, join.quiet_ms, now_ms) / 1000}::float8)
    WHERE inbox_id = ${held.inbox_id}::bigint`
  // Its revision is that of no event: nothing waits for it.
  yield* sql`INSERT INTO choir_control.inbox
      (gateway, client_id, agent_id, dm, text, message_id, thread_id, joined_to, acked_rev)
    VALUES (${gateway}, ${client_id}, ${piece.agent_id}, ${piece.dm}, '', ${message_id ?? null}, ${thread_id ?? null},
      ${held.inbox_id}::bigint, 0)`
  if (join.quiet_ms === 0) yield* letGo(held.inbox_id)
  return true
})

/**
 * The messages that were held for long enough, of one agent or of all. Those of gateways that are not `ready` wait up to JOIN_MS_MAX. One that
 * began in the future did so before the host's clock was set back, and nobody knows how long ago.
 */
export const rowsDue = Effect.fnUntraced(function* (
  ready: ReadonlyArray<string>,
  now_ms: number,
  agent_id: AgentId | null = null
) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ readonly inbox_id: InboxId; readonly agent_id: AgentId }>`SELECT inbox_id::text, agent_id
    FROM choir_control.inbox WHERE ((joining ->> 'since_ms')::float8 > ${now_ms}
        OR held_until <= to_timestamp(${now_ms / 1000}::float8)
          AND (gateway = ANY(${[...ready]}::text[]) OR (joining ->> 'since_ms')::float8 <= ${now_ms - JOIN_MS_MAX}))
      AND (${agent_id}::text IS NULL OR agent_id = ${agent_id})
    ORDER BY inbox.inbox_id LIMIT ${RELEASED_PAGE_MAX}`
})

/** When the next hold ends, in milliseconds since 1970. */
export const nextDue = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly due_ms: number | null }>`SELECT
      (extract(epoch FROM min(held_until)) * 1000)::float8 AS due_ms
    FROM choir_control.inbox WHERE held_until IS NOT NULL`
  return row?.due_ms ?? undefined
})
