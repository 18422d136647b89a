/** Documents of an agent's memory, written as the database has them. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { agentSchema, AgentSchemas } from "#src/choird/database/AgentSchemas.ts"
import { addWords } from "#src/choird/memory/wordRows.ts"

/** Makes the tables of an agent's memory. */
export const makeMemory = (agent_id: AgentId) =>
  Effect.flatMap(AgentSchemas, (schemas) => schemas.ensure(agent_id)).pipe(
    Effect.provide(AgentSchemas.layer),
    Effect.orDie
  )

export const writeFact = Effect.fnUntraced(function* (agent_id: AgentId, key: string | null, text: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly id: string }>`INSERT INTO ${sql(`${agentSchema(agent_id)}.knowledge_documents`)}
    (key, text, text_hash, untrusted, source)
    VALUES (${key}, ${text}, sha256(convert_to(${text}, 'UTF8')), false, '{}'::jsonb) RETURNING id::text`
  yield* addWords(agent_id, "knowledge_documents")
  return row?.id ?? ""
}, Effect.orDie)

/** Gives their words to all documents that were written as rows. */
export const addAllWords = (agent_id: AgentId) =>
  addWords(agent_id, "memory_documents").pipe(Effect.repeat({ while: (added) => added > 0 }), Effect.orDie)

let chunks = 0

export const writeChunk = Effect.fnUntraced(function* (agent_id: AgentId, text: string, tier = "mid_term") {
  const sql = yield* SqlClient.SqlClient
  chunks += 1
  const [row] = yield* sql<{ readonly id: string }>`INSERT INTO ${sql(`${agentSchema(agent_id)}.memory_documents`)}
    (session_id, tier, lane, first_rev, last_rev, source_events, chunk_index, text, text_hash, untrusted, said_at)
    VALUES ('0k8v3w9m2p1n4q7s', ${tier}, 'edge', ${chunks}, ${chunks}, '{}', ${chunks}, ${text}, sha256(convert_to(${text}, 'UTF8')), false, now())
    RETURNING id::text`
  yield* addWords(agent_id, "memory_documents")
  return row?.id ?? ""
}, Effect.orDie)

export interface StoredVector {
  readonly id: string
  readonly model: string
  readonly dimensions: number
}

/** Every vector of an agent, facts first, in the order of their ids. */
export const vectorsOf = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const schema = agentSchema(agent_id)
  const of = (table: string) => sql<StoredVector>`SELECT document_id::text AS id, model,
    vector_dims(embedding) AS dimensions FROM ${sql(`${schema}.${table}`)} ORDER BY document_id, model`
  return [...(yield* of("knowledge_embeddings")), ...(yield* of("memory_embeddings"))]
}, Effect.orDie)
