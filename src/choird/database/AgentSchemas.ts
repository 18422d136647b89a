import { Context, Effect, Layer } from "effect"
import { type SqlError, SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { type DatabaseAway, inTransaction, useDatabase } from "./DatabaseAway.ts"
import { sqlState } from "./sqlState.ts"

/** The states of a document on its way to a vector: `embed_after` is when the next try is due, null once no further one is made. */
const EMBEDDING = `embed_attempts smallint NOT NULL DEFAULT 0, embed_after timestamptz DEFAULT '-infinity'`

/** Vectors stay in their rows where a page has room for them: comparing all of them then takes a third of the time. */
const vectorsInline = (schema: string, table: string): string =>
  `ALTER TABLE ${schema}.${table} ALTER COLUMN embedding SET STORAGE MAIN`

/** The indexes of a table's words, and of its documents that have none yet. */
const wordIndexes = (schema: string, table: string): ReadonlyArray<string> => [
  `CREATE INDEX IF NOT EXISTS ${table}_words ON ${schema}.${table} USING gin (tsv)`,
  `CREATE INDEX IF NOT EXISTS ${table}_wordless ON ${schema}.${table} (id) WHERE tsv IS NULL`
]

/**
 * The tables of an agent's long-term memory, as idempotent statements in their order. Vectors are rows of their own: a text may have none yet,
 * or those of two models while one takes the place of the other (D37). The search path of the connection is not relied on: `schema` is quoted.
 */
const memoryTables = (schema: string): ReadonlyArray<string> => [
  `CREATE TABLE IF NOT EXISTS ${schema}.memory_documents (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    session_id text NOT NULL,
    tier text NOT NULL CHECK (tier IN ('mid_term', 'long_term_summary', 'long_term_detail')),
    lane text NOT NULL,
    -- The events that it was made of: revisions of its session, and the part where one event takes several chunks.
    first_rev integer NOT NULL,
    last_rev integer NOT NULL,
    part integer NOT NULL DEFAULT 0,
    source_events text[] NOT NULL,
    chunk_index integer NOT NULL,
    text text NOT NULL,
    -- Its words; null until choird has divided the text.
    tsv tsvector,
    text_hash bytea NOT NULL,
    -- The worst label of its sources (D31).
    untrusted boolean NOT NULL,
    said_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    metadata jsonb NOT NULL DEFAULT '{}',
    ${EMBEDDING}
  )`,
  `CREATE UNIQUE INDEX IF NOT EXISTS memory_documents_place ON ${schema}.memory_documents
    (session_id, (tier = 'long_term_summary'), lane, first_rev, part)`,
  ...wordIndexes(schema, "memory_documents"),
  `CREATE INDEX IF NOT EXISTS memory_documents_due ON ${schema}.memory_documents (embed_after) WHERE embed_after IS NOT NULL`,
  `CREATE TABLE IF NOT EXISTS ${schema}.memory_embeddings (
    document_id uuid NOT NULL REFERENCES ${schema}.memory_documents (id) ON DELETE CASCADE,
    model text NOT NULL,
    -- Columns of its document that searches filter by, so that the index of vectors is scanned alone.
    session_id text NOT NULL,
    tier text NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (document_id, model)
  )`,
  vectorsInline(schema, "memory_embeddings"),
  `CREATE INDEX IF NOT EXISTS memory_embeddings_session ON ${schema}.memory_embeddings (session_id)`,
  `CREATE TABLE IF NOT EXISTS ${schema}.knowledge_documents (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    key text,
    text text NOT NULL,
    tsv tsvector,
    text_hash bytea NOT NULL,
    untrusted boolean NOT NULL,
    -- Who wrote it and from which event: { kind, session_id?, rev?, hash?, call_id?, who? }.
    source jsonb NOT NULL,
    -- The call that wrote it, so that a repeated one writes nothing.
    call_id text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- A value that another one of its key replaced, or that was deleted, stays with its end.
    valid_to timestamptz,
    superseded_by uuid,
    metadata jsonb NOT NULL DEFAULT '{}',
    ${EMBEDDING}
  )`,
  `CREATE UNIQUE INDEX IF NOT EXISTS knowledge_documents_key ON ${schema}.knowledge_documents (key) WHERE valid_to IS NULL`,
  `CREATE UNIQUE INDEX IF NOT EXISTS knowledge_documents_call ON ${schema}.knowledge_documents (call_id) WHERE call_id IS NOT NULL`,
  ...wordIndexes(schema, "knowledge_documents"),
  `CREATE INDEX IF NOT EXISTS knowledge_documents_due ON ${schema}.knowledge_documents (embed_after) WHERE embed_after IS NOT NULL`,
  `CREATE TABLE IF NOT EXISTS ${schema}.knowledge_embeddings (
    document_id uuid NOT NULL REFERENCES ${schema}.knowledge_documents (id) ON DELETE CASCADE,
    model text NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (document_id, model)
  )`,
  vectorsInline(schema, "knowledge_embeddings")
]

/** The name of an agent's schema and of its role. Always quoted with `sql(..)`: an agent id may hold a hyphen (D36). */
export const agentSchema = (agent: AgentId): string => `choir_${agent}`

/** The same between quotes, for statements that are not built of fragments. */
const quoted = (agent: AgentId): string => `"${agentSchema(agent)}"`

/** The advisory lock under which roles and schemas change: concurrent grants fail each other. */
const LOCK = 0x6167656e74
const DUPLICATE_OBJECT = "42710"

const isDuplicate = (error: SqlError.SqlError) =>
  error.reason._tag === "UniqueViolation" || sqlState(error) === DUPLICATE_OBJECT

/** Each agent's own corner of the database. */
export class AgentSchemas extends Context.Service<
  AgentSchemas,
  {
    /**
     * Creates the agent's schema with the tables of its memory, and its role, which can log in nowhere and may only read and write the tables of that schema.
     * Doing it again changes nothing. The role is for `SET LOCAL ROLE`: a seat belt, since `RESET ROLE` undoes it (D36).
     */
    ensure(agent: AgentId): Effect.Effect<void, DatabaseAway>
  }
>()("choir/choird/AgentSchemas") {
  static readonly layer = Layer.effect(
    AgentSchemas,
    Effect.map(useDatabase, (onDatabase) =>
      AgentSchemas.of({ ensure: (agent) => onDatabase(createAgentSchema(agent)) })
    )
  )
}

/** Creates the schema and the role of an agent, with the failures of the statements as they are, for work that is SQL itself. */
export const createAgentSchema = Effect.fn("AgentSchemas.create")(function* (agent: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const name = sql(agentSchema(agent))
  yield* sql`SELECT pg_advisory_xact_lock(${LOCK})`
  const roles = yield* sql`SELECT 1 FROM pg_roles WHERE rolname = ${agentSchema(agent)}`
  // Roles belong to the whole server: another Choir there may make this one just now, hence the savepoint.
  if (roles.length === 0) {
    yield* Effect.catchIf(sql.withTransaction(sql`CREATE ROLE ${name} NOLOGIN`), isDuplicate, () => Effect.void)
  }
  yield* sql`GRANT ${name} TO CURRENT_USER`
  yield* sql`CREATE SCHEMA IF NOT EXISTS ${name}`
  yield* sql`GRANT USAGE ON SCHEMA ${name} TO ${name}`
  yield* sql`ALTER DEFAULT PRIVILEGES IN SCHEMA ${name} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ${name}`
  for (const statement of memoryTables(quoted(agent))) yield* sql.unsafe(statement)
}, inTransaction)
