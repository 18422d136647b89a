/**
 * The documents of an agent's memory that have no vector yet, and the statements that give them one. A document whose `embed_after` is set
 * is due from then on; a vector and the end of its wait are one statement, so that neither comes without the other or twice.
 */
import { toSql } from "pgvector"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { agentTable, asAgent } from "./agentTables.ts"
import { EMBEDDING_TABLES, type EmbeddingTable } from "./VectorIndexes.ts"

/** Tries of a text that the model refuses before it holds up nothing any more. It is tried again all the same. */
const EMBEDDING_TRIES_MAX = 3
/** Old vectors that one statement deletes. */
const DELETED_ROWS_MAX = 500

/** Facts, which people wait for, before chunks of sessions. */
export const KINDS = ["knowledge", "memory"] as const
export type DocumentKind = (typeof KINDS)[number]

interface Kind {
  readonly documents: string
  readonly embeddings: EmbeddingTable
  /** Whether a document `d` has a vector at all. */
  readonly embeddable: string
  /** Its words as the model reads them. */
  readonly text: string
  /** The columns that its vector repeats. */
  readonly repeated: ReadonlyArray<string>
}

const TABLES: Readonly<Record<DocumentKind, Kind>> = {
  knowledge: {
    documents: "knowledge_documents",
    embeddings: "knowledge_embeddings",
    embeddable: "d.valid_to IS NULL",
    // A value alone seldom says what it is about.
    text: "coalesce(translate(d.key, '._', '  ') || ': ', '') || d.text",
    repeated: []
  },
  memory: {
    documents: "memory_documents",
    embeddings: "memory_embeddings",
    embeddable: "d.tier <> 'long_term_detail'",
    text: "d.text",
    repeated: ["session_id", "tier"]
  }
}

/** A document without a vector. */
export interface WaitingDocument {
  readonly kind: DocumentKind
  readonly id: string
  readonly text: string
  /** Of its words: a vector of other words is not stored. */
  readonly text_hash: string
}

const read = Effect.fnUntraced(function* (
  agent_id: AgentId,
  kind: DocumentKind,
  rest: string,
  params: ReadonlyArray<unknown>
) {
  const sql = yield* SqlClient.SqlClient
  const { documents, embeddable, text } = TABLES[kind]
  const rows = yield* sql.unsafe<Omit<WaitingDocument, "kind">>(
    `SELECT d.id::text AS id, ${text} AS text, encode(d.text_hash, 'hex') AS text_hash
      FROM ${quoted(agent_id, documents)} AS d WHERE ${embeddable} AND ${rest}`,
    params
  )
  return rows.map((row): WaitingDocument => ({ kind, ...row }))
})

/** An agent's id holds no quote. */
const quoted = (agent_id: AgentId, table: string) =>
  agentTable(agent_id, table)
    .split(".")
    .map((name) => `"${name}"`)
    .join(".")

/** The documents whose time has come, the ones that wait longest first. Those that need no vector any more stop waiting. */
export const dueDocuments = Effect.fnUntraced(function* (agent_id: AgentId, limit: number) {
  const sql = yield* SqlClient.SqlClient
  return yield* asAgent(
    agent_id,
    Effect.gen(function* () {
      const found: Array<WaitingDocument> = []
      for (const kind of KINDS) {
        const { documents, embeddable } = TABLES[kind]
        yield* sql.unsafe(`UPDATE ${quoted(agent_id, documents)} AS d SET embed_after = NULL
          WHERE embed_after IS NOT NULL AND NOT (${embeddable})`)
        const rest = "d.embed_after <= now() ORDER BY d.embed_after, d.id LIMIT $1"
        found.push(...(yield* read(agent_id, kind, rest, [limit - found.length])))
      }
      return found
    })
  )
})

/** Documents after one that lack a vector of this model and do not wait for one: they had one of another model. */
export const lackingDocuments = (agent_id: AgentId, kind: DocumentKind, model: string, after: string, limit: number) =>
  asAgent(
    agent_id,
    read(
      agent_id,
      kind,
      `d.embed_after IS NULL AND d.id > $2::uuid AND ${lacks(agent_id, kind)} ORDER BY d.id LIMIT $3`,
      [model, after, limit]
    )
  )

/** `$1` is the model. */
const lacks = (agent_id: AgentId, kind: DocumentKind) =>
  `NOT EXISTS (SELECT FROM ${quoted(agent_id, TABLES[kind].embeddings)} AS e WHERE e.document_id = d.id AND e.model = $1)`

/** Whether every document has its vector of a model, but for texts that the model has refused again and again. */
export const isComplete = (agent_id: AgentId, model: string) =>
  asAgent(
    agent_id,
    Effect.gen(function* () {
      for (const kind of KINDS) {
        const rest = `d.embed_attempts < $2 AND ${lacks(agent_id, kind)} LIMIT 1`
        if ((yield* read(agent_id, kind, rest, [model, EMBEDDING_TRIES_MAX])).length > 0) return false
      }
      return true
    })
  )

