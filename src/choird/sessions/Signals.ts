/** The push stream: rows of the `signals` table per session, and two signals that are computed at connect (wire.md). */
import { Clock, Context, Effect, Layer, Option, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { JobName, SessionId } from "#schema/Ids.ts"
import { Signal } from "#schema/Signal.ts"
import { canonicalJson } from "#src/shared/canonicalJson.ts"
import { SIGNALS_PAGE_MAX } from "#src/shared/limits.ts"
import { rowId } from "#src/shared/rowId.ts"
import { makeWakes } from "#src/shared/wakes.ts"

/** A signal with its row id; the computed ones have none. */
export interface Pushed {
  readonly id: string | undefined
  readonly signal: Signal
}

/** Queues signals for agents and streams them. */
export class Signals extends Context.Service<
  Signals,
  {
    /** Asks a session's agent to cancel a job; answers the signal's id. */
    cancelCore(session_id: SessionId, job_name: JobName): Effect.Effect<string>
    /** Asks for a graceful stop within the time; told again at each connect until the session ends. */
    stop(session_id: SessionId, deadline_ms: number): Effect.Effect<void>
    /** Forgets a stop that was asked for; called when the session ends, since a resumed one keeps its id. */
    forget(session_id: SessionId): Effect.Effect<void>
    /** Unacknowledged rows after the given id, then new ones as they come. Never ends by itself. */
    stream(session_id: SessionId, after: string | undefined): Stream.Stream<Pushed>
    /** Makes the streams of a session look at the table again; called after a commit that added rows. */
    wake(session_id: SessionId): Effect.Effect<void>
  }
>()("choir/choird/Signals") {
  static readonly layer = Layer.effect(
    Signals,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { wake, wakes } = yield* makeWakes
      const stops = new Map<SessionId, { readonly at_ms: number }>()

      const page = Effect.fnUntraced(function* (session_id: SessionId, after: bigint) {
        const rows = yield* sql<Stored>`SELECT s.signal_id, s.kind, s.payload, i.dm, i.text, i.attachments, i.created_at
          FROM choir_control.signals AS s
          LEFT JOIN choir_control.inbox AS i
            ON s.kind = 'UserMessage' AND i.inbox_id = (s.payload ->> 'inbox_id')::bigint
          WHERE s.session_id = ${session_id} AND s.acked_rev IS NULL AND s.signal_id > ${after}
          ORDER BY s.signal_id LIMIT ${SIGNALS_PAGE_MAX}`
        return yield* Effect.forEach(rows, pushed)
      }, Effect.orDie)

      const stream = (session_id: SessionId, after: string | undefined): Stream.Stream<Pushed> =>
        Stream.suspend(() => {
          let cursor = rowId(after ?? "") ?? 0n
          let told: { readonly at_ms: number } | undefined
          const rows = Stream.paginate(undefined, () =>
            Effect.map(page(session_id, cursor), (found) => {
              cursor = BigInt(found.at(-1)?.id ?? cursor)
              return [found, found.length < SIGNALS_PAGE_MAX ? Option.none() : Option.some(undefined)] as const
            })
          )
          const stop = Effect.gen(function* () {
            const asked = stops.get(session_id)
            if (asked === undefined || asked === told) return []
            told = asked
            const deadline_ms = Math.max(0, asked.at_ms - (yield* Clock.currentTimeMillis))
            return [{ id: undefined, signal: { type: "Stop" as const, deadline_ms } }]
          })
          return Stream.flatMap(wakes(session_id), () => Stream.concat(Stream.fromIterableEffect(stop), rows))
        })

      return Signals.of({
        stream,
        wake,
        cancelCore: Effect.fn("Signals.cancelCore")(function* (session_id, job_name) {
          const signal_id = yield* insertSignal(sql, session_id, "CancelCore", { job_name }).pipe(Effect.orDie)
          yield* wake(session_id)
          return signal_id
        }),
        stop: Effect.fn("Signals.stop")(function* (session_id, deadline_ms) {
          stops.set(session_id, { at_ms: (yield* Clock.currentTimeMillis) + deadline_ms })
          yield* wake(session_id)
        }),
        forget: (session_id) => Effect.sync(() => void stops.delete(session_id))
      })
    })
  )
}

interface Stored {
  readonly signal_id: bigint
  readonly kind: string
  readonly payload: Readonly<Record<string, unknown>>
  readonly dm: string | null
  readonly text: string | null
  readonly attachments: unknown
  readonly created_at: Date | null
}

const decodeSignal = Schema.decodeUnknownEffect(Signal)

/** A row holds what its message or its own id does not tell. */
const pushed = Effect.fnUntraced(function* (row: Stored) {
  const id = String(row.signal_id)
  const rest =
    row.kind === "UserMessage"
      ? { dm: row.dm, text: row.text, attachments: row.attachments, created_at: row.created_at?.toISOString() }
      : { signal_id: id }
  return { id, signal: yield* decodeSignal({ type: row.kind, ...row.payload, ...rest }) }
})

/** Under the session's row lock, so that ids commit in order and no stream passes over one. */
const insertSignal = (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  kind: Signal["type"],
  payload: Readonly<Record<string, string>>
) =>
  sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`SELECT 1 FROM choir_control.sessions WHERE session_id = ${session_id} FOR UPDATE`
      const [row] = yield* sql<{ readonly signal_id: bigint }>`INSERT INTO choir_control.signals
        (session_id, kind, payload) VALUES (${session_id}, ${kind}, ${canonicalJson(payload)}::jsonb)
        RETURNING signal_id`
      return String(row?.signal_id)
    })
  )
