/** The rows of `session_events`: how they are written, read in pages, and proved. */
import { Effect, Result, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { ChoirEvent } from "#schema/Event.ts"
import type { ResourceName, SessionId } from "#schema/Ids.ts"
import type { SessionStatus } from "#schema/SessionStatus.ts"
import { genesis, hex, type Link, link } from "#src/shared/hashChain.ts"
import { LOG_PAGE_BYTES_MAX, LOG_PAGE_EVENTS_MAX } from "#src/shared/limits.ts"
import { fold, type FoldRefusal, initialState } from "#src/shared/session/fold.ts"
import type { SessionState } from "#src/shared/session/State.ts"

/** An event as it is stored: its canonical text and its digest. */
export interface StoredEvent {
  readonly rev: number
  readonly canonical: string
  readonly hash: Uint8Array
}

/** The session's row, as it stands under its lock. */
export interface LockedSession {
  readonly status: SessionStatus
  readonly epoch: number
  readonly frozen_reason: string | null
  readonly last_rev: number
}

/** Where a replay stands: the revision, its digest and the state after it. */
export interface Replayed {
  readonly hash: Buffer
  readonly state: SessionState
}

/** Before the first event. */
export const replayStart = (session_id: SessionId): Replayed => ({ hash: genesis(session_id), state: initialState })

/** Strict, so that what the log holds is what an agent may send. */
const decodeEvent = Schema.decodeUnknownResult(ChoirEvent, { onExcessProperty: "error" })

/** The event that a canonical text holds, or why it holds none. */
export const parseEvent = (canonical: string): Result.Result<ChoirEvent, string> =>
  Result.try({ try: (): unknown => JSON.parse(canonical), catch: () => "its text is not JSON" }).pipe(
    Result.flatMap((value) => Result.mapError(decodeEvent(value), () => "its text is not an event"))
  )

/** One more stored event, proved from its text: place, digest, schema and fold (R12). */
export const replay = (at: Replayed, row: StoredEvent): Result.Result<Replayed, FoldRefusal> => {
  const rev = at.state.rev + 1
  const refuse = (reason: string) => Result.fail({ rev, reason })
  if (row.rev !== rev) return refuse("the event is missing")
  const hash = link(at.hash, rev, row.canonical)
  if (!hash.equals(row.hash)) return refuse(`its digest is ${hex(row.hash)}, its text and place give ${hex(hash)}`)
  const event = parseEvent(row.canonical)
  if (Result.isFailure(event)) return refuse(event.failure)
  return Result.map(fold(at.state, event.success), (state) => ({ hash, state }))
}

/** Stored events from a revision on, at least one if there is one, within the limits of a page. */
export const readPage = (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  from: number,
  bytes_max: number = LOG_PAGE_BYTES_MAX
) =>
  sql<StoredEvent>`SELECT rev, canonical, hash FROM (
      SELECT rev, canonical, hash, sum(octet_length(canonical)) OVER (ORDER BY rev) AS bytes
      FROM choir_control.session_events
      WHERE session_id = ${session_id} AND rev >= ${from} AND rev < ${from}::int + ${LOG_PAGE_EVENTS_MAX}
    ) AS page WHERE bytes <= ${bytes_max} OR rev = ${from} ORDER BY rev`

/** Single events, those that there are. */
export const readNamed = (sql: SqlClient.SqlClient, session_id: SessionId, revs: ReadonlyArray<number>) =>
  sql<StoredEvent>`SELECT rev, canonical, hash FROM choir_control.session_events
    WHERE session_id = ${session_id} AND rev = ANY(${revs}::int[]) ORDER BY rev`

/** How far a replay came: to the revision asked for, or to the last good one and what is wrong with the next. */
export interface Replay {
  readonly at: Replayed
  readonly problem: FoldRefusal | undefined
}

/** Proves and folds the stored events after `from` up to a revision. */
export const replayStored = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  from: Replayed,
  until: number
): Effect.fn.Return<Replay, Effect.Error<ReturnType<typeof readPage>>> {
  let at = from
  while (at.state.rev < until) {
    const rows = yield* readPage(sql, session_id, at.state.rev + 1)
    if (rows.length === 0) return { at, problem: { rev: at.state.rev + 1, reason: "the event is missing" } }
    for (const row of rows) {
      if (row.rev > until) break
      const next = replay(at, row)
      if (Result.isFailure(next)) return { at, problem: next.failure }
      at = next.success
    }
  }
  return { at, problem: undefined }
})

/** A session's row under its lock: nobody appends to it, ends it or adds a signal until the transaction ends. */
export const lockSession = (sql: SqlClient.SqlClient, session_id: SessionId) =>
  Effect.map(
    sql<LockedSession & { readonly head_hash: Uint8Array | null; readonly dm: ResourceName }>`SELECT status, epoch,
        frozen_reason, last_rev, head_hash, resource_bindings ->> 'dm' AS dm
      FROM choir_control.sessions WHERE session_id = ${session_id} FOR UPDATE`,
    ([session]) => session
  )

/** Digests of single revisions, for what an agent sends again; that of revision 0 is never stored. */
export const readDigests = (sql: SqlClient.SqlClient, session_id: SessionId, revs: ReadonlyArray<number>) =>
  Effect.map(
    sql<{ readonly rev: number; readonly hash: Uint8Array }>`SELECT rev, hash FROM choir_control.session_events
      WHERE session_id = ${session_id} AND rev = ANY(${revs}::int[])`,
    (rows) => new Map(rows.map(({ hash, rev }) => [rev, Buffer.from(hash)]))
  )

/** Stores events and the session's new head as one statement, whatever their number. */
export const insertEvents = (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  links: ReadonlyArray<Link>,
  head: Buffer
) => {
  const column = <A>(value: (link: Link) => A) => links.map(value)
  return sql`WITH stored AS (
      INSERT INTO choir_control.session_events
        (session_id, rev, event_type, lane, payload, created_at, canonical, hash)
      SELECT ${session_id}, rev, event_type, lane, canonical::jsonb -> 'payload', created_at, canonical, hash
      FROM unnest(
        ${column(({ event }) => event.rev)}::int[],
        ${column(({ event }) => event.event_type)}::text[],
        ${column(({ event }) => event.lane)}::text[],
        ${column(({ event }) => event.created_at)}::text[],
        ${column(({ canonical }) => canonical)}::text[],
        ${column(({ hash }) => hash)}::bytea[]
      ) AS event (rev, event_type, lane, created_at, canonical, hash)
    )
    UPDATE choir_control.sessions SET last_rev = last_rev + ${links.length}, head_hash = ${head}
    WHERE session_id = ${session_id}`
}
