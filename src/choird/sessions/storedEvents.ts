/** The rows of `session_events`: how they are written, read in pages, and proved. */
import { Effect, Option, Result, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { SentEvent } from "#schema/Event.ts"
import type { ResourceName, SessionId } from "#schema/Ids.ts"
import type { SessionStatus } from "#schema/SessionStatus.ts"
import {
  eventOf,
  type EventRow,
  ForgottenPayloads,
  knownPartOf,
  type NewerEvent,
  readRow,
  rowOf,
  type RowText,
  UNLISTED
} from "#src/shared/events/eventRow.ts"
import { genesis, hex, type Link, nextDigest } from "#src/shared/events/hashChain.ts"
import { fold, type FoldRefusal, initialState } from "#src/shared/session/fold.ts"
import type { SessionState } from "#src/shared/session/State.ts"

/** Events of a page when a session's log is read. */
export const LOG_PAGE_EVENTS_MAX = 500
/** Canonical bytes of a page when a session's log is read; a single event may be larger than its share. */
export const LOG_PAGE_BYTES_MAX = 4 * 1024 * 1024

/** The session's row, as it stands under its lock. */
export interface LockedSession {
  readonly status: SessionStatus
  readonly epoch: number
  readonly frozen_reason: string | null
  readonly last_rev: number
  readonly head_hash: Uint8Array | null
  readonly log_bytes: number
  readonly image_version: string
  /** Its DMs, the first one first. */
  readonly dms: ReadonlyArray<ResourceName>
  /** Empty for an agent that is bound to no workspace. */
  readonly workspace: string
}

/** Where a replay stands: the revision, its digest and the state after it. */
export interface Replayed {
  readonly hash: Buffer
  readonly state: SessionState
}

/** Before the first event. */
export const replayStart = (session_id: SessionId): Replayed => ({ hash: genesis(session_id), state: initialState })

/** Why the next event is not proved; `newer` where it holds as a part of the chain and only a later Choir knows it. */
export interface Unproved extends FoldRefusal {
  readonly newer?: NewerEvent
}

/** One more stored event, proved from its text: place, digest, schema and fold (R12). */
export const replay = (
  at: Replayed,
  row: EventRow,
  forgotten?: ForgottenPayloads
): Result.Result<Replayed, Unproved> => {
  const rev = at.state.rev + 1
  const linked = linkStored(at.hash, rev, row)
  if (Result.isFailure(linked)) return Result.fail(linked.failure)
  const { hash, text } = linked.success
  const event = eventOf(text)
  if (Result.isFailure(event)) return Result.fail({ rev, ...event.failure })
  forgotten?.row(text, event.success)
  return Result.map(fold(at.state, event.success), (state) => ({ hash, state }))
}

const MISSING = "the event is missing"

/** The next row's place and digest alone. */
const linkStored = (
  previous: Buffer,
  rev: number,
  row: EventRow
): Result.Result<{ readonly hash: Buffer; readonly text: RowText }, Unproved> => {
  const refuse = (reason: string) => Result.fail({ rev, reason })
  if (row.rev !== rev) return refuse(MISSING)
  const text = readRow(row)
  if (Result.isFailure(text)) return refuse(text.failure)
  const hash = nextDigest(previous, rev, text.success.chained)
  return hash.equals(row.hash)
    ? Result.succeed({ hash, text: text.success })
    : refuse(`its digest is ${hex(row.hash)}, its text and place give ${hex(hash)}`)
}

/** The columns of an {@link EventRow}. */
export const EVENT_COLUMNS = "rev, v, event_type, lane, created_at, salt, payload_digest, body, canonical, hash"
/** A row's canonical bytes, nearly: those of a row from before migration 0009 are counted. */
export const EVENT_SIZE = "coalesce(bytes, octet_length(canonical))"

/** Stored events from a revision on, at least one if there is one, within the limits of a page. */
export const readPage = Effect.fnUntraced(function* (
  session_id: SessionId,
  from: number,
  bytes_max: number = LOG_PAGE_BYTES_MAX
) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<EventRow>`SELECT ${sql.literal(EVENT_COLUMNS)} FROM (
      SELECT ${sql.literal(EVENT_COLUMNS)}, sum(${sql.literal(EVENT_SIZE)}) OVER (ORDER BY rev) AS total
      FROM choir_control.session_events
      WHERE session_id = ${session_id} AND rev >= ${from} AND rev < ${from}::int + ${LOG_PAGE_EVENTS_MAX}
    ) AS page WHERE total <= ${bytes_max} OR rev = ${from} ORDER BY rev`
})

/** Single events, as far as they exist. */
export const readNamed = Effect.fnUntraced(function* (session_id: SessionId, revs: ReadonlyArray<number>) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<EventRow>`SELECT ${sql.literal(EVENT_COLUMNS)} FROM choir_control.session_events
    WHERE session_id = ${session_id} AND rev = ANY(${revs}::int[]) ORDER BY rev`
})

/** The end of a replay: the revision asked for, or the last good one with the problem of the next. */
export interface Replay {
  readonly at: Replayed
  readonly problem: Unproved | undefined
}

/** A session's log as rows, wherever they are stored. */
export interface Log<E, R = never> {
  /** The revision up to which there must be rows. */
  readonly until: number
  /** The rows from a revision on, in their order. */
  readonly rows: (from: number) => Stream.Stream<EventRow, E, R>
}

