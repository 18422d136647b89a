/** What people are to be told, in order, until a channel delivered it (D6). */
import { Context, Effect, Layer, type Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, InboxId, ResourceName } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { rowId } from "#src/shared/rowId.ts"
import { makeWakes } from "#src/shared/wakes.ts"
import { insertOutbox } from "./outboxRows.ts"

/** Outbox rows of one read. */
export const OUTBOX_PAGE_MAX = 100
/** For how long `status` tells of messages that were given up. Retention keeps their rows at least as long. */
export const OUTBOX_FAILED_TOLD_DAYS = 7

/** What is kept of why a message was given up. */
const OUTBOX_FAILURE_CHARS_MAX = 300

export interface Outgoing {
  readonly outbox_id: string
  readonly source: "event" | "choird"
  readonly source_id: string
  readonly part: number
  readonly gateway: ResourceName
  readonly dm: ResourceName
  readonly agent_id: AgentId
  readonly kind: "reply" | "notice" | "report" | "refusal" | "error" | "outage" | "stopped"
  readonly text: string
  readonly in_reply_to: InboxId | null
  /** The beginning of the message that it answers, where the row is read. */
  readonly question?: string | null
  /** In milliseconds since 1970. */
  readonly created_ms: number
}

/** Messages of a DM that were given up. */
export interface Undeliverable {
  readonly dm: ResourceName
  readonly count: number
  /** Why the newest of them was. */
  readonly reason: string
}

/** How much of a question is shown above its answer. */
const QUESTION_CHARS_MAX = 200

/** Keeps the outbox. Rows from events are written by the EventStore, in the transaction of the event. */
export class Outbox extends Context.Service<
  Outbox,
  {
    /** A message of choird's own, once per source_id. */
    tell(message: Omit<Outgoing, "outbox_id" | "part" | "source" | "created_ms">): Effect.Effect<void>
    /** Whether a message of choird's own with this source was stored. */
    told(source_id: string): Effect.Effect<boolean>
    /** Undelivered rows of a DM in order after an id, at most OUTBOX_PAGE_MAX. */
    undelivered(dm: ResourceName, after: string | undefined): Effect.Effect<ReadonlyArray<Outgoing>>
    /** Ends rows; answers how many were not delivered before. */
    delivered(outbox_ids: ReadonlyArray<string>): Effect.Effect<number>
    /** Ends a row that its channel will never take; answers whether it was open until now. */
    giveUp(outbox_id: string, reason: string): Effect.Effect<boolean>
    /** Ends the rows of all DMs but these, which nobody reads any more; answers how many. */
    abandon(kept: ReadonlyArray<string>): Effect.Effect<number>
    /** What was given up within the last OUTBOX_FAILED_TOLD_DAYS, by DM. */
    readonly undeliverable: Effect.Effect<ReadonlyArray<Undeliverable>>
    /** Counts a failed attempt. */
    failed(outbox_id: string): Effect.Effect<void>
    /** Emits at once and then whenever a DM may have new rows. */
    wakes(dm: ResourceName): Stream.Stream<void>
    /** Wakes the readers of a DM; called after a commit that added rows. */
    wake(dm: ResourceName): Effect.Effect<void>
  }
>()("choir/choird/Outbox") {
  static readonly layer = Layer.effect(
    Outbox,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const store = yield* ConfigStore
      const { wake, wakes } = yield* makeWakes

      return Outbox.of({
        wake,
        wakes,
        tell: Effect.fn("Outbox.tell")(function* (message) {
          const { config } = yield* store.current
          const row = { ...message, source: "choird", session_id: null } as const
          yield* sql.withTransaction(insertOutbox(sql, config, [row]))
          yield* wake(message.dm)
        }, Effect.orDie),
        told: Effect.fn("Outbox.told")(function* (source_id) {
          const rows = yield* sql`SELECT 1 FROM choir_control.outbox
            WHERE source = 'choird' AND source_id = ${source_id} AND part = 0`
          return rows.length > 0
        }, Effect.orDie),
        undelivered: Effect.fn("Outbox.undelivered")(function* (dm, after) {
          return yield* sql<Outgoing>`SELECT outbox_id::text, source, source_id, part, gateway, dm, agent_id, kind, text,
              in_reply_to::text, (extract(epoch FROM created_at) * 1000)::float8 AS created_ms,
              (SELECT left(inbox.text, ${QUESTION_CHARS_MAX}) FROM choir_control.inbox
                WHERE inbox.inbox_id = outbox.in_reply_to) AS question
            FROM choir_control.outbox
            WHERE dm = ${dm} AND delivered_at IS NULL AND failed_at IS NULL AND outbox_id > ${rowId(after ?? "") ?? 0n}
            ORDER BY outbox.outbox_id LIMIT ${OUTBOX_PAGE_MAX}`
        }, Effect.orDie),
        delivered: Effect.fn("Outbox.delivered")(function* (outbox_ids) {
          const ids = outbox_ids.map(rowId).filter((id) => id !== undefined)
          const rows = yield* sql`UPDATE choir_control.outbox SET delivered_at = now()
            WHERE outbox_id = ANY(${ids}::bigint[]) AND delivered_at IS NULL AND failed_at IS NULL RETURNING 1`
          return rows.length
        }, Effect.orDie),
        giveUp: Effect.fn("Outbox.giveUp")(function* (outbox_id, reason) {
          const rows = yield* sql`UPDATE choir_control.outbox
            SET failed_at = now(), failure = ${reason.slice(0, OUTBOX_FAILURE_CHARS_MAX)}
            WHERE outbox_id = ${rowId(outbox_id) ?? 0n} AND delivered_at IS NULL AND failed_at IS NULL RETURNING 1`
          return rows.length > 0
        }, Effect.orDie),
        abandon: Effect.fn("Outbox.abandon")(function* (kept) {
          const rows = yield* sql`UPDATE choir_control.outbox
            SET failed_at = now(), failure = 'the DM is not in config.json any more'
            WHERE delivered_at IS NULL AND failed_at IS NULL AND NOT (dm = ANY(${kept}::text[])) RETURNING 1`
          return rows.length
        }, Effect.orDie),
        undeliverable: Effect.orDie(sql<Undeliverable>`SELECT dm, count(*)::int AS count,
            (array_agg(failure ORDER BY failed_at DESC, outbox_id DESC))[1] AS reason
          FROM choir_control.outbox
          WHERE failed_at > now() - make_interval(days => ${OUTBOX_FAILED_TOLD_DAYS})
          GROUP BY dm ORDER BY dm`),
        failed: Effect.fn("Outbox.failed")(function* (outbox_id) {
          yield* sql`UPDATE choir_control.outbox SET attempts = attempts + 1
            WHERE outbox_id = ${rowId(outbox_id) ?? 0n}`
        }, Effect.orDie)
      })
    })
  )
}
