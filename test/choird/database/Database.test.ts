import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Redacted, Runtime, Schedule, Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlError } from "effect/sql"
import { once } from "node:events"
import { createServer } from "node:net"
import { CallId, SessionId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Database } from "#src/choird/database/Database.ts"
import type { PostgresOptions } from "#src/choird/database/PostgresServer.ts"
import { CallResults } from "#src/choird/hosttools/CallResults.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { sqlProblem } from "#src/choird/database/sqlState.ts"
import { describeEngines, describePostgres, postgresDatabase } from "../../support/engines.ts"
import { startPostgres } from "../../support/postgres.ts"
import { makeHome } from "../../support/stores.ts"

/** "choird" in ASCII, the advisory lock of the choird that has a database. */
const CHOIRD_LOCK = 0x63686f697264

const configured = Layer.unwrap(Effect.map(makeHome(), (home) => ConfigStore.layer({ home })))

const refusal = (options: PostgresOptions) => Effect.flip(Effect.provide(Database, Database.layerPostgres(options)))

/** A user that only may log in, with the password `right`. */
const plainUser = Effect.gen(function* () {
  const location = yield* postgresDatabase
  const user = `${location.database}_user`
  const admin = yield* PgClient.makeClient({ ...location, username: location.user })
  yield* Effect.acquireRelease(admin.unsafe(`CREATE ROLE ${user} LOGIN PASSWORD 'right'`), () =>
    Effect.orDie(Effect.andThen(admin.unsafe(`DROP OWNED BY ${user}`), admin.unsafe(`DROP ROLE ${user}`)))
  )
  return { admin, location: { ...location, user } }
})

describeEngines("Database", (it, engine) => {
  it.effect("says what it is", () =>
    Effect.gen(function* () {
      const { kind, pgvector, version } = yield* Database
      assert.strictEqual(kind, engine.kind)
      assert.match(version, /^1[5-9]\.\d+$/u)
      assert.match(pgvector, /^0\.[78]\.\d+$/u)
    })
  )

  it.effect("searches vectors", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql`SELECT '[1,0]'::vector(2) <=> '[0,1]'::vector(2) AS distance`
      assert.deepStrictEqual(rows, [{ distance: 1 }])
    })
  )
})