/** The rows of the table up to a revision, which has to be the newest; later events are left out. */
export const storedLog = (session_id: SessionId, until: number) =>
  ({
    until,
    rows: (from) =>
      Stream.paginate(from, (next) =>
        next > until
          ? Effect.succeed([[], Option.none()])
          : Effect.map(readPage(session_id, next), (page) => {
              const last = page.at(-1)?.rev ?? until
              return [page.filter(({ rev }) => rev <= until), last < until ? Option.some(last + 1) : Option.none()]
            })
      )
  }) satisfies Log<unknown, SqlClient.SqlClient>

/** Proves and folds the rows after `from`, as far as they hold. */
export const replayLog = Effect.fnUntraced(function* <E, R>(
  log: Log<E, R>,
  from: Replayed,
  payloads = new ForgottenPayloads()
): Effect.fn.Return<Replay, E, R> {
  let at = from
  let problem: Unproved | undefined
  yield* Stream.runForEachWhile(log.rows(at.state.rev + 1), (row) =>
    Effect.sync(() => {
      const next = replay(at, row, payloads)
      if (Result.isFailure(next)) problem = next.failure
      else at = next.success
      return problem === undefined
    })
  )
  return { at, problem: problem ?? endProblem(log, at.state.rev, payloads) }
})

/** The problem after the last row. */
const endProblem = (
  { until }: Log<unknown, unknown>,
  rev: number,
  { unlisted }: ForgottenPayloads
): FoldRefusal | undefined => {
  if (rev < until) return { rev: rev + 1, reason: MISSING }
  return unlisted === undefined ? undefined : { rev: unlisted, reason: UNLISTED }
}

/** Proves only place and digest of the rows after a revision: events of a later Choir cannot be folded here. */
export const chainLog = Effect.fnUntraced(function* <E, R>(
  log: Log<E, R>,
  from: { readonly rev: number; readonly hash: Buffer },
  payloads: ForgottenPayloads
) {
  let { hash, rev } = from
  let problem: Unproved | undefined
  yield* Stream.runForEachWhile(log.rows(rev + 1), (row) =>
    Effect.sync(() => {
      const linked = linkStored(hash, rev + 1, row)
      if (Result.isFailure(linked)) {
        problem = linked.failure
        return false
      }
      payloads.row(linked.success.text, knownPartOf(linked.success.text))
      hash = linked.success.hash
      rev += 1
      return true
    })
  )
  return { rev, hash, problem: problem ?? endProblem(log, rev, payloads) }
})

/** A session's row under its lock: nobody appends to it, ends it or adds a signal until the transaction ends. */
export const lockSession = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  const [session] = yield* sql<LockedSession>`SELECT status, epoch, frozen_reason, last_rev, head_hash,
      log_bytes::float8 AS log_bytes, image_version,
      coalesce(resource_bindings -> 'dms', jsonb_build_array(resource_bindings -> 'dm')) AS dms, coalesce(resource_bindings ->> 'workspace', '') AS workspace
    FROM choir_control.sessions WHERE session_id = ${session_id} FOR UPDATE`
  return session
})

/** Digests of single revisions, for events that an agent sends again; that of revision 0 is never stored. */
export const readDigests = Effect.fnUntraced(function* (session_id: SessionId, revs: ReadonlyArray<number>) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly rev: number; readonly hash: Uint8Array }>`SELECT rev, hash
    FROM choir_control.session_events WHERE session_id = ${session_id} AND rev = ANY(${revs}::int[])`
  return new Map(rows.map(({ hash, rev }) => [rev, Buffer.from(hash)]))
})

/** Canonical bytes, about the size of the rows: a packed body is smaller, and each row has an overhead. */
export const bytesOf = (links: ReadonlyArray<Link<SentEvent>>): number =>
  links.reduce((sum, { bytes }) => sum + bytes, 0)

/** Stores events and the session's new head as one statement, whatever their number. */
export const insertEvents = Effect.fnUntraced(function* (
  session_id: SessionId,
  links: ReadonlyArray<Link<SentEvent>>,
  head: Buffer
) {
  const sql = yield* SqlClient.SqlClient
  const rows = links.map(rowOf)
  const column = <A>(value: (row: EventRow) => A) => rows.map(value)
  yield* sql`WITH stored AS (
      INSERT INTO choir_control.session_events
        (session_id, rev, v, event_type, lane, created_at, bytes, salt, body, hash)
      SELECT ${session_id}, rev, v, event_type, lane, created_at, bytes, salt, body, hash
      FROM unnest(
        ${column(({ rev }) => rev)}::int[],
        ${column(({ v }) => v)}::smallint[],
        ${column(({ event_type }) => event_type)}::text[],
        ${column(({ lane }) => lane)}::text[],
        ${column(({ created_at }) => created_at)}::text[],
        ${links.map(({ bytes }) => bytes)}::int[],
        ${column(({ salt }) => salt)}::bytea[],
        ${column(({ body }) => body)}::bytea[],
        ${column(({ hash }) => hash)}::bytea[]
      ) AS event (rev, v, event_type, lane, created_at, bytes, salt, body, hash)
    )
    UPDATE choir_control.sessions SET last_rev = last_rev + ${links.length}, head_hash = ${head},
      log_bytes = log_bytes + ${bytesOf(links)}
    WHERE session_id = ${session_id}`
})
