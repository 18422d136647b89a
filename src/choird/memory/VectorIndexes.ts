/**
 * The indexes of vectors: one for each model and table of an agent, made when the model's first vectors come, so that the index grows with
 * them. The embedded database has one backend, which an index build over many vectors would hold for a minute; there vectors without an
 * index are compared one by one, which takes some 60 ms for 20,000 of them.
 */
import { createHash } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { HALFVEC_DIMENSIONS_MAX, VECTOR_DIMENSIONS_MAX } from "#schema/Embedding.ts"
import type { AgentId } from "#schema/Ids.ts"
import { agentSchema } from "#src/choird/database/AgentSchemas.ts"
import { Database } from "#src/choird/database/Database.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"

export const EMBEDDING_TABLES = ["knowledge_embeddings", "memory_embeddings"] as const
export type EmbeddingTable = (typeof EMBEDDING_TABLES)[number]

/** Vectors over which an index is built on the embedded database at once: a second at most. */
export const EMBEDDED_BUILD_ROWS_MAX = 128

/** The type that a model's vectors are indexed and compared as. */
export const vectorType = (dimensions: number): string => {
  if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > HALFVEC_DIMENSIONS_MAX)
    throw new Error(`vectors of ${dimensions} dimensions`)
  return dimensions > VECTOR_DIMENSIONS_MAX ? `halfvec(${dimensions})` : `vector(${dimensions})`
}

const prefixOf = (table: EmbeddingTable) => `${table}_hnsw_`

/** Within the 63 bytes of a name of Postgres, whatever the model is called. */
export const indexName = (table: EmbeddingTable, model: string): string =>
  `${prefixOf(table)}${createHash("sha256").update(model).digest("hex").slice(0, 16)}`

/** A quarter of the work of pgvector's defaults for each vector that comes, since here it is done by the one backend. */
const EMBEDDED_OPTIONS = "WITH (m = 8, ef_construction = 32)"

export class VectorIndexes extends Context.Service<
  VectorIndexes,
  {
    /** Makes the index of a model's vectors, where that is a matter of moments or stops nobody. */
    ensure(
      agent_id: AgentId,
      model: { readonly model: string; readonly dimensions: number }
    ): Effect.Effect<void, DatabaseAway>
    /** Drops the indexes of all models but these. */
    dropOthers(agent_id: AgentId, models: ReadonlyArray<string>): Effect.Effect<void, DatabaseAway>
  }
>()("choir/choird/VectorIndexes") {
  static readonly layer = Layer.effect(
    VectorIndexes,
    Effect.gen(function* () {
      const onDatabase = yield* useDatabase
      const { kind } = yield* Database
      const made = new Set<string>()
      return VectorIndexes.of({
        ensure: Effect.fn("VectorIndexes.ensure")(function* (agent_id, model) {
          for (const table of EMBEDDING_TABLES) {
            const key = `${agentSchema(agent_id)}.${indexName(table, model.model)}`
            if (made.has(key)) continue
            yield* ensureIndex(kind, agent_id, table, model)
            made.add(key)
          }
        }, onDatabase),
        dropOthers: Effect.fn("VectorIndexes.dropOthers")(function* (agent_id, models) {
          for (const table of EMBEDDING_TABLES) {
            for (const name of yield* otherIndexes(agent_id, table, models)) {
              yield* dropIndex(kind, agent_id, name)
              made.delete(`${agentSchema(agent_id)}.${name}`)
            }
          }
        }, onDatabase)
      })
    })
  )
}

type Kind = Database["Service"]["kind"]

