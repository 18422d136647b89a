/** The rows of facts: reading and writing them, within work of their agent. */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import type { DocumentId, Fact, FactKey, FactSource } from "#schema/Memory.ts"
import { canonicalJson, storableJson } from "#src/shared/text/canonicalJson.ts"
import { agentTable } from "./agentTables.ts"
import { addWords } from "./wordRows.ts"

interface FactRow {
  readonly id: DocumentId
  readonly key: FactKey | null
  readonly text: string
  readonly untrusted: boolean
  readonly source: FactSource
  readonly created_at: Date
  readonly valid_to: Date | null
  readonly superseded_by: DocumentId | null
}

const COLUMNS =
  "id::text AS id, key, text, untrusted, source, created_at, valid_to, superseded_by::text AS superseded_by"

const factOf = ({ created_at, valid_to, ...row }: FactRow): Fact => ({
  ...row,
  created_at: created_at.toISOString(),
  valid_to: valid_to?.toISOString() ?? null
})

/** Facts `f` that fit, in an order. */
export const readFacts = Effect.fnUntraced(function* (
  agent_id: AgentId,
  rest: Effect.Effect<Statement.Fragment, never, SqlClient.SqlClient>
) {
  const sql = yield* SqlClient.SqlClient
  const which = yield* rest
  const rows = yield* sql<FactRow>`SELECT ${sql.literal(COLUMNS)}
    FROM ${sql(agentTable(agent_id, "knowledge_documents"))} AS f WHERE ${which}`
  return rows.map(factOf)
})

/** Equal for texts that differ in nothing but spaces and case. */
export const textHash = (text: string): Buffer =>
  createHash("sha256").update(text.normalize("NFC").toLowerCase().replaceAll(/\s+/gu, " ").trim()).digest()

/** A fact as it is stored. */
export interface FactValues {
  readonly key: FactKey | null
  readonly text: string
  readonly untrusted: boolean
  readonly source: FactSource
  readonly call_id: string | null
}

export const insertFact = Effect.fnUntraced(function* (agent_id: AgentId, values: FactValues) {
  const sql = yield* SqlClient.SqlClient
  const { call_id, key, source, text, untrusted } = values
  const stored = storableJson(text)
  const [row] = yield* sql<FactRow>`INSERT INTO ${sql(agentTable(agent_id, "knowledge_documents"))}
    (key, text, text_hash, untrusted, source, call_id)
    VALUES (${key}, ${stored}, ${textHash(stored)}, ${untrusted}, ${canonicalJson(source)}::jsonb, ${call_id})
    RETURNING ${sql.literal(COLUMNS)}`
  if (row === undefined) return yield* Effect.die(new Error("a fact was not written"))
  yield* addWords(agent_id, "knowledge_documents", [row.id])
  return factOf(row)
})

/** Ends facts: their vectors go, and the rows stay with what replaced them. */
export const endFacts = Effect.fnUntraced(function* (agent_id: AgentId, ids: ReadonlyArray<DocumentId>) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE ${sql(agentTable(agent_id, "knowledge_documents"))}
    SET valid_to = now(), updated_at = now(), embed_after = NULL WHERE id = ANY(${ids}::uuid[])`
  yield* sql`DELETE FROM ${sql(agentTable(agent_id, "knowledge_embeddings"))} WHERE document_id = ANY(${ids}::uuid[])`
})

/** Says of an ended fact what replaced it. */
export const supersede = Effect.fnUntraced(function* (agent_id: AgentId, id: DocumentId, by: DocumentId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE ${sql(agentTable(agent_id, "knowledge_documents"))} SET superseded_by = ${by}::uuid WHERE id = ${id}::uuid`
})
