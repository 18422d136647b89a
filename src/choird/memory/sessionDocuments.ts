/** The rows of `memory_documents`: the chunks and summaries of sessions. All statements are for within `asAgent`, but the one that says so. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { storableJson } from "#src/shared/text/canonicalJson.ts"
import { agentTable, asAgent } from "./agentTables.ts"
import type { Chunk } from "./chunks.ts"
import { hasMemory } from "./embeddingRows.ts"
import { addWords, DOCUMENTS_MAX } from "./wordRows.ts"

/** Chunks of one session; the oldest go first. The log still has their events. */
export const SESSION_CHUNKS_MAX = 4000
/** Rows of a deleted session that one statement removes. */
const DELETED_ROWS_MAX = 500

export type Tier = "mid_term" | "long_term_summary"

/** Stores chunks. Words that the session has already, under the same label, are kept once. */
export const insertChunks = Effect.fnUntraced(function* (
  agent_id: AgentId,
  session_id: SessionId,
  tier: Tier,
  chunks: ReadonlyArray<Chunk>
) {
  const sql = yield* SqlClient.SqlClient
  if (chunks.length === 0) return
  const once = new Map(chunks.map((chunk) => [`${chunk.text_hash} ${chunk.untrusted}`, chunk]))
  const rows = storableJson([...once.values()].map(({ text_hash, ...chunk }) => ({ ...chunk, hash: text_hash })))
  const table = sql(agentTable(agent_id, "memory_documents"))
  // Words that are said again are remembered by their newest time: what was true before may be true again.
  yield* sql`DELETE FROM ${table} AS d USING jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) AS c (first_rev int, hash text, untrusted boolean)
    WHERE d.session_id = ${session_id} AND (d.tier = 'long_term_summary') = ${tier === "long_term_summary"}
      AND d.text_hash = decode(c.hash, 'hex') AND d.untrusted = c.untrusted AND d.first_rev < c.first_rev`
  const stored = yield* sql<{
    readonly id: string
  }>`INSERT INTO ${table} (session_id, tier, lane, first_rev, last_rev, part, source_events, chunk_index, text, text_hash,
      untrusted, said_at, metadata)
    SELECT ${session_id}, ${tier}, c.lane, c.first_rev, c.last_rev, c.part, c.source_events, c.index, c.text,
      decode(c.hash, 'hex'), c.untrusted, c.said_at, c.metadata
    FROM jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) AS c (lane text, first_rev int, last_rev int, part int,
      source_events text[], index int, text text, hash text, untrusted boolean, said_at timestamptz, metadata jsonb)
    WHERE NOT EXISTS (SELECT FROM ${table} AS d WHERE d.session_id = ${session_id}
      AND (d.tier = 'long_term_summary') = ${tier === "long_term_summary"}
      AND d.text_hash = decode(c.hash, 'hex') AND d.untrusted = c.untrusted)
    ORDER BY c.index
    ON CONFLICT (session_id, (tier = 'long_term_summary'), lane, first_rev, part) DO NOTHING
    RETURNING id::text AS id`
  for (let from = 0; from < stored.length; from += DOCUMENTS_MAX)
    yield* addWords(
      agent_id,
      "memory_documents",
      stored.slice(from, from + DOCUMENTS_MAX).map(({ id }) => id)
    )
})

/** Deletes the chunks of a session that are too many. `count` are all that it ever had. */
export const deleteOldest = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId, count: number) {
  const sql = yield* SqlClient.SqlClient
  if (count <= SESSION_CHUNKS_MAX) return
  yield* sql`DELETE FROM ${sql(agentTable(agent_id, "memory_documents"))}
    WHERE session_id = ${session_id} AND tier <> 'long_term_summary' AND chunk_index < ${count - SESSION_CHUNKS_MAX}`
})

/** Makes detail of a session's chunks, which has no vectors. */
export const moveToDetail = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM ${sql(agentTable(agent_id, "memory_embeddings"))} WHERE session_id = ${session_id}`
  yield* sql`UPDATE ${sql(agentTable(agent_id, "memory_documents"))}
    SET tier = 'long_term_detail', embed_after = NULL, embed_attempts = 0
    WHERE session_id = ${session_id} AND tier = 'mid_term'`
})

export const deleteSummary = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM ${sql(agentTable(agent_id, "memory_documents"))}
    WHERE session_id = ${session_id} AND tier = 'long_term_summary'`
})

export const deleteDetail = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM ${sql(agentTable(agent_id, "memory_documents"))}
    WHERE session_id = ${session_id} AND tier = 'long_term_detail'`
})

export const deleteDocuments = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM ${sql(agentTable(agent_id, "memory_documents"))} WHERE session_id = ${session_id}`
})

/** Removes what memory holds of a session that is deleted, in statements of a bounded size. Not for within a transaction. */
export const clearSessionMemory = Effect.fnUntraced(function* (
  agent_id: AgentId,
  session_id: SessionId,
  pause: Effect.Effect<void>
) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM choir_control.memory_jobs WHERE session_id = ${session_id}`
  if (!(yield* hasMemory(agent_id))) return
  const table = sql(agentTable(agent_id, "memory_documents"))
  const some = asAgent(
    agent_id,
    sql`DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM ${table} WHERE session_id = ${session_id} LIMIT ${DELETED_ROWS_MAX})) RETURNING 1`
  )
  yield* some.pipe(Effect.tap(pause), Effect.repeat({ while: (rows) => rows.length === DELETED_ROWS_MAX }))
})
