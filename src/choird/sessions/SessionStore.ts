/** The sessions table: who ran when, on what, in which epoch. */
import { Clock, Context, Effect, Layer, Option, Schema, type Stream } from "effect"
import { SqlClient } from "effect/sql"
import { randomBytes } from "node:crypto"
import type { RunBindings } from "#schema/ResourceBindings.ts"
import { type AgentId, SessionId } from "#schema/Ids.ts"
import type { SessionStatus } from "#schema/SessionStatus.ts"
import { Summary } from "#schema/Summary.ts"
import { makeNotifier } from "#src/choird/queues/Notifier.ts"
import { VERSION } from "#src/shared/program/version.ts"
import { canonicalJson, storableJson } from "#src/shared/text/canonicalJson.ts"
import { type DatabaseAway, inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { dropAnswered, lockActiveSession, lockAgent, signalInbox } from "#src/choird/queues/Inbox.ts"
import { continueLast, continueNothing } from "./carryOver.ts"
import { type NewerEvents, newerEvents } from "./newerEvents.ts"
import { askForChunks } from "#src/choird/queues/memoryJobs.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { Tokens } from "./Tokens.ts"

/** Characters of the reason for which a session is frozen. */
export const FROZEN_REASON_CHARS_MAX = 500
/** Sessions that one listing returns. */
const SESSIONS_LISTED_MAX = 1000

export interface SessionRow {
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly status: SessionStatus
  readonly started_at: string
  readonly ended_at: string | null
  readonly resource_bindings: RunBindings
  readonly epoch: number
  readonly last_rev: number
  /** Canonical bytes of all its events. */
  readonly log_bytes: number
  readonly frozen_reason: string | null
  readonly image_version: string
  /** The runtime's identity of the newest container, to end it in a later life of choird. */
  readonly container: Schema.Json
}

/** Keeps the sessions table. */
export class SessionStore extends Context.Service<
  SessionStore,
  {
    /**
     * A new session in epoch 1 with a new id; the agent's unacknowledged inbox rows become its signals. One that `continues` gets the summary
     * of the agent's last session, if that reached a limit.
     */
    create(
      agent_id: AgentId,
      bindings: RunBindings,
      image_version: string,
      continues?: boolean
    ): Effect.Effect<SessionRow, DatabaseAway>
    /** The agent's next session begins without what was said in its last one. */
    continueNothing(agent_id: AgentId): Effect.Effect<void, DatabaseAway>
    /** The same session in the next epoch, active again; inbox rows that came since become its signals. */
    resume(session_id: SessionId, bindings: RunBindings, image_version: string): Effect.Effect<SessionRow, DatabaseAway>
    /** Remembers the container of an epoch. */
    recordContainer(session_id: SessionId, epoch: number, container: Schema.Json): Effect.Effect<void, DatabaseAway>
    /** Stores the agent's summary in place of an earlier one. */
    summarize(session_id: SessionId, summary: Summary): Effect.Effect<void, DatabaseAway>
    /** The newest summary, if there is one. Apart from the row, since it may be long. */
    summary(session_id: SessionId): Effect.Effect<Option.Option<Summary>, DatabaseAway>
    /**
     * Ends it with a status; its tokens are dead from here on, and a stop that was asked for is forgotten. With the status a job is stored
     * that makes memory of it.
     */
    end(session_id: SessionId, status: Exclude<SessionStatus, "active">): Effect.Effect<void, DatabaseAway>
    /** Emits at once, and whenever a session has ended. */
    readonly ended: Stream.Stream<void>
    /** Marks it as one that only `--fresh` leaves behind (CONFLICT, or an event that the fold refuses). The first reason stays. */
    freeze(session_id: SessionId, reason: string): Effect.Effect<void, DatabaseAway>
    get(session_id: SessionId): Effect.Effect<Option.Option<SessionRow>, DatabaseAway>
    /** The events of a later Choir in its log, if there are any; such a session is not run (D53). */
    newer(session_id: SessionId): Effect.Effect<Option.Option<NewerEvents>, DatabaseAway>
    /** Newest first, at most SESSIONS_LISTED_MAX. */
    list(agent_id?: AgentId): Effect.Effect<ReadonlyArray<SessionRow>, DatabaseAway>
    /** The session of an agent that began last, whatever the clock said then; none when it was deleted, since earlier ones do not continue. */
    latest(agent_id: AgentId): Effect.Effect<Option.Option<SessionRow>, DatabaseAway>
    readonly active: Effect.Effect<ReadonlyArray<SessionRow>, DatabaseAway>
    /** The ids that begin with a text, at most two. */
    beginningWith(prefix: string): Effect.Effect<ReadonlyArray<SessionId>, DatabaseAway>
  }
>()("choir/choird/SessionStore") {
  static readonly layer = Layer.effect(
    SessionStore,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const onDatabase = yield* useDatabase
      const tokens = yield* Tokens
      const signals = yield* Signals
      const endings = yield* makeNotifier
      const columns = sql.literal(COLUMNS)

      return SessionStore.of({
        create: Effect.fn("SessionStore.create")(create, onDatabase),
        continueNothing: (agent_id) => onDatabase(continueNothing(agent_id)),
        resume: Effect.fn("SessionStore.resume")(resume, onDatabase),
        recordContainer: Effect.fn("SessionStore.recordContainer")(function* (session_id, epoch, container) {
          yield* sql`UPDATE choir_control.sessions SET container = ${canonicalJson(container)}::jsonb
            WHERE session_id = ${session_id} AND epoch = ${epoch}`
        }, onDatabase),
        summarize: Effect.fn("SessionStore.summarize")(function* (session_id, summary) {
          yield* sql`UPDATE choir_control.sessions SET summary = ${canonicalJson(storableJson(summary))}::jsonb
            WHERE session_id = ${session_id}`
        }, onDatabase),
        summary: Effect.fn("SessionStore.summary")(function* (session_id) {
          const [row] = yield* sql<{ readonly summary: unknown }>`SELECT summary FROM choir_control.sessions
            WHERE session_id = ${session_id}`
          if (row === undefined || row.summary === null) return Option.none()
          return Option.some(yield* Effect.orDie(decodeSummary(row.summary)))
        }, onDatabase),
        end: Effect.fn("SessionStore.end")(function* (session_id, status) {
          yield* tokens.revoke(session_id)
          yield* endSession(session_id, status)
          yield* endings.wake(ENDED)
          yield* signals.forget(session_id)
        }, onDatabase),
        ended: endings.wakes(ENDED),
        freeze: Effect.fn("SessionStore.freeze")(freezeSession, onDatabase),
        get: Effect.fn("SessionStore.get")(function* (session_id) {
          return Option.fromUndefinedOr(yield* findSession(session_id))
        }, onDatabase),
        newer: Effect.fn("SessionStore.newer")(function* (session_id) {
          return Option.fromUndefinedOr(yield* newerEvents(session_id))
        }, onDatabase),
        list: Effect.fn("SessionStore.list")(function* (agent_id) {
          const found = yield* sql<Stored>`SELECT ${columns} FROM choir_control.sessions
            WHERE ${agent_id === undefined ? sql.literal("true") : sql`agent_id = ${agent_id}`}
            ORDER BY started_at DESC, session_id DESC LIMIT ${SESSIONS_LISTED_MAX}`
          return found.map(sessionRow)
        }, onDatabase),
        latest: Effect.fn("SessionStore.latest")(function* (agent_id) {
          const [row] = yield* sql<Stored>`SELECT ${columns} FROM choir_control.sessions
            WHERE agent_id = ${agent_id} AND NOT EXISTS (SELECT 1 FROM choir_control.agents AS a
              JOIN choir_control.deleted_sessions AS d ON d.session_id = a.last_session_id WHERE a.agent_id = ${agent_id})
            ORDER BY session_id =
              (SELECT last_session_id FROM choir_control.agents WHERE agent_id = ${agent_id}) DESC NULLS LAST,
              started_at DESC, session_id DESC LIMIT 1`
          return Option.map(Option.fromUndefinedOr(row), sessionRow)
        }, onDatabase),
        active: onDatabase(
          Effect.map(
            sql<Stored>`SELECT ${columns} FROM choir_control.sessions
              WHERE status = 'active' ORDER BY started_at, session_id`,
            (found) => found.map(sessionRow)
          )
        ),
        beginningWith: Effect.fn("SessionStore.beginningWith")(function* (prefix) {
          const found = yield* sql<{ readonly session_id: SessionId }>`SELECT session_id FROM choir_control.sessions
            WHERE starts_with(session_id, ${prefix}) ORDER BY session_id LIMIT 2`
          return found.map(({ session_id }) => session_id)
        }, onDatabase)
      })
    })
  )
}

