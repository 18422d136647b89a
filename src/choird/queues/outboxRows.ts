/** Reads of the rows that wait in the outbox. A page is bounded in rows and in bytes, since a text may have half a mebibyte. */
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import { rowId } from "#src/choird/database/rowId.ts"
import type { OutboxForm } from "./OutboxForm.ts"
import { UNSHOWN } from "./outboxRoom.ts"

/** Outbox rows of one read, and the bytes of their texts and forms; a first row that is larger is read alone. */
export const OUTBOX_PAGE_MAX = 100
export const OUTBOX_PAGE_BYTES_MAX = 1024 * 1024

/** How much of a question is shown above its answer. */
const QUESTION_CHARS_MAX = 200

const WAITING = "delivered_at IS NULL AND failed_at IS NULL"

/**
 * Whether a row is the next thing that its DM shows after the message that it answers, so that no quotation has to tell which one that is.
 * What the row's own message has brought before it, such as a first word on a long answer, is not between them.
 */
const follows = (sql: SqlClient.SqlClient) => sql`(inbox.message_id IS NOT NULL
    AND NOT EXISTS (SELECT FROM choir_control.inbox AS later
      WHERE later.dm = outbox.dm AND later.message_id > inbox.message_id)
    AND NOT EXISTS (SELECT FROM choir_control.outbox AS shown
      WHERE shown.dm = outbox.dm AND shown.delivered_at IS NOT NULL AND shown.created_at >= inbox.created_at
        AND shown.in_reply_to IS DISTINCT FROM outbox.in_reply_to))`

/** Rows as their channels show them, of the ids that a query chooses. */
const rowsOf = <Row extends object>(sql: SqlClient.SqlClient, chosen: Statement.Fragment) =>
  sql<Row>`SELECT outbox.outbox_id::text, outbox.source, outbox.source_id, outbox.part, outbox.gateway,
      outbox.dm, outbox.agent_id, outbox.kind, outbox.text, outbox.in_reply_to::text, outbox.sent_parts, outbox.failure,
      (extract(epoch FROM outbox.created_at) * 1000)::float8 AS created_ms, outbox.form,
      (SELECT card.sent_id FROM choir_control.outbox AS card
        WHERE card.source = 'choird' AND card.source_id = outbox.form ->> 'edits'
        ORDER BY card.part DESC LIMIT 1) AS edited_id,
      left(inbox.text, ${QUESTION_CHARS_MAX}) AS question,
      inbox.message_id::float8 AS reply_to, inbox.thread_id::float8 AS thread_id,
      ${follows(sql)} AS follows
    FROM choir_control.outbox
    LEFT JOIN choir_control.inbox ON inbox.inbox_id = outbox.in_reply_to AND inbox.dm = outbox.dm
    WHERE outbox.outbox_id IN (${chosen}) ORDER BY outbox.outbox_id`

/** Undelivered rows of a DM in order after an id. */
export const readPage = Effect.fnUntraced(function* <Row extends object>(dm: ResourceName, after: string | undefined) {
  const sql = yield* SqlClient.SqlClient
  return yield* rowsOf<Row>(
    sql,
    sql`SELECT outbox_id FROM (
        SELECT outbox_id, row_number() OVER page AS place, sum(bytes) OVER page AS total FROM (
          SELECT outbox_id, octet_length(text) + coalesce(octet_length(form::text), 0) AS bytes
          FROM choir_control.outbox
          WHERE dm = ${dm} AND ${sql.literal(WAITING)} AND outbox_id > ${rowId(after ?? "") ?? 0n}
          ORDER BY outbox_id LIMIT ${OUTBOX_PAGE_MAX}
        ) AS first_rows WINDOW page AS (ORDER BY outbox_id)
      ) AS counted WHERE place = 1 OR total <= ${OUTBOX_PAGE_BYTES_MAX}`
  )
})

/** The row that a DM's channel sends next. Answers come first: an agent that asks a lot does not delay its own replies. */
export const readNext = Effect.fnUntraced(function* <Row extends object>(dm: ResourceName) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* rowsOf<Row>(
    sql,
    // Nobody waits for approval cards, for what an agent sends on its own, and for the count of that.
    sql`SELECT outbox_id FROM choir_control.outbox WHERE dm = ${dm} AND ${sql.literal(WAITING)}
      ORDER BY (kind = 'notice' AND (source = 'event' OR starts_with(source_id, 'approval/') OR starts_with(source_id, ${UNSHOWN}))),
        outbox_id LIMIT 1`
  )
  return row
})

/** The ids of the first undelivered rows of a DM, and the bytes of their texts. */
export const readWaiting = Effect.fnUntraced(function* (dm: ResourceName, rows_max: number) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{
    readonly outbox_id: string
    readonly bytes: number
  }>`SELECT outbox_id::text, octet_length(text) AS bytes
    FROM choir_control.outbox WHERE dm = ${dm} AND ${sql.literal(WAITING)} ORDER BY outbox.outbox_id LIMIT ${rows_max}`
})

/** The first undelivered rows of a DM that have files, without their texts. */
export const readFiled = Effect.fnUntraced(function* (dm: ResourceName) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{
    readonly outbox_id: string
    readonly agent_id: AgentId
    readonly form: OutboxForm
  }>`SELECT outbox_id::text, agent_id, form FROM choir_control.outbox
    WHERE dm = ${dm} AND ${sql.literal(WAITING)} AND form -> 'files' IS NOT NULL ORDER BY outbox.outbox_id LIMIT ${OUTBOX_PAGE_MAX}`
})
