/** The words of agents' documents as choird divides them, instead of the English ones that the database made by itself. choird fills them in. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const TABLES = ["memory_documents", "knowledge_documents"]

export const documentWords = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{
    readonly schema: string
    readonly table: string
  }>`SELECT nspname AS schema, relname AS table
    FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace
    WHERE starts_with(nspname, 'choir_') AND nspname <> 'choir_control' AND relname = ANY(${TABLES}::text[]) AND relkind = 'r'`
  for (const { schema, table } of tables) {
    const name = sql(`${schema}.${table}`)
    yield* sql`ALTER TABLE ${name} DROP COLUMN IF EXISTS tsv`
    yield* sql`ALTER TABLE ${name} ADD COLUMN tsv tsvector`
    yield* sql`CREATE INDEX ${sql(`${table}_words`)} ON ${name} USING gin (tsv)`
    yield* sql`CREATE INDEX IF NOT EXISTS ${sql(`${table}_wordless`)} ON ${name} (id) WHERE tsv IS NULL`
  }
})
