import { spawn } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "#src/choird/database/Database.ts"
import { migrate, MIGRATION_MS_MAX, migrationsUntil, NEWEST } from "#src/choird/database/Migrations.ts"
import { describePostgres, embeddedTemplate, postgresDatabase, temporaryFolder } from "../../support/engines.ts"
import { isFull } from "../../support/size.ts"
import { fillEvents } from "../../support/manyEvents.ts"
import type { Where } from "../../support/migrator.ts"

const PROGRAM = join(import.meta.dirname, "../../support/migrator.ts")

/** Everything that the catalogue knows of Choir's schema, in one order. */
const schemaOf = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql`
    SELECT 'column' AS kind, attrelid::regclass::text AS place, attname AS name, format_type(atttypid, atttypmod) ||
        CASE WHEN attnotnull THEN ' not null' ELSE '' END || ' ' || attidentity::text || coalesce(pg_get_expr(adbin, adrelid), '')
        AS definition
      FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
      LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
      WHERE relnamespace = 'choir_control'::regnamespace AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
      FROM pg_constraint WHERE connamespace = 'choir_control'::regnamespace
    UNION ALL SELECT 'index', indrelid::regclass::text, indexrelid::regclass::text, pg_get_indexdef(indexrelid)
      FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'choir_control'::regnamespace
    UNION ALL SELECT 'migration', migration_id::text, name, '' FROM choir_control.schema_migrations
    ORDER BY 1, 2, 3`
})

/** How a process that migrates ended: its signal, or the number of statements that it printed. */
const migrator = (where: Where, dies?: number) =>
  Effect.callback<string>((resume) => {
    const child = spawn(
      process.execPath,
      [PROGRAM, JSON.stringify(where), ...(dies === undefined ? [] : [`${dies}`])],
      {
        stdio: ["ignore", "pipe", "inherit"]
      }
    )
    let out = ""
    child.stdout.on("data", (bytes: Buffer) => (out += bytes.toString()))
    child.once("close", (code, signal) => resume(Effect.succeed(signal ?? `${code} ${out.trim()}`)))
  })

const opened = (where: Where): Layer.Layer<Database | SqlClient.SqlClient> =>
  "folder" in where
    ? Layer.orDie(Database.layerEmbedded({ ...where, migrates: false }))
    : Layer.orDie(Database.layerPostgres({ ...where, migrates: false }))

/** Kills a migrator before each of these statements; nothing may be left, and the next one must make the same schema. */
const killedAt = Effect.fnUntraced(function* (
  where: Effect.Effect<Where, never, Scope.Scope>,
  choose: (total: number) => ReadonlyArray<number>
) {
  const whole = yield* where
  const total = Number((yield* migrator(whole)).split(" ")[1])
  assert.isAbove(total, 20)
  const expected = yield* schemaOf.pipe(Effect.provide(opened(whole)))
  const killed = yield* where
  const nothing = Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`SELECT 1 FROM pg_namespace WHERE nspname = 'choir_control'`
  )
  for (const dies of choose(total)) {
    assert.strictEqual(yield* migrator(killed, dies), "SIGKILL")
    if (!("folder" in killed))
      assert.deepStrictEqual(yield* nothing.pipe(Effect.provide(opened(killed))), [], `${dies}`)
  }
  yield* Effect.gen(function* () {
    assert.deepStrictEqual(yield* nothing, [])
    yield* migrate()
    assert.deepStrictEqual(yield* schemaOf, expected)
  }).pipe(Effect.provide(opened(killed)))
})

const every = (total: number) => Array.from({ length: total }, (_, index) => index + 1)
const some = (total: number) => [1, Math.ceil(total / 2), total]
/** A life on the embedded database takes ten times as long as one on a server. */
const one = (total: number) => [Math.ceil(total / 2)]

describePostgres("A migrator that is killed (postgres)", () => {
  it.live(
    "leaves nothing at any statement, and the next one makes the same schema (R67)",
    () => killedAt(postgresDatabase, process.env["CHOIR_KILLS"] === "all" ? every : some),
    600_000
  )
})

describe("A migrator that is killed (embedded)", () => {
  it.live(
    "leaves nothing at any statement, and the next one makes the same schema (R67)",
    () =>
      killedAt(
        Effect.map(temporaryFolder, (folder) => ({ folder: join(folder, "data"), template: embeddedTemplate() })),
        process.env["CHOIR_KILLS"] === "all" ? every : isFull ? some : one
      ),
    600_000
  )
})

const MIB = 1024 * 1024
/** The migration after which the database is filled. */
const BEFORE = 16

describePostgres("The migrations of a filled database", () => {
  it.live(
    "go through it within their limit (R67)",
    () =>
      Effect.gen(function* () {
        const bytes = Number(process.env["CHOIR_FILL_MIB"] ?? 8) * MIB
        const location = yield* postgresDatabase
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* migrate(migrationsUntil(BEFORE))
          // The store of today counts what it writes in a column that one of them adds.
          yield* sql`ALTER TABLE choir_control.sessions ADD COLUMN log_bytes bigint NOT NULL DEFAULT 0`
          const filled = yield* fillEvents(bytes)
          const last_session_id = filled.at(-1)?.session_id ?? ""
          const counted = sql<{ log_bytes: number }>`SELECT log_bytes::float8 AS log_bytes
            FROM choir_control.sessions WHERE session_id = ${last_session_id}`
          const before = yield* counted
          yield* sql`INSERT INTO choir_control.agents (agent_id, name, last_session_id)
            VALUES ('many', 'many', ${last_session_id})`
          yield* sql`ALTER TABLE choir_control.sessions DROP COLUMN log_bytes`
          const [size] = yield* sql<{ size: number }>`SELECT pg_database_size(current_database())::float8 AS size`
          const began_ms = yield* Clock.currentTimeMillis
          const done = yield* migrate()
          assert.strictEqual(done.at(-1), NEWEST)
          assert.isAbove(done[0] ?? 0, BEFORE)
          const took_ms = (yield* Clock.currentTimeMillis) - began_ms
          assert.isBelow(took_ms, MIGRATION_MS_MAX)
          assert.deepStrictEqual(yield* counted, before)
          assert.isAbove(size?.size ?? 0, bytes)
          // Sessions that have ended get their memory.
          assert.strictEqual(
            (yield* sql`SELECT 1 FROM choir_control.memory_jobs WHERE agent_id = 'many' AND kind = 'chunk'`).length,
            Math.min(30, filled.length)
          )
          yield* Effect.logDebug(`${Math.round((size?.size ?? 0) / MIB)} MiB migrated in ${took_ms} ms`)
        }).pipe(Effect.provide(opened(location)))
      }),
    600_000
  )
})
