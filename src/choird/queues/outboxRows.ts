/** Rows of the outbox, from events and from choird itself (docs/protocol.md, Inbox and outbox). */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import type { SessionId } from "#schema/Ids.ts"
import { rowId } from "#src/shared/rowId.ts"
import { MARK_CHARS } from "./chatMark.ts"
import { chunkText } from "./chunks.ts"
import type { Outgoing } from "./Outbox.ts"

/** UTF-16 units of a Telegram message (R43). */
const TELEGRAM_TEXT_CHARS_MAX = 4096

/** A message before it is split into the parts that its gateway can show. */
export type OutboxMessage = Omit<Outgoing, "outbox_id" | "part" | "created_ms"> & {
  readonly session_id: SessionId | null
}

/** A Telegram message has a limit, with the mark that choird's own begin with; the console shows a text as it is. */
const partsOf = (config: Config, { gateway, text }: OutboxMessage): ReadonlyArray<string> =>
  config.gateways[gateway]?.type === "telegram" ? chunkText(text, TELEGRAM_TEXT_CHARS_MAX - MARK_CHARS) : [text]

/**
 * Stores messages once for each (source, source_id, part), within the caller's transaction. Their DMs are locked first, in order:
 * so the ids of a DM commit in order, and a reader that goes on after an id misses none.
 */
export const insertOutbox = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  config: Config,
  messages: ReadonlyArray<OutboxMessage>
) {
  const rows = messages.flatMap((message) =>
    partsOf(config, message).map((text, part) => ({
      ...message,
      text,
      part,
      session: message.session_id ?? "",
      reply: String(rowId(message.in_reply_to ?? "") ?? "")
    }))
  )
  if (rows.length === 0) return
  const dms = [...new Set(rows.map(({ dm }) => dm))].sort()
  const column = <K extends keyof (typeof rows)[number]>(key: K) => rows.map((row) => row[key])
  yield* sql`INSERT INTO choir_control.outbox
      (source, source_id, part, gateway, dm, agent_id, session_id, kind, text, in_reply_to)
    SELECT source, source_id, part, gateway, dm, agent_id, nullif(session, ''), kind, text, nullif(reply, '')::bigint
    FROM (
      SELECT count(pg_advisory_xact_lock(hashtextextended('choir/dm/' || name, 0))) AS locks
      FROM unnest(${dms}::text[]) AS name
    ) AS dms, unnest(
      ${column("source")}::text[], ${column("source_id")}::text[], ${column("part")}::int[],
      ${column("gateway")}::text[], ${column("dm")}::text[], ${column("agent_id")}::text[],
      ${column("session")}::text[], ${column("kind")}::text[], ${column("text")}::text[],
      ${column("reply")}::text[]
    ) AS row (source, source_id, part, gateway, dm, agent_id, session, kind, text, reply)
    WHERE dms.locks > 0
    ON CONFLICT (source, source_id, part) DO NOTHING`
})
