/** The tables to back up, as the catalogue has them: every table of Choir's schemas, and how its rows are paged. */
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId } from "#schema/Ids.ts"

/** Bytes and rows of one page that a backup reads and a restore writes; a single row may be larger. */
export const BACKUP_PAGE_BYTES = 4 * 1024 * 1024
export const BACKUP_PAGE_ROWS_MAX = 2000

/** A table with the columns that are stored, all but those that follow from others, such as the words of a document, and its primary key, or the index that identifies its rows instead. */
export interface StoredTable {
  readonly schema: string
  readonly table: string
  /** Both names, quoted. */
  readonly name: string
  readonly columns: ReadonlyArray<string>
  readonly keys: ReadonlyArray<{ readonly name: string; readonly type: string }>
  /** The columns that count up by themselves, with their sequences. */
  readonly counters: ReadonlyArray<{ readonly column: string; readonly sequence: string }>
}

/** The migrator's own table is made by migrating, not by copying. */
const MIGRATIONS_TABLE = "schema_migrations"
const CONTROL = "choir_control"
const PREFIX = "choir_"

/** The schemas of agents, by the agents' ids. */
export const agentSchemas = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ nspname: string }>`SELECT nspname FROM pg_namespace
    WHERE starts_with(nspname, ${PREFIX}) AND nspname <> ${CONTROL} ORDER BY nspname`
  return rows.map(({ nspname }) => nspname.slice(PREFIX.length)).filter(Schema.is(AgentId))
})

/** Every table of the control plane and of these agents, in the order of their names; one whose rows need those of another comes after it. */
export const storedTables = Effect.fnUntraced(function* (agents: ReadonlyArray<AgentId>) {
  const sql = yield* SqlClient.SqlClient
  const schemas = [CONTROL, ...agents.map((agent) => `${PREFIX}${agent}`)]
  return yield* sql<StoredTable>`
    SELECT nspname AS schema, relname AS table, quote_ident(nspname) || '.' || quote_ident(relname) AS name,
      array(SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
        AND attgenerated = '' AND atttypid <> 'tsvector'::regtype ORDER BY attnum) AS columns,
      coalesce((SELECT json_agg(json_build_object('name', attname, 'type', format_type(atttypid, atttypmod)) ORDER BY place)
        FROM pg_index, unnest(indkey) WITH ORDINALITY AS key (number, place)
        JOIN pg_attribute ON attrelid = c.oid AND attnum = key.number
        WHERE indrelid = c.oid AND (indisprimary OR indisreplident)), '[]') AS keys,
      coalesce((SELECT json_agg(json_build_object('column', attname, 'sequence',
          pg_get_serial_sequence(quote_ident(nspname) || '.' || quote_ident(relname), attname)))
        FROM pg_attribute WHERE attrelid = c.oid AND attidentity <> '' AND NOT attisdropped), '[]') AS counters
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
    WHERE relkind = 'r' AND nspname = ANY(${schemas}::text[]) AND relname <> ${MIGRATIONS_TABLE}
    ORDER BY nspname, EXISTS (SELECT 1 FROM pg_constraint WHERE contype = 'f' AND conrelid = c.oid), relname`
})

/** Rows as lines in the order of some columns. */
export interface Reading {
  readonly table: StoredTable
  /** The columns that page it; within `where` they name each row once. */
  readonly keys: StoredTable["keys"]
  /** A condition with `$1`… for its values. */
  readonly where?: { readonly text: string; readonly values: ReadonlyArray<unknown> }
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`

interface Row extends Readonly<Record<string, string | null>> {
  readonly line: string | null
}

/**
 * The statement of one page: rows after `after`, at most `rows`, the first one whatever its size, the others as long as they fit
 * into BACKUP_PAGE_BYTES. Lines that do not fit are null.
 */
const pageStatement = ({ keys, table, where }: Reading, after: ReadonlyArray<string> | undefined, rows: number) => {
  const columns = table.columns.map(quoted).join(", ")
  const order = keys.map(({ name }) => quoted(name)).join(", ")
  const values = [...(where?.values ?? []), ...(after ?? [])]
  const first = where?.values.length ?? 0
  const places = keys.map(({ type }, index) => `$${first + index + 1}::text::${type}`).join(", ")
  const conditions = [where?.text, after === undefined ? undefined : `(${order}) > (${places})`].filter(
    (text) => text !== undefined
  )
  const after_columns = keys.map((_, index) => `key_${index}`).join(", ")
  const texts = keys.map(({ name }, index) => `t.${quoted(name)}::text AS key_${index}`).join(", ")
  const text = `WITH page AS MATERIALIZED (
      SELECT row_number() OVER (ORDER BY ${order}) AS n, ${texts}, row_to_json(t)::text AS line FROM (
        SELECT ${columns} FROM ${table.name} ${conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`}
        ORDER BY ${order} LIMIT ${rows}
      ) AS t
    )
    SELECT ${after_columns}, CASE WHEN n = 1 OR sum(octet_length(line)) OVER (ORDER BY n) <= ${BACKUP_PAGE_BYTES}
      THEN line END AS line FROM page ORDER BY n`
  return { text, values }
}

/** Reads all rows page by page. The number of rows of a page follows from the size of those before. */
export const readRows = Effect.fnUntraced(function* <E, R>(
  reading: Reading,
  take: (lines: ReadonlyArray<string>) => Effect.Effect<void, E, R>
) {
  const sql = yield* SqlClient.SqlClient
  let after: ReadonlyArray<string> | undefined
  let wanted = 100
  while (true) {
    const { text, values } = pageStatement(reading, after, wanted)
    const rows = yield* sql.unsafe<Row>(text, values)
    const lines = rows.flatMap(({ line }) => (line === null ? [] : [line]))
    if (lines.length === 0) return
    yield* take(lines)
    if (lines.length === rows.length && rows.length < wanted) return
    const last = rows[lines.length - 1]
    after = reading.keys.map((_, index) => last?.[`key_${index}`] ?? "")
    const bytes = lines.reduce((sum, line) => sum + line.length, 0)
    wanted = Math.min(BACKUP_PAGE_ROWS_MAX, Math.max(1, Math.floor((BACKUP_PAGE_BYTES / bytes) * lines.length)))
  }
})
