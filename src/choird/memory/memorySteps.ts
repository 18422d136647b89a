/** The next piece of work on an agent's session memory: a page of a session's events, or a session's promotion. Each is one transaction. */
import { Cause, Effect, Option, Result, Schema } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { SessionStatus } from "#schema/SessionStatus.ts"
import { Summary } from "#schema/Summary.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { inTransaction, retryDatabase, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { sqlProblem } from "#src/choird/database/sqlState.ts"
import { askForPromotion, finishJob, type MemoryJob, nextJob, postponeJob } from "#src/choird/queues/memoryJobs.ts"
import { headHash } from "#src/choird/sessions/readLog.ts"
import { readPage } from "#src/choird/sessions/storedEvents.ts"
import { eventOf, type EventRow, type NoEvent, readRow } from "#src/shared/events/eventRow.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import { canonicalJson, storableJson } from "#src/shared/text/canonicalJson.ts"
import { asAgent } from "./agentTables.ts"
import { type Chunked, chunkEvent, ChunkState, closeChunks, noChunks, skipUnknown } from "./chunks.ts"
import { EmbeddingQueue } from "./EmbeddingQueue.ts"
import { hasMemory } from "./embeddingRows.ts"
import {
  deleteDetail,
  deleteOldest,
  deleteSummary,
  insertChunks,
  moveToDetail,
  SESSION_CHUNKS_MAX
} from "./sessionDocuments.ts"
import { addWords } from "./wordRows.ts"
import { summaryChunks } from "./summaryChunks.ts"

/** Canonical bytes of the events of one step; a single event may have more. */
const PAGE_BYTES_MAX = 128 * 1024
/** Events between which others have choird's thread. */
const SLICE_EVENTS_MAX = 16
/** Chunks of long-term detail of one agent. Beyond it those of the oldest session go, and its summary stays. */
const DETAIL_CHUNKS_MAX = 100_000

interface Session {
  readonly status: SessionStatus
  readonly last_rev: number
  /** How far its chunks go while it is active. */
  readonly memory_until: number
  readonly archived: boolean
  readonly memory_state: unknown
}

const decodeState = Schema.decodeUnknownOption(ChunkState)
const decodeSummary = Schema.decodeUnknownOption(Summary)

/** The state of a session's chunks. One that an earlier version wrote in another form begins again; stored chunks are not stored twice. */
const stateOf = (memory_state: unknown): ChunkState => Option.getOrElse(decodeState(memory_state), () => noChunks)

const readSession = Effect.fnUntraced(function* ({ agent_id, session_id }: MemoryJob) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Session>`SELECT status, last_rev, memory_until, archive IS NOT NULL AS archived, memory_state
    FROM choir_control.sessions WHERE session_id = ${session_id} AND agent_id = ${agent_id}`
  return row
})

/** The chunks after one more row. */
const chunkRow = (state: ChunkState, row: EventRow): Effect.Effect<Chunked> => {
  const event = Result.flatMap(
    Result.mapError(readRow(row), (reason): NoEvent => ({ reason })),
    eventOf
  )
  if (Result.isSuccess(event)) return Effect.succeed(chunkEvent(state, event.success, hex(row.hash)))
  const { newer, reason } = event.failure
  return newer === undefined
    ? Effect.die(new Error(`stored event ${row.rev}: ${reason}`))
    : Effect.succeed({ state: skipUnknown(state, row.rev), chunks: [] })
}

const chunkRows = Effect.fnUntraced(function* (from: ChunkState, rows: ReadonlyArray<EventRow>) {
  let state = from
  const chunks: Array<Chunked["chunks"][number]> = []
  for (const [place, row] of rows.entries()) {
    if (row.rev !== state.rev + 1) return yield* Effect.die(new Error(`event ${state.rev + 1} is missing`))
    const done = yield* chunkRow(state, row)
    state = done.state
    chunks.push(...done.chunks)
    if (place % SLICE_EVENTS_MAX === SLICE_EVENTS_MAX - 1) yield* Effect.yieldNow
  }
  const chunked: Chunked = { state, chunks }
  return chunked
})