const ENDED = "ended"

const endSession = Effect.fnUntraced(function* (session_id: SessionId, status: SessionStatus) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE choir_control.sessions
    SET status = ${status}, ended_at = coalesce(ended_at, now()), memory_until = last_rev WHERE session_id = ${session_id}`
  yield* askForChunks(session_id)
}, inTransaction)

const decodeSummary = Schema.decodeUnknownEffect(Summary)

type Stored = Omit<SessionRow, "started_at" | "ended_at" | "image_version"> & {
  readonly started_at: Date
  readonly ended_at: Date | null
  readonly image_version: string | null
}

const COLUMNS =
  "session_id, agent_id, status, started_at, ended_at, resource_bindings, epoch, last_rev, log_bytes::float8 AS log_bytes, frozen_reason, image_version, container"

const sessionRow = (row: Stored): SessionRow => ({
  ...row,
  started_at: row.started_at.toISOString(),
  ended_at: row.ended_at?.toISOString() ?? null,
  image_version: row.image_version ?? ""
})

const findSession = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Stored>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.sessions
    WHERE session_id = ${session_id}`
  return row === undefined ? undefined : sessionRow(row)
})

/** Makes a session the agent's active one. A second active session of an agent would be a second instance (invariant 11). */
const begin = Effect.fnUntraced(function* <E, R>(
  agent_id: AgentId,
  session_id: SessionId,
  image_version: string,
  change: Effect.Effect<ReadonlyArray<Stored>, E, R>,
  continues = false
) {
  const sql = yield* SqlClient.SqlClient
  yield* lockAgent(agent_id)
  const active = yield* lockActiveSession(agent_id)
  if (active !== undefined && active !== session_id)
    return yield* Effect.die(new Error(`the agent ${agent_id} still has the active session ${active}`))
  const [row] = yield* change
  if (row === undefined) return yield* Effect.die(new Error(`the session ${session_id} was not written`))
  if (continues) yield* continueLast(agent_id, session_id)
  yield* sql`INSERT INTO choir_control.agents (agent_id, name, image_version, last_session_id)
    VALUES (${agent_id}, ${agent_id}, ${image_version}, ${session_id})
    ON CONFLICT (agent_id) DO UPDATE
    SET image_version = excluded.image_version, last_session_id = excluded.last_session_id`
  yield* dropAnswered(session_id)
  yield* signalInbox(agent_id, session_id)
  return sessionRow(row)
}, inTransaction)

