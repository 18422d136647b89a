/** The restore of a database from a backup: all of it, or nothing (R70). */
import { Effect, Runtime, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { BackupHeader, BackupTable } from "#src/shared/events/backupFormat.ts"
import { type BackupItem, readBackup } from "#src/shared/events/BackupReader.ts"
import { type Move, withMovedPaths } from "#src/shared/files/movedPaths.ts"
import { createAgentSchema } from "./AgentSchemas.ts"
import {
  agentSchemas,
  BACKUP_PAGE_BYTES,
  BACKUP_PAGE_ROWS_MAX,
  type StoredTable,
  storedTables
} from "./backupTables.ts"
import { migrate, migrationsUntil, NEWEST } from "./Migrations.ts"
import { sqlProblem } from "./sqlState.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"

/**
 * Each version keeps its number, so that the configuration that ran last is recognised when choird starts. Events stay as they are, since
 * their chain covers them, and so do approvals, since a person decided about the paths that they show.
 */
const moveConfigVersions = Effect.fn("moveConfigVersions")(function* (move: Move) {
  const sql = yield* SqlClient.SqlClient
  const versions = sql<{ readonly version: number }>`SELECT version FROM choir_control.config_versions`
  for (const { version } of yield* versions) {
    const [row] = yield* sql<{
      readonly config: Schema.Json
    }>`SELECT config FROM choir_control.config_versions WHERE version = ${version}`
    if (row === undefined) continue
    const before = canonicalJson(row.config)
    const after = canonicalJson(withMovedPaths(row.config, move))
    if (after === before) continue
    yield* sql`UPDATE choir_control.config_versions
      SET config = ${after}::text::jsonb, hash = ${Buffer.from(sha256(after), "hex")} WHERE version = ${version}`
  }
})

/** Containers of the home that the backup is of: that home may run, and its agents are not those of the new one to end. */
const forgetContainers = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`UPDATE choir_control.sessions SET container = NULL WHERE container IS NOT NULL`
)

/** One statement of a restore: the largest is the look at all tables at its end. */
const RESTORE_STATEMENT_MS_MAX = 600_000

/** A complete backup that was not restored. The database is as it was. */
export class RestoreRefused extends Schema.TaggedError<RestoreRefused>()("RestoreRefused", { problem: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 1
  override get message() {
    return `nothing was restored: ${this.problem}`
  }
}

/** The backup to restore, and how. */
export interface Restoration {
  readonly file: string
  /** Replaces a database that has sessions or messages, and takes sessions whose chains do not verify. */
  readonly force: boolean
  /** Where the home has moved since the backup. */
  readonly move?: Move | undefined
}

const refuse = (problem: string) => Effect.fail(new RestoreRefused({ problem }))

/** Whether anybody has talked with an agent in this database; it may be migrated or not, and by a later Choir too. */
const isUsed = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const table of ["choir_control.sessions", "choir_control.inbox"]) {
    const exists = yield* sql`SELECT 1 WHERE to_regclass(${table}) IS NOT NULL`
    if (exists.length > 0 && (yield* sql`SELECT 1 FROM ${sql(table)} LIMIT 1`).length > 0) return true
  }
  return false
})

const dropAll = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const agent of yield* agentSchemas) yield* sql`DROP SCHEMA ${sql(`choir_${agent}`)} CASCADE`
  yield* sql`DROP SCHEMA IF EXISTS choir_control CASCADE`
})

const key = ({ schema, table }: { readonly schema: string; readonly table: string }) => `${schema}.${table}`