/**
 * Stores chunks and how far they are, and ends the job where they are complete. Nothing is stored for a job that is gone or was asked for again
 * meanwhile: its session was deleted, or its words may be forgotten.
 */
const commitChunks = Effect.fnUntraced(function* (job: MemoryJob, { chunks, state }: Chunked, isEnd: boolean) {
  const sql = yield* SqlClient.SqlClient
  const { agent_id, requested_at, session_id } = job
  // In the order in which the end of a session locks them.
  yield* sql`SELECT 1 FROM choir_control.sessions WHERE session_id = ${session_id} FOR UPDATE`
  const current = yield* sql`SELECT 1 FROM choir_control.memory_jobs WHERE agent_id = ${agent_id} AND kind = 'chunk'
    AND session_id = ${session_id} AND requested_at::text = ${requested_at} FOR UPDATE`
  if (current.length === 0) return
  yield* sql`UPDATE choir_control.sessions SET memory_state = ${canonicalJson(storableJson(state))}::jsonb,
      memory_tier = CASE WHEN ${chunks.length > 0} THEN 'mid_term' ELSE memory_tier END
    WHERE session_id = ${session_id}`
  if (isEnd) {
    yield* finishJob(job)
    yield* askForPromotion(job)
  }
  const write = Effect.andThen(
    insertChunks(agent_id, session_id, "mid_term", chunks),
    deleteOldest(agent_id, session_id, state.count)
  )
  yield* asAgent(agent_id, write)
}, inTransaction)

/**
 * One page of a session's events: of one that runs what left its window, so that nothing is in a prompt twice. The events of an archived session
 * are not read any more: it keeps the chunks that it has.
 */
const chunkPage = Effect.fnUntraced(function* (job: MemoryJob) {
  const session = yield* readSession(job)
  if (session === undefined) return yield* finishJob(job)
  const { archived, last_rev, memory_state, memory_until, status } = session
  const before = stateOf(memory_state)
  const until = status === "active" ? memory_until : last_rev
  const isRead = archived || before.rev >= until
  const page = isRead ? [] : yield* readPage(job.session_id, before.rev + 1, PAGE_BYTES_MAX)
  if (!isRead && page.length === 0) return yield* Effect.die(new Error(`event ${before.rev + 1} is missing`))
  const done = yield* chunkRows(
    before,
    page.filter(({ rev }) => rev <= until)
  )
  const isEnd = archived || done.state.rev >= until
  const last = isEnd ? closeChunks(done.state) : { state: done.state, chunks: [] }
  yield* commitChunks(job, { state: last.state, chunks: [...done.chunks, ...last.chunks] }, isEnd)
})

interface Promoted {
  readonly last_rev: number
  readonly head_hash: Uint8Array | null
  readonly summary: unknown
  readonly memory_state: unknown
  readonly ended_at: Date
}

/** Makes detail of a session's chunks and chunks of its summary. One without a summary has its detail alone. */
const promote = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  const [session] = yield* sql<Promoted>`UPDATE choir_control.sessions SET memory_tier = 'long_term'
    WHERE session_id = ${session_id} AND memory_tier = 'mid_term'
    RETURNING last_rev, head_hash, summary, memory_state, coalesce(ended_at, now()) AS ended_at`
  if (session === undefined) return
  const { ended_at, head_hash, last_rev, memory_state, summary } = session
  const { sources, untrusted } = stateOf(memory_state)
  const summed = {
    last_rev,
    ended_at: ended_at.toISOString(),
    head: hex(headHash(session_id, head_hash)),
    untrusted,
    sources
  }
  const chunks = Option.match(decodeSummary(summary), {
    onNone: () => [],
    onSome: (summary) => summaryChunks(summary, summed)
  })
  const write = Effect.gen(function* () {
    yield* moveToDetail(agent_id, session_id)
    if (chunks.length > 0) yield* deleteSummary(agent_id, session_id)
    yield* insertChunks(agent_id, session_id, "long_term_summary", chunks)
  })
  yield* asAgent(agent_id, write)
}, inTransaction)