/** A document with its vector. */
export interface EmbeddedDocument extends WaitingDocument {
  readonly vector: Float32Array
}

/** Stores the vectors of one kind and ends the wait of their documents. One that was changed or removed meanwhile gets none. */
export const storeVectors = (
  agent_id: AgentId,
  kind: DocumentKind,
  model: string,
  documents: ReadonlyArray<EmbeddedDocument>
) => {
  const { documents: table, embeddable, embeddings, repeated } = TABLES[kind]
  const columns = ["document_id", "model", ...repeated, "embedding"].join(", ")
  const values = ["done.id", "$1", ...repeated.map((name) => `done.${name}`), "given.vector::vector"].join(", ")
  const statement = `WITH given AS (SELECT * FROM unnest($2::uuid[], $3::text[], $4::text[]) AS given (id, text_hash, vector)),
    done AS (
      UPDATE ${quoted(agent_id, table)} AS d SET embed_after = NULL, embed_attempts = 0 FROM given
      WHERE d.id = given.id AND encode(d.text_hash, 'hex') = given.text_hash AND ${embeddable}
      RETURNING ${["d.id", ...repeated.map((name) => `d.${name}`)].join(", ")}
    )
    INSERT INTO ${quoted(agent_id, embeddings)} (${columns})
    SELECT ${values} FROM done JOIN given ON given.id = done.id
    ON CONFLICT (document_id, model) DO NOTHING`
  return asAgent(
    agent_id,
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      sql.unsafe(statement, [
        model,
        documents.map(({ id }) => id),
        documents.map(({ text_hash }) => text_hash),
        documents.map(({ vector }) => toSql(Array.from(vector)))
      ])
    )
  )
}

/** Lets documents wait that the model refused: a minute, an hour, then a day at a time, since the model may be another one some day. */
export const postpone = (agent_id: AgentId, kind: DocumentKind, ids: ReadonlyArray<string>) =>
  asAgent(
    agent_id,
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      sql.unsafe(
        `UPDATE ${quoted(agent_id, TABLES[kind].documents)} SET embed_attempts = least(embed_attempts + 1, 1000),
          embed_after = now() + CASE embed_attempts WHEN 0 THEN interval '1 minute' WHEN 1 THEN interval '1 hour'
            ELSE interval '1 day' END
          WHERE id = ANY($1::uuid[])`,
        [ids]
      )
    )
  )

/** Deletes some vectors of all models but these, and returns whether there may be more. */
export const deleteOthers = (agent_id: AgentId, models: ReadonlyArray<string>) =>
  asAgent(
    agent_id,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      for (const table of EMBEDDING_TABLES) {
        const name = sql(agentTable(agent_id, table))
        const gone = yield* sql`DELETE FROM ${name} WHERE ctid = ANY(ARRAY(
          SELECT ctid FROM ${name} WHERE model <> ALL(${models}::text[]) LIMIT ${DELETED_ROWS_MAX})) RETURNING 1`
        if (gone.length > 0) return true
      }
      return false
    })
  )

export interface EmbeddingProgress {
  /** Documents that are to have a vector, and those that have one of the model. */
  readonly total: number
  readonly done: number
}

/** How many documents wait for their first vector. */
export const countWaiting = (agent_id: AgentId) =>
  counted(
    agent_id,
    (kind) => `SELECT count(*)::int AS n FROM ${quoted(agent_id, TABLES[kind].documents)} AS d
    WHERE d.embed_after IS NOT NULL AND ${TABLES[kind].embeddable}`,
    []
  )

/** How far the vectors of a model are. */
export const countProgress = Effect.fnUntraced(function* (agent_id: AgentId, model: string) {
  const total = yield* counted(
    agent_id,
    (kind) =>
      `SELECT count(*)::int AS n FROM ${quoted(agent_id, TABLES[kind].documents)} AS d WHERE ${TABLES[kind].embeddable}`,
    []
  )
  const done = yield* counted(
    agent_id,
    (kind) => `SELECT count(*)::int AS n FROM ${quoted(agent_id, TABLES[kind].embeddings)} WHERE model = $1`,
    [model]
  )
  const progress: EmbeddingProgress = { total, done: Math.min(done, total) }
  return progress
})

const counted = (agent_id: AgentId, statement: (kind: DocumentKind) => string, params: ReadonlyArray<unknown>) =>
  asAgent(
    agent_id,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      let sum = 0
      for (const kind of KINDS) sum += (yield* sql.unsafe<{ readonly n: number }>(statement(kind), params))[0]?.n ?? 0
      return sum
    })
  )

/** Whether the tables of an agent's memory exist: those of an agent that was just configured may come in a moment. */
export const hasMemory = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    readonly there: boolean
  }>`SELECT to_regclass(${quoted(agent_id, "knowledge_embeddings")}) IS NOT NULL AS there`
  return row?.there === true
})
