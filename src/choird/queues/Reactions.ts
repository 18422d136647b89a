/** The messages that may have the bot's reaction, noted before it is shown and until it is gone: so each loses it, whatever happens in between. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { InboxId, ResourceName } from "#schema/Ids.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { rowId } from "#src/choird/database/rowId.ts"

/** Messages of one read. */
const REACTIONS_PAGE_MAX = 100

/** A message with its number in its chat. */
export interface Reacted {
  readonly inbox_id: InboxId
  readonly message_id: number
}

export class Reactions extends Context.Service<
  Reactions,
  {
    /**
     * Notes that a message will have a reaction; returns its number in its chat. None where it is answered, was noted before, or has no number.
     * A message of several pieces is its first one.
     */
    begin(inbox_id: InboxId): Effect.Effect<number | undefined, DatabaseAway>
    /** The answered messages of a DM that may still have one, the oldest first, at most REACTIONS_PAGE_MAX. */
    leftover(dm: ResourceName): Effect.Effect<ReadonlyArray<Reacted>, DatabaseAway>
    /** Notes that a message has none any more. */
    ended(inbox_id: InboxId): Effect.Effect<void, DatabaseAway>
  }
>()("choir/choird/Reactions") {
  static readonly layer = Layer.effect(
    Reactions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const onDatabase = yield* useDatabase
      return Reactions.of({
        begin: Effect.fn("Reactions.begin")(function* (inbox_id) {
          const [row] = yield* sql<{ readonly message_id: number }>`UPDATE choir_control.inbox SET reacted = true
            WHERE inbox_id = ${rowId(inbox_id) ?? 0n} AND NOT answered AND NOT reacted AND message_id IS NOT NULL
            RETURNING message_id::float8`
          return row?.message_id
        }, onDatabase),
        leftover: Effect.fn("Reactions.leftover")(function* (dm) {
          return yield* sql<Reacted>`SELECT inbox_id::text, message_id::float8 FROM choir_control.inbox
            WHERE dm = ${dm} AND reacted AND answered ORDER BY inbox_id LIMIT ${REACTIONS_PAGE_MAX}`
        }, onDatabase),
        ended: Effect.fn("Reactions.ended")(function* (inbox_id) {
          yield* sql`UPDATE choir_control.inbox SET reacted = false WHERE inbox_id = ${rowId(inbox_id) ?? 0n}`
        }, onDatabase)
      })
    })
  )
}

/**
 * Notes within the caller's transaction which messages of an agent are answered. Returns the DMs whose reactions end with that. An agent answers
 * no message of another one.
 */
export const noteAnswered = Effect.fnUntraced(function* (agent_id: string, ids: ReadonlyArray<bigint>) {
  if (ids.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly dm: ResourceName; readonly reacted: boolean }>`UPDATE choir_control.inbox
    SET answered = true WHERE agent_id = ${agent_id} AND inbox_id = ANY(${ids}::bigint[]) AND NOT answered
    RETURNING dm, reacted`
  return rows.flatMap(({ dm, reacted }) => (reacted ? [dm] : []))
})