/** Deletes the detail of a session and keeps its summary. */
const dropDetail = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE choir_control.sessions SET memory_tier = 'summary' WHERE session_id = ${session_id}`
  yield* asAgent(agent_id, deleteDetail(agent_id, session_id))
}, inTransaction)

/** Promotes one session that is not among the newest, or deletes the detail of one that is too old; ends the job where there is no such session. */
const promoteNext = Effect.fnUntraced(function* (job: MemoryJob, sessions_max: number, details_max: number) {
  const sql = yield* SqlClient.SqlClient
  const { agent_id } = job
  const [old] = yield* sql<{ readonly session_id: SessionId }>`SELECT session_id FROM choir_control.sessions
    WHERE agent_id = ${agent_id} AND memory_tier = 'mid_term'
    ORDER BY (status = 'active') DESC, ended_at DESC NULLS FIRST, session_id DESC OFFSET ${sessions_max} LIMIT 1`
  if (old !== undefined) return yield* promote(agent_id, old.session_id)
  const [oldest] = yield* sql<{ readonly session_id: SessionId }>`SELECT session_id FROM (
      SELECT session_id, ended_at, sum(least(coalesce((memory_state ->> 'count')::int, 0), ${SESSION_CHUNKS_MAX}))
        OVER (ORDER BY ended_at DESC NULLS FIRST, session_id DESC) AS total
      FROM choir_control.sessions WHERE agent_id = ${agent_id} AND memory_tier = 'long_term'
    ) AS old WHERE total > ${details_max} ORDER BY ended_at, session_id LIMIT 1`
  if (oldest !== undefined) return yield* dropDetail(agent_id, oldest.session_id)
  yield* finishJob(job)
})

/** Gives their words to some documents that an earlier Choir or a backup left without. */
const addMissingWords = Effect.fnUntraced(function* (agent_id: AgentId) {
  return (yield* addWords(agent_id, "knowledge_documents")) + (yield* addWords(agent_id, "memory_documents"))
})

/** `details_max` is for tests alone. */
export const makeMemorySteps = Effect.fnUntraced(function* (details_max = DETAIL_CHUNKS_MAX) {
  const config = yield* ConfigStore
  const embeddings = yield* EmbeddingQueue
  const use = yield* useDatabase
  const onDatabase = <A, E, R>(work: Effect.Effect<A, E, R>) => retryDatabase(use(work))

  const work = Effect.fnUntraced(function* (job: MemoryJob) {
    if (job.kind === "chunk") yield* onDatabase(chunkPage(job))
    else {
      const { mid_term_sessions } = (yield* config.current).config.memory
      yield* onDatabase(promoteNext(job, mid_term_sessions, details_max))
    }
    yield* embeddings.wake
  })

  /** A job that fails concerns itself alone. */
  const failed = Effect.fnUntraced(function* (job: MemoryJob, cause: Cause.Cause<unknown>) {
    const problem = Cause.squash(cause)
    const text = SqlError.isSqlError(problem) ? sqlProblem(problem) : String(problem)
    yield* Effect.logError(
      `${job.agent_id}: adding the session ${job.session_id} to memory failed; choird tries again later`,
      cause
    )
    yield* onDatabase(postponeJob(job, text))
  })

  return {
    /** Does one step of an agent's jobs; answers whether there was one. */
    next: Effect.fnUntraced(function* (agent_id: AgentId) {
      if (!(yield* onDatabase(hasMemory(agent_id)))) return false
      if ((yield* onDatabase(asAgent(agent_id, addMissingWords(agent_id)))) > 0) return true
      const job = yield* onDatabase(nextJob(agent_id))
      if (job === undefined) return false
      yield* Effect.catchCauseIf(
        work(job),
        (cause) => !Cause.hasInterrupts(cause),
        (cause) => failed(job, cause)
      )
      return true
    })
  }
})
