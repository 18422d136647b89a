import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { type Migrations, migrate, MIGRATIONS, NEWEST } from "#src/choird/database/Migrations.ts"
import { describeEngines, describePostgres, postgresEngine } from "../../support/engines.ts"

const latest = NEWEST
const later = (name: string, ...statements: ReadonlyArray<string>): Migrations => ({
  ...MIGRATIONS,
  [`${String(latest + 1).padStart(4, "0")}_${name}`]: Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
  )
})
const tables = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(
    sql<{ name: string }>`SELECT table_name AS name FROM information_schema.tables
      WHERE table_schema = 'choir_control' ORDER BY table_name`,
    (rows) => rows.map(({ name }) => name)
  )
)

describeEngines("Migrations", (it) => {
  it.effect("create the control plane's tables", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* tables, [
        "agent_numbers",
        "agents",
        "audit",
        "call_results",
        "chat_settings",
        "config_versions",
        "deleted_sessions",
        "embedding_costs",
        "embedding_serving",
        "forgets",
        "grants",
        "inbox",
        "job_runs",
        "leases",
        "memory_jobs",
        "outbox",
        "pending_approvals",
        "plan_slots",
        "plans",
        "schedule_slots",
        "schema_migrations",
        "session_events",
        "session_snapshots",
        "sessions",
        "signals",
        "skill_runs",
        "workspace_labels"
      ])
      const sql = yield* SqlClient.SqlClient
      const unused = yield* sql`SELECT 1 FROM information_schema.columns WHERE table_schema = 'choir_control'
        AND (table_name, column_name) IN (('agents', 'config'), ('sessions', 'lease_id'))`
      assert.deepStrictEqual(unused, [])
    })
  )

  it.effect("run once, also when several migrate at the same time (R67)", () =>
    Effect.gen(function* () {
      const once = later("once", "CREATE TABLE choir_control.once (id int)")
      const runs = yield* Effect.forEach([1, 2, 3, 4], () => migrate(once), { concurrency: 4 })
      assert.deepStrictEqual(runs.flat(), [latest + 1])
      const sql = yield* SqlClient.SqlClient
      yield* sql`DROP TABLE choir_control.once`
      yield* sql`DELETE FROM choir_control.schema_migrations WHERE migration_id > ${latest}`
    })
  )

  it.effect("leave nothing behind when a later statement fails (R67)", () =>
    Effect.gen(function* () {
      const before = yield* tables
      const broken = later("broken", "CREATE TABLE choir_control.half (id int)", "SELECT * FROM choir_control.nothing")
      const error = yield* Effect.flip(migrate(broken))
      assert.strictEqual(error._tag, "MigrationFailed")
      assert.include(error.message, 'relation "choir_control.nothing" does not exist')
      assert.deepStrictEqual(yield* tables, before)
    })
  )

  it.effect("refuse a schema that is newer than the program (R68)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`INSERT INTO choir_control.schema_migrations (migration_id, name) VALUES (${latest + 7}, 'later')`
      const error = yield* Effect.flip(migrate())
      yield* sql`DELETE FROM choir_control.schema_migrations WHERE migration_id > ${latest}`
      assert.strictEqual(error._tag, "SchemaTooNew")
      assert.include(error.message, `has migration ${latest + 7}, and this choird knows only ${latest}`)
    })
  )

  it.effect("let a status, a source and a second row of the same key pass only where they may", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const inbox = sql`INSERT INTO choir_control.inbox (gateway, client_id, agent_id, dm, text)
          VALUES ('g', '1', 'a', 'd', 'hello')`
      yield* inbox
      const reasons = yield* Effect.forEach(
        [
          inbox,
          sql`INSERT INTO choir_control.sessions (session_id, agent_id, status, resource_bindings)
              VALUES ('s', 'a', 'sleeping', '{}')`,
          sql`INSERT INTO choir_control.outbox (source, source_id, part, gateway, dm, agent_id, kind, text)
              VALUES ('agent', '1', 0, 'g', 'd', 'a', 'reply', 'x')`
        ],
        (statement) => Effect.map(Effect.flip(statement), ({ reason }) => reason._tag)
      )
      assert.deepStrictEqual(reasons, ["UniqueViolation", "ConstraintError", "ConstraintError"])
    })
  )
})

describePostgres("Migrations whose connection dies", () => {
  const STATEMENTS = 6
  const statements = Array.from({ length: STATEMENTS }, (_, index) => `CREATE TABLE choir_control.t${index} (id int)`)
  // A killed backend is what a killed choird looks like to the server.
  const dyingAt = (index: number) => statements.toSpliced(index, 0, "SELECT pg_terminate_backend(pg_backend_pid())")

  it.effect("start clean again, whichever statement was the last (R67)", () =>
    Effect.gen(function* () {
      const before = yield* tables
      for (let index = 0; index <= STATEMENTS; index++) {
        const error = yield* Effect.flip(migrate(later("dies", ...dyingAt(index))))
        assert.strictEqual(error._tag, "MigrationFailed")
        assert.deepStrictEqual(yield* tables, before)
      }
      assert.deepStrictEqual(yield* migrate(later("dies", ...statements)), [latest + 1])
    }).pipe(Effect.provide(postgresEngine.layer))
  )
})
