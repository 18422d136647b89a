/** What a thousand starts leave (R65): an agent of whole programs on a Postgres server, started and stopped in one life of choird. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { describePostgres, migratedDatabase } from "../support/engines.ts"
import { AGENT, makeInstallation } from "../support/installation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { DATABASE_CONNECTIONS_MAX } from "#src/choird/database/PostgresServer.ts"
import { SIZE } from "../support/size.ts"

/** CHOIR_CYCLES asks for more. */
const CYCLES = SIZE.agentCycles
/** Each of so many starts is of a new session, whose row stays as its history. */
const FRESH_EVERY = 8
/** Between two looks for memory that is still made. */
const LOOK_MS = 50
const CYCLES_MS_MAX = 300_000 + 10_000 * CYCLES
/** Connections that are closing when they are counted. */
const DESCRIPTORS_MORE_MAX = 4

/** What the server keeps of this database: roles and rights for its agent, rows, connections, locks. */
const look = Effect.fnUntraced(function* (sql: PgClient.PgClient, database: string) {
  const count = (statement: string) =>
    Effect.map(sql.unsafe<{ readonly count: string }>(`SELECT count(*) FROM ${statement}`), ([row]) =>
      Number(row?.count)
    )
  const tables = yield* sql<{ readonly name: string }>`SELECT schemaname || '.' || tablename AS name FROM pg_tables
    WHERE schemaname LIKE 'choir%' ORDER BY 1`
  const rows: Record<string, number> = {}
  for (const { name } of tables) rows[name] = yield* count(name)
  const others = `pg_stat_activity WHERE datname = '${database}' AND pid <> pg_backend_pid()`
  return {
    rows,
    tokens: yield* count("choir_control.sessions WHERE bootstrap_hash IS NOT NULL OR lease_hash IS NOT NULL"),
    catalogue: {
      roles: yield* count(`pg_roles WHERE rolname LIKE 'choir_${AGENT}%'`),
      databases: yield* count(`pg_database WHERE datname LIKE '${database}%'`),
      schemas: yield* count("pg_namespace WHERE nspname LIKE 'choir%'"),
      rights: yield* count("pg_namespace, aclexplode(nspacl) WHERE nspname LIKE 'choir%'"),
      defaults: yield* count("pg_default_acl, aclexplode(defaclacl)")
    },
    connections: yield* count(others),
    waiting: yield* count(`${others} AND state LIKE 'idle in transaction%'`),
    locks: yield* count(`pg_locks WHERE locktype = 'advisory' AND database = (
      SELECT oid FROM pg_database WHERE datname = '${database}')`)
  }
})

describePostgres("an agent that is started and stopped, again and again", () => {
  it.live(
    `leaves nothing in Postgres, in its home and in choird but the history of its sessions, ${CYCLES} times (R65)`,
    () =>
      Effect.gen(function* () {
        const { database, host, port, user } = yield* migratedDatabase
        const provider = yield* makeProvider
        yield* provider.otherwise((request) => offlineModel(request, 0))
        const url = `postgres://${user}@${encodeURIComponent(host)}:${port}/${database}`
        const { api, build, home, params, send, settled, start } = yield* makeInstallation({
          endpoint: provider.endpoint,
          postgres: { url_secret: "postgres-url" },
          secrets: { "postgres-url": url }
        })
        const sql = yield* PgClient.makeClient({ host, port, database, username: user })
        // The memory of an ended session is made in the background.
        const seen = sql`SELECT 1 FROM choir_control.memory_jobs`.pipe(
          Effect.repeat({ until: (jobs) => jobs.length === 0, schedule: Schedule.spaced(LOOK_MS) }),
          // What choird does by itself may be within a transaction just then.
          Effect.andThen(
            Effect.repeat(look(sql, database), {
              until: ({ waiting }) => waiting === 0,
              schedule: Schedule.spaced(LOOK_MS)
            })
          )
        )
        const choird = yield* start
        yield* build
        const cycle = Effect.fnUntraced(function* (fresh: boolean) {
          yield* api.agents.start({ params, payload: { fresh } })
          yield* api.agents.stop({ params })
        })
        const left = () => ({
          descriptors: readdirSync(`/proc/${choird.pid}/fd`).length,
          sockets: readdirSync(join(home, "socks"), { recursive: true })
        })
        yield* api.agents.start({ params, payload: {} })
        const { inbox_id } = yield* send("cycles-1", "job alpha: write a.txt: one")
        yield* settled(inbox_id)
        yield* api.agents.stop({ params })
        const [before, held, began_ms] = [yield* seen, left(), performance.now()]
        for (let done = 1; done < CYCLES; done++) yield* cycle(done % FRESH_EVERY === 0)
        const each_ms = (performance.now() - began_ms) / (CYCLES - 1)
        const [after, holds] = [yield* seen, left()]
        if (process.env["CHOIR_CYCLES"] !== undefined)
          process.stderr.write(
            `${CYCLES} cycles, ${Math.round(each_ms)} ms each: ${JSON.stringify([held, holds, before, after])}\n`
          )

        const fresh = Math.floor((CYCLES - 1) / FRESH_EVERY)
        const { "choir_control.audit": audited = 0, "choir_control.sessions": sessions = 0, ...rows } = before.rows
        assert.deepStrictEqual(after.rows, {
          ...rows,
          // Each start and each stop that an operator orders is a row.
          "choir_control.audit": audited + 2 * (CYCLES - 1),
          "choir_control.sessions": sessions + fresh
        })
        assert.deepStrictEqual([after.rows["choir_control.leases"], after.tokens], [0, 0])
        assert.isAbove(after.rows["choir_control.session_events"] ?? 0, 5)
        assert.deepStrictEqual(after.catalogue, before.catalogue)
        assert.deepStrictEqual([after.catalogue.roles, after.catalogue.databases, after.waiting], [1, 1, 0])
        assert.isAtMost(after.connections, DATABASE_CONNECTIONS_MAX)
        assert.deepStrictEqual(holds.sockets, held.sockets)
        // A pool that was not full yet may have grown meanwhile.
        const grown = Math.max(0, after.connections - before.connections)
        assert.isAtMost(holds.descriptors, held.descriptors + grown + DESCRIPTORS_MORE_MAX)

        yield* choird.signal("SIGTERM")
        assert.strictEqual(yield* choird.exited, 0)
        const ended = yield* seen
        assert.deepStrictEqual([ended.connections, ended.locks], [0, 0])
        assert.deepStrictEqual(ended.catalogue, before.catalogue)
        yield* start
        assert.deepStrictEqual((yield* seen).catalogue, before.catalogue)
      }).pipe(Effect.scoped, Effect.provide(Reactivity.layer)),
    CYCLES_MS_MAX
  )
})