describePostgres("Database on a server", () => {
  it.live("is one choird's at a time, and says how to free it from one that is gone", () =>
    Effect.gen(function* () {
      const location = yield* postgresDatabase
      const alone = Layer.fresh(Database.layerPostgres({ ...location, alone: true }))
      const scope = yield* Scope.make()
      yield* Scope.provide(Layer.build(alone), scope)
      const { message } = yield* Effect.flip(Effect.provide(Database, alone))
      assert.match(message, /another choird works on Postgres at .*: stop it, or give this home a database of its own/u)
      assert.match(message, /pg_terminate_backend\(\d+\)/u)
      yield* Scope.close(scope, Exit.void)
      yield* Effect.provide(Database, alone)
    }).pipe(Effect.scoped)
  )

  const lockHolder = (message: string) => /pg_terminate_backend\((\d+)\)/u.exec(message)?.[1] ?? ""

  it.live(
    "ends the choird that lost the lock to another one, and refuses every transaction of it before it notices",
    () =>
      Effect.gen(function* () {
        const location = yield* postgresDatabase
        const alone = Layer.fresh(Database.layerPostgres({ ...location, alone: true }))
        const first = yield* Layer.build(alone)
        const sql = Context.get(first, SqlClient.SqlClient)
        const { message } = yield* Effect.flip(Effect.provide(Database, alone))
        // Another home's choird, which its supervisor starts again and again.
        const second = yield* Effect.forkScoped(Effect.eventually(Layer.build(alone)))
        const admin = yield* PgClient.makeClient({ ...location, username: location.user })
        yield* admin`SELECT pg_terminate_backend(${lockHolder(message)}::int)`
        yield* Fiber.join(second)
        const refused = yield* Effect.flip(sql.withTransaction(sql`CREATE TABLE written_late (id int)`))
        assert.include(sqlProblem(refused), "another choird has taken this database")
        assert.deepStrictEqual(yield* admin`SELECT to_regclass('written_late') IS NULL AS missing`, [{ missing: true }])
        const lost = yield* Effect.flip(Context.get(first, Database).lost)
        assert.include(["DatabaseTaken", "DatabaseDisplaced"], lost._tag)
        assert.strictEqual(lost[Runtime.errorExitCode], 75)
      }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
  )

  it.live("takes no claim of a call and no mark of a delivery from a choird that lost the lock to another one", () =>
    Effect.gen(function* () {
      const location = yield* postgresDatabase
      const alone = Layer.fresh(Database.layerPostgres({ ...location, alone: true }))
      const first = yield* Layer.build(alone)
      const [outbox, results] = yield* Effect.all([Outbox, CallResults]).pipe(
        Effect.provide(Layer.mergeAll(Outbox.layer, CallResults.layer).pipe(Layer.provide(configured))),
        Effect.provideContext(first)
      )
      const key = (call_id: string) => ({
        session_id: SessionId.make("0123456789abcdef"),
        call_id: CallId.make(call_id),
        digest: "00".repeat(32)
      })
      assert.deepStrictEqual(yield* results.claim(key("c-1")), { type: "mine" })
      const admin = yield* PgClient.makeClient({ ...location, username: location.user })
      yield* admin`INSERT INTO choir_control.outbox (source, source_id, part, gateway, dm, agent_id, kind, text)
        VALUES ('choird', 'x', 0, 'terminal', 'desk', 'helper', 'notice', 'hello')`
      const [row] = yield* admin<{ readonly id: string }>`SELECT outbox_id::text AS id FROM choir_control.outbox`
      const id = row?.id ?? ""
      // What another choird writes when it takes the database.
      yield* admin`UPDATE choird.holder SET token = gen_random_uuid()`
      const writes: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        results.claim(key("c-2")),
        results.keep(key("c-1"), { status: "success", output: "done" }),
        outbox.delivered([id]),
        outbox.sentParts(id, 1, undefined),
        outbox.giveUp(id, "no"),
        outbox.abandon([])
      ]
      for (const write of writes) assert.isTrue(Exit.isFailure(yield* Effect.exit(write)))
      assert.deepStrictEqual(yield* admin`SELECT call_id, response FROM choir_control.call_results`, [
        { call_id: "c-1", response: null }
      ])
      assert.deepStrictEqual(yield* admin`SELECT delivered_at, failed_at, sent_parts FROM choir_control.outbox`, [
        { delivered_at: null, failed_at: null, sent_parts: 0 }
      ])
    }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
  )

  it.live(
    "stays with a choird that takes the lock again after its connection ended, unless another one had it meanwhile",
    () =>
      Effect.gen(function* () {
        const location = yield* postgresDatabase
        const alone = Layer.fresh(Database.layerPostgres({ ...location, alone: true }))
        const first = yield* Layer.build(alone)
        const sql = Context.get(first, SqlClient.SqlClient)
        const admin = yield* PgClient.makeClient({ ...location, username: location.user })
        const taken = Effect.flip(Effect.provide(Database, alone))
        const { message } = yield* taken
        yield* admin`SELECT pg_terminate_backend(${lockHolder(message)}::int)`
        const heldAgain = admin`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
        AND pid <> ${lockHolder(message)}::int AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
        yield* Effect.repeat(heldAgain, { until: (rows) => rows.length > 0, schedule: Schedule.spaced("20 millis") })
        yield* sql.withTransaction(sql`SELECT 1`)
        // What another choird writes when it takes the database, which has ended since.
        yield* admin`UPDATE choird.holder SET token = gen_random_uuid()`
        yield* Effect.flip(sql.withTransaction(sql`SELECT 1`))
        assert.strictEqual((yield* Effect.flip(Context.get(first, Database).lost))._tag, "DatabaseDisplaced")
      }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
  )

  it.live("is taken only after the transactions of its last holder", () =>
    Effect.gen(function* () {
      const location = yield* postgresDatabase
      const alone = Layer.fresh(Database.layerPostgres({ ...location, alone: true }))
      const first = yield* Layer.build(alone)
      const sql = Context.get(first, SqlClient.SqlClient)
      const admin = yield* PgClient.makeClient({ ...location, username: location.user })
      const open = yield* Deferred.make<void>()
      const written = yield* Deferred.make<void>()
      const transaction = sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`CREATE TABLE written_before (id int)`
          yield* Deferred.succeed(open, undefined)
          yield* Deferred.await(written)
        })
      )
      const writing = yield* Effect.forkScoped(transaction)
      yield* Deferred.await(open)
      const seen = Effect.flatMap(
        SqlClient.SqlClient,
        (other) => other`SELECT to_regclass('written_before')::text AS found`
      )
      const second = yield* Effect.forkScoped(Effect.eventually(Effect.provide(seen, alone)))
      const waits = admin`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
      const looked = Effect.repeat(waits, {
        until: (rows) => rows.length > 0,
        schedule: Schedule.spaced("20 millis"),
        times: 50
      })
      // Its last holder takes the lock again where it is quicker than the next one, and loses it again.
      const ended = admin`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
        AND ((classid::bigint << 32) | objid::bigint) = ${CHOIRD_LOCK}
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
      yield* Effect.repeat(Effect.andThen(ended, looked), { until: (rows) => rows.length > 0 })
      yield* Deferred.succeed(written, undefined)
      yield* Fiber.join(writing)
      assert.deepStrictEqual(yield* Fiber.join(second), [{ found: "written_before" }])
    }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
  )

  it.live("limits statements, lock waits and idle transactions (R51)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql<{ setting: string }>`SELECT current_setting(name) AS setting
        FROM unnest(ARRAY['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']) AS name`
      assert.deepStrictEqual(
        rows.map(({ setting }) => setting),
        ["10s", "2s", "15s"]
      )
    }).pipe(Effect.provide(Effect.map(postgresDatabase, Database.layerPostgres).pipe(Layer.unwrap)))
  )

  it.live("ends a slow statement and a wait for a lock, and goes on (R51)", () =>
    Effect.gen(function* () {
      const layer = Database.layerPostgres({ ...(yield* postgresDatabase), statementMs: 1000, lockMs: 200 })
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const problem = (work: Effect.Effect<unknown, SqlError.SqlError>) => Effect.map(Effect.flip(work), sqlProblem)
        assert.match(yield* problem(sql`SELECT pg_sleep(20)`), /canceling statement due to statement timeout/u)
        const held = yield* Deferred.make<void>()
        const waits = Effect.andThen(Deferred.await(held), problem(sql`SELECT * FROM choir_control.leases`))
        const waiting = yield* Effect.forkChild(waits, { startImmediately: true })
        const holds = [sql`LOCK TABLE choir_control.leases`, Deferred.succeed(held, undefined), Fiber.await(waiting)]
        yield* sql.withTransaction(Effect.all(holds, { discard: true }))
        assert.match(yield* Fiber.join(waiting), /canceling statement due to lock timeout/u)
        assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
      }).pipe(Effect.provide(layer))
    })
  )

  it.live("ends a transaction that waits for its own program, and goes on (R51)", () =>
    Effect.gen(function* () {
      const location = yield* postgresDatabase
      const work = Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const begun = yield* Deferred.make<void>()
        const gone = Effect.repeat(
          sql<{ count: number }>`SELECT count(*)::int AS count FROM pg_stat_activity
            WHERE datname = current_database() AND state LIKE 'idle in transaction%'`,
          { until: ([row]) => row?.count === 0, schedule: Schedule.spaced("20 millis") }
        )
        const watching = yield* Effect.forkChild(Effect.andThen(Deferred.await(begun), gone), {
          startImmediately: true
        })
        const idles = [sql`SELECT 1`, Deferred.succeed(begun, undefined), Fiber.join(watching), sql`SELECT 2`]
        const error = yield* Effect.flip(sql.withTransaction(Effect.all(idles, { discard: true })))
        assert.strictEqual(error._tag, "SqlError")
        assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
      })
      yield* work.pipe(
        Effect.provide(Database.layerPostgres({ ...location, migrates: false, idleInTransactionMs: 300 }))
      )
    })
  )

  it.live("goes on after the server has ended its connections, inside a transaction too", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const dies = sql`SELECT pg_terminate_backend(pg_backend_pid())`
      assert.strictEqual((yield* Effect.flip(sql.withTransaction(sql.withTransaction(dies))))._tag, "SqlError")
      const others = sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`
      const work = Effect.andThen(sql`SELECT 1`, Effect.andThen(others, Effect.fail("changed its mind")))
      assert.strictEqual(yield* Effect.flip(sql.withTransaction(work)), "changed its mind")
      assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
    }).pipe(Effect.provide(Effect.map(postgresDatabase, Database.layerPostgres).pipe(Layer.unwrap)))
  )
})

describePostgres("Database refuses at once, with the command that fixes it,", () => {
  it.live("a database that does not exist", () =>
    Effect.gen(function* () {
      const location = yield* postgresDatabase
      const error = yield* refusal({ ...location, database: "nowhere" })
      assert.strictEqual(error._tag, "DatabaseRefused")
      assert.include(
        error.message,
        `it has no database nowhere: createdb -h ${location.host} -p 5432 -O choir -E UTF8 -T template0 nowhere`
      )
    })
  )

  it.live("a user that does not exist, and never shows the password", () =>
    Effect.gen(function* () {
      const location = yield* postgresDatabase
      const url = `postgres://stranger:hunter2@localhost/${location.database}?host=${location.host}`
      const error = yield* refusal({ url: Redacted.make(url) })
      assert.strictEqual(error._tag, "DatabaseRefused")
      assert.include(error.message, "it refuses the user stranger")
      assert.notInclude(JSON.stringify(error), "hunter2")
    })
  )

  it.live("a wrong password", () =>
    Effect.gen(function* () {
      const { location } = yield* plainUser
      const error = yield* refusal({ ...location, password: Redacted.make("wrong") })
      assert.strictEqual(error._tag, "DatabaseRefused")
      assert.include(error.message, "password authentication failed")
      assert.include(error.message, "choirctl secret set")
    }).pipe(Effect.provide(Reactivity.layer))
  )

  it.live("a user without the rights that it needs, one after the other, and takes it once it has them", () =>
    Effect.gen(function* () {
      const { admin, location } = yield* plainUser
      const options = { ...location, password: Redacted.make("right") }
      const first = yield* refusal(options)
      assert.include(first.message, `-c 'ALTER ROLE "${location.user}" CREATEROLE'`)
      yield* admin.unsafe(`ALTER ROLE "${location.user}" CREATEROLE`)
      const second = yield* refusal(options)
      assert.include(second.message, `GRANT CREATE ON DATABASE "${location.database}" TO "${location.user}"`)
      yield* admin.unsafe(`GRANT CREATE ON DATABASE "${location.database}" TO "${location.user}"`)
      const third = yield* refusal(options)
      assert.include(third.message, `-d ${location.database} -c 'CREATE EXTENSION vector'`)
      yield* admin.unsafe("CREATE EXTENSION vector")
      assert.strictEqual((yield* Effect.provide(Database, Database.layerPostgres(options))).pgvector, "0.8.0")
    }).pipe(Effect.provide(Reactivity.layer))
  )

  it.live("a database in another encoding, a user that may only read, and one who may not log in", () =>
    Effect.gen(function* () {
      const { admin, location } = yield* plainUser
      const options = { ...location, password: Redacted.make("right") }
      yield* admin.unsafe(`ALTER ROLE "${location.user}" SET default_transaction_read_only = on`)
      const reader = yield* refusal(options)
      assert.strictEqual(reader._tag, "DatabaseRefused")
      assert.include(reader.message, `ALTER ROLE "${location.user}" SET default_transaction_read_only = off`)
      yield* admin.unsafe(`ALTER ROLE "${location.user}" NOLOGIN`)
      assert.match((yield* refusal(options)).message, /is not permitted to log in/u)
      for (const encoding of ["LATIN1", "SQL_ASCII"]) {
        const database = `${location.database}_${encoding.toLowerCase()}`
        yield* admin.unsafe(`CREATE DATABASE ${database} ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`)
        const error = yield* refusal({ ...location, user: "choir", database })
        assert.strictEqual(error._tag, "DatabaseRefused")
        assert.match(
          error.message,
          new RegExp(`holds text as ${encoding}, .*: createdb -h .* -E UTF8 -T template0`, "u")
        )
        yield* admin.unsafe(`DROP DATABASE ${database}`)
      }
    }).pipe(Effect.provide(Reactivity.layer))
  )

  for (const [sslmode, words] of [
    ["sslmode=require", "it has no TLS, which sslmode in the url asks for"],
    ["sslmode=verify-full", "it has no TLS, which sslmode in the url asks for"],
    ["sslmode=sometimes", "its url is not understood"]
  ] as const)
    it.live(`a server that lacks the thing that the url asks for: ${sslmode}`, () =>
      Effect.gen(function* () {
        const { database, host, user } = yield* postgresDatabase
        const url = `postgres://${user}@localhost/${database}?host=${host}&${sslmode}`
        const error = yield* refusal({ url: Redacted.make(url) })
        assert.strictEqual(error._tag, "DatabaseRefused")
        assert.include(error.message, words)
      })
    )

  it.live("a server without pgvector", () =>
    Effect.gen(function* () {
      const { host, port, user } = yield* Effect.acquireRelease(
        Effect.promise(() => startPostgres({ vector: false })),
        ({ stop }) => Effect.promise(stop)
      )
      const error = yield* refusal({ host, port, user, database: "postgres" })
      assert.strictEqual(error._tag, "DatabaseRefused")
      assert.include(error.message, "it lacks pgvector 0.7 or later: install it on the server")
    })
  )
})

describe("Database that nobody answers for", () => {
  it.live("is tried again, then named with what to do", () =>
    Effect.gen(function* () {
      const port = yield* Effect.promise(async () => {
        const server = createServer().listen(0, "127.0.0.1")
        await once(server, "listening")
        const address = server.address()
        server.close()
        return typeof address === "object" && address !== null ? address.port : 0
      })
      const url = Redacted.make(`postgres://choir:hunter2@127.0.0.1:${port}/agents`)
      const error = yield* refusal({ url, reachMs: 600 })
      assert.strictEqual(error._tag, "DatabaseUnreachable")
      assert.match(error.message, new RegExp(`^Postgres at 127.0.0.1:${port}/agents did not answer .* start it`, "u"))
      assert.notInclude(JSON.stringify(error), "hunter2")
    })
  )

  it.live("is not tried when its URL cannot be read", () =>
    Effect.gen(function* () {
      const error = yield* refusal({ url: Redacted.make("choir:hunter2@db") })
      assert.strictEqual(error._tag, "DatabaseUrlInvalid")
      assert.notInclude(error.message, "hunter2")
    })
  )
})