/** The statement that builds the index, quoted by the database. */
const buildStatement = Effect.fnUntraced(function* (
  kind: Kind,
  agent_id: AgentId,
  table: EmbeddingTable,
  { dimensions, model }: { readonly model: string; readonly dimensions: number }
) {
  const sql = yield* SqlClient.SqlClient
  const type = vectorType(dimensions)
  const operators = type.startsWith("halfvec") ? "halfvec_cosine_ops" : "vector_cosine_ops"
  const shape = `CREATE INDEX ${kind === "embedded" ? "" : "CONCURRENTLY "}IF NOT EXISTS %I ON %I.%I
    USING hnsw ((embedding::${type}) ${operators}) ${kind === "embedded" ? EMBEDDED_OPTIONS : ""} WHERE model = %L`
  const [row] = yield* sql<{ readonly statement: string }>`SELECT format(${shape}, ${indexName(table, model)}::text,
    ${agentSchema(agent_id)}::text, ${table}::text, ${model}::text) AS statement`
  return row?.statement ?? ""
})

const LIMITS = ["statement_timeout", "lock_timeout"]

/**
 * A statement that may take as long as it needs and stops nobody meanwhile, on a connection of its own: the limits are for statements that
 * somebody waits for, and it cannot be part of a transaction.
 */
const unlimited = (statement: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const connection = yield* sql.reserve
    const run = (text: string) => connection.executeUnprepared(text, [], undefined)
    yield* Effect.acquireUseRelease(
      Effect.forEach(LIMITS, (limit) => run(`SET ${limit} = 0`)),
      () => run(statement),
      () => Effect.ignore(Effect.forEach(LIMITS, (limit) => run(`RESET ${limit}`)))
    )
  }).pipe(Effect.scoped)

const dropIndex = Effect.fnUntraced(function* (kind: Kind, agent_id: AgentId, name: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly statement: string }>`SELECT format(
    ${`DROP INDEX ${kind === "embedded" ? "" : "CONCURRENTLY "}IF EXISTS %I.%I`}, ${agentSchema(agent_id)}::text, ${name}::text
  ) AS statement`
  yield* kind === "embedded" ? sql.unsafe(row?.statement ?? "") : unlimited(row?.statement ?? "")
})

const ensureIndex = Effect.fnUntraced(function* (
  kind: Kind,
  agent_id: AgentId,
  table: EmbeddingTable,
  model: { readonly model: string; readonly dimensions: number }
) {
  const sql = yield* SqlClient.SqlClient
  const schema = agentSchema(agent_id)
  const name = indexName(table, model.model)
  const [found] = yield* sql<{ readonly valid: boolean }>`SELECT indisvalid AS valid FROM pg_index
    JOIN pg_class AS c ON c.oid = indexrelid JOIN pg_namespace AS n ON n.oid = relnamespace
    WHERE relname = ${name} AND nspname = ${schema}`
  if (found?.valid === true) return
  // A build that was cut off leaves an index that is kept up to date and never read.
  if (found !== undefined) yield* dropIndex(kind, agent_id, name)
  const statement = yield* buildStatement(kind, agent_id, table, model)
  if (kind === "postgres") return yield* unlimited(statement)
  const rows = yield* sql`SELECT 1 FROM ${sql(`${schema}.${table}`)} WHERE model = ${model.model}
    LIMIT ${EMBEDDED_BUILD_ROWS_MAX + 1}`
  if (rows.length > EMBEDDED_BUILD_ROWS_MAX)
    return yield* Effect.logWarning(`${agent_id}: its vectors have no index here and are compared one by one`)
  yield* sql.unsafe(statement)
})

const otherIndexes = Effect.fnUntraced(function* (
  agent_id: AgentId,
  table: EmbeddingTable,
  models: ReadonlyArray<string>
) {
  const sql = yield* SqlClient.SqlClient
  const kept = models.map((model) => indexName(table, model))
  const rows = yield* sql<{ readonly name: string }>`SELECT indexname::text AS name FROM pg_indexes
    WHERE schemaname = ${agentSchema(agent_id)} AND tablename = ${table} AND starts_with(indexname, ${prefixOf(table)})
      AND indexname <> ALL(${kept}::text[])`
  return rows.map(({ name }) => name)
})