const create = Effect.fnUntraced(function* (
  agent_id: AgentId,
  bindings: RunBindings,
  image_version: string,
  continues = false
) {
  const sql = yield* SqlClient.SqlClient
  const session_id = sessionId(yield* Clock.currentTimeMillis, randomBytes(4))
  return yield* begin(
    agent_id,
    session_id,
    image_version,
    // The id of a deleted session is never given again.
    sql<Stored>`INSERT INTO choir_control.sessions
      (session_id, agent_id, status, resource_bindings, epoch, image_version, choird_version)
      SELECT ${session_id}::text, ${agent_id}::text, 'active', ${canonicalJson(bindings)}::text::jsonb, 1,
        ${image_version}::text, ${VERSION}::text
      WHERE NOT EXISTS (SELECT 1 FROM choir_control.deleted_sessions WHERE session_id = ${session_id})
      RETURNING ${sql.literal(COLUMNS)}`,
    continues
  )
})

const resume = Effect.fnUntraced(function* (session_id: SessionId, bindings: RunBindings, image_version: string) {
  const sql = yield* SqlClient.SqlClient
  const known = yield* findSession(session_id)
  if (known === undefined) return yield* Effect.die(new Error(`there is no session ${session_id} to resume`))
  return yield* begin(
    known.agent_id,
    session_id,
    image_version,
    sql<Stored>`UPDATE choir_control.sessions
      SET status = 'active', ended_at = NULL, epoch = epoch + 1, container = NULL,
        resource_bindings = ${canonicalJson(bindings)}::jsonb, image_version = ${image_version},
        choird_version = ${VERSION}
      WHERE session_id = ${session_id} AND archive IS NULL RETURNING ${sql.literal(COLUMNS)}`
  )
})

/** Marks a session as frozen. The reason may quote an agent, so it is cut and made storable. */
export const freezeSession = Effect.fnUntraced(function* (session_id: SessionId, reason: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE choir_control.sessions
    SET frozen_reason = coalesce(frozen_reason, ${storableJson(reason.slice(0, FROZEN_REASON_CHARS_MAX))})
    WHERE session_id = ${session_id}`
})

const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
const RANDOM_BITS = 32n

/** 48 bits of milliseconds, then 32 random bits, as 16 Crockford base32 digits: later sessions sort after earlier ones. */
export const sessionId = (now_ms: number, random: Uint8Array): SessionId => {
  const low = Buffer.from(random).readUInt32BE(0)
  const bits = (BigInt(now_ms) << RANDOM_BITS) | BigInt(low)
  const digits = Array.from({ length: 16 }, (_, index) => DIGITS[Number((bits >> BigInt(75 - 5 * index)) & 31n)])
  return SessionId.make(digits.join(""))
}