/** Writes rows in statements of a bounded size, into tables whose columns are those of the backup. */
const makeLoader = Effect.fnUntraced(function* (
  tables: ReadonlyMap<string, StoredTable>,
  progress: (text: string) => Effect.Effect<void>
) {
  const sql = yield* SqlClient.SqlClient
  let open: { readonly stored: StoredTable; readonly table: BackupTable } | undefined
  let rows: Array<string> = []
  let bytes = 0
  const flush = Effect.suspend(() => {
    if (open === undefined || rows.length === 0) return Effect.void
    const columns = open.table.columns.map((name) => `"${name}"`).join(", ")
    const text = `INSERT INTO ${open.stored.name} (${columns}) OVERRIDING SYSTEM VALUE
      SELECT ${columns} FROM json_populate_recordset(NULL::${open.stored.name}, $1::text::json)`
    const values = [`[${rows.join(",")}]`]
    rows = []
    bytes = 0
    return Effect.asVoid(sql.unsafe(text, values))
  })
  const begin = Effect.fnUntraced(function* (table: BackupTable) {
    yield* flush
    const stored = tables.get(key(table))
    if (stored === undefined || [...stored.columns].sort().join() !== [...table.columns].sort().join())
      return yield* refuse(`this Choir has no table ${key(table)} with the columns of the backup`)
    open = { stored, table }
    yield* progress(`restoring ${table.table}`)
    for (const { column, sequence } of stored.counters) {
      const value = table.counters[column] ?? "0"
      if (value !== "0") yield* sql`SELECT setval(${sequence}::regclass, ${value}::text::bigint)`
    }
  })
  const take = Effect.fnUntraced(function* (items: ReadonlyArray<BackupItem>) {
    for (const item of items) {
      if (item.type === "table") yield* begin(item.table)
      if (item.type !== "row") continue
      rows.push(item.text)
      bytes += item.text.length
      if (bytes >= BACKUP_PAGE_BYTES || rows.length >= BACKUP_PAGE_ROWS_MAX) yield* flush
    }
  })
  return { take, flush }
})

/** The tables as they were when the backup was made. */
const makeTables = Effect.fnUntraced(function* ({ agents, migration }: BackupHeader) {
  yield* migrate(migrationsUntil(migration))
  yield* Effect.forEach(agents, createAgentSchema, { discard: true })
  return new Map((yield* storedTables(agents)).map((stored) => [key(stored), stored]))
})

const replaceAll = Effect.fnUntraced(function* (
  { file, force, move }: Restoration,
  progress: (text: string) => Effect.Effect<void>
) {
  const sql = yield* SqlClient.SqlClient
  yield* progress("checking the backup")
  const summary = yield* readBackup(file, () => Effect.void)
  const { broken, header } = summary
  if (header.migration > NEWEST)
    return yield* refuse(
      `the backup has migration ${header.migration}, and this choird knows only ${NEWEST}: use the newer Choir`
    )
  const [first] = broken
  if (first !== undefined && !force)
    return yield* refuse(
      `the session ${first.session_id} of the backup does not verify (${first.reason}): add --force to take it as it is`
    )
  yield* sql.withTransaction(
    Effect.gen(function* () {
      const limit = String(RESTORE_STATEMENT_MS_MAX)
      yield* sql`SELECT set_config('statement_timeout', ${limit}, true)`
      if (!force && (yield* isUsed))
        return yield* refuse("the database has sessions or messages: add --force to replace it")
      yield* dropAll
      const loader = yield* makeLoader(yield* makeTables(header), progress)
      const loaded = yield* readBackup(file, loader.take)
      yield* loader.flush
      if (loaded.sha256 !== summary.sha256) return yield* refuse(`${file} was changed while it was read`)
      yield* progress("bringing it up to date")
      yield* migrate()
      if (move !== undefined) {
        yield* moveConfigVersions(move)
        if (!move.from.includes(move.to)) yield* forgetContainers
      }
      yield* sql`SELECT set_config('statement_timeout', ${limit}, true)`
      yield* sql`ANALYZE`
    })
  )
  return summary
})

/** Replaces the database with a backup and brings it up to date. The file is checked whole before anything changes, and all changes are one transaction. */
export const restore = Effect.fn("restore.run")(function* (
  restoration: Restoration,
  /** Called with each step as it begins. */
  progress: (text: string) => Effect.Effect<void>
) {
  return yield* replaceAll(restoration, progress).pipe(
    Effect.catchTag("SqlError", (error) => refuse(sqlProblem(error)))
  )
})
