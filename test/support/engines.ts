/** The two databases that choird runs on, for suites that must pass on both. */
import { PgClient } from "@effect/sql-pg"
import { describe, layer, type Vitest } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlClient } from "effect/sql"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inject } from "vitest"
import { Database } from "#src/choird/database/Database.ts"
import type { PostgresParts } from "#src/choird/database/PostgresServer.ts"
import { LAYER_MS_MAX, isFull } from "./size.ts"

/** One of the engines. */
export interface Engine {
  readonly kind: "embedded" | "postgres"
  /** A new, migrated database, which is gone when the scope closes. */
  readonly layer: Layer.Layer<Database | PgClient.PgClient | SqlClient.SqlClient>
}

/** A folder that is gone when the scope closes. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-test-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** The template of an embedded database that is not migrated, as choird itself has one. */
export const embeddedTemplate = (): string => inject("embeddedTemplate")

/** The template of one that is migrated: most suites are about what comes after, and a migration takes as long as a small test. */
export const migratedTemplate = (): string => inject("migratedTemplate")

/** Puts a migrated database into a home, as choird leaves one: for a test that is not about a first start, whose migrations take half a second. */
export const putDatabase = (home: string) =>
  Effect.sync(() => {
    const data = join(home, "data")
    mkdirSync(data, { mode: 0o700 })
    execFileSync("tar", ["-xzf", migratedTemplate(), "-C", data])
  })

let databases = 0

const newDatabase = Effect.fnUntraced(function* (isMigrated: boolean) {
  const shared = inject("postgres")
  if (typeof shared === "string") return yield* Effect.die(shared)
  const { migrated, ...server } = shared
  databases += 1
  const location: PostgresParts = { ...server, database: `test_${process.pid}_${databases}`, ssl: false }
  const asAdministrator = (statement: string) =>
    Effect.scoped(
      Effect.flatMap(PgClient.makeClient({ ...server, username: server.user, database: "postgres" }), (sql) =>
        sql.unsafe(statement)
      )
    ).pipe(Effect.provide(Reactivity.layer), Effect.orDie)
  const template = isMigrated ? ` TEMPLATE ${migrated}` : ""
  // Copies of the files, without a record of each page in the log: half of the time.
  const create = `CREATE DATABASE ${location.database}${template} STRATEGY file_copy`
  yield* Effect.acquireRelease(asAdministrator(create), () =>
    asAdministrator(`DROP DATABASE ${location.database} WITH (FORCE)`)
  )
  return location
})

/** A new database on the shared server, not yet migrated. Only within {@link describePostgres}. */
export const postgresDatabase = newDatabase(false)

/** The same, migrated. */
export const migratedDatabase = newDatabase(true)

/** choird's own database, in a temporary folder. */
const embeddedEngine: Engine = {
  kind: "embedded",
  layer: Layer.unwrap(
    Effect.map(temporaryFolder, (folder) =>
      Database.layerEmbedded({ folder: join(folder, "data"), template: migratedTemplate() })
    )
  ).pipe(Layer.orDie)
}

/** The shared server. Only within {@link describePostgres}. */
export const postgresEngine: Engine = {
  kind: "postgres",
  layer: Layer.unwrap(Effect.map(migratedDatabase, (location) => Database.layerPostgres(location))).pipe(Layer.orDie)
}

/**
 * The engine of suites that are not about databases: at size `ci` the shared server, which takes half the time, where there is one; else the
 * embedded database, which is what most people have.
 */
export const oneEngine = (): Engine =>
  isFull || typeof inject("postgres") === "string" ? embeddedEngine : postgresEngine

/** A suite that needs the real server; left out, with the reason in its name, where there is none. */
export const describePostgres = (name: string, suite: () => void) => {
  const server = inject("postgres")
  if (typeof server === "string") describe.skip(`${name} (left out: ${server})`, suite)
  else describe(name, suite)
}

type Services = Database | PgClient.PgClient | SqlClient.SqlClient

type Suite = (it: Vitest.MethodsNonLive<Services>, engine: Engine) => void

const onEngine = (engine: Engine, suite: Suite) => () =>
  layer(engine.layer, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => suite(it, engine))

/** A suite about what only the embedded database does. */
export const describeEmbedded = (name: string, suite: Suite) => describe(name, onEngine(embeddedEngine, suite))

/**
 * A suite whose subject is SQL, on both engines at every size, each with one new, migrated database for all of its tests. The clock is
 * the real one, since the database has one too.
 */
export const describeEngines = (name: string, suite: Suite) => {
  describe(`${name} (embedded)`, onEngine(embeddedEngine, suite))
  describePostgres(`${name} (postgres)`, onEngine(postgresEngine, suite))
}

/** A suite that uses the database for something else than SQL: on {@link oneEngine} at size `ci`, on both at size `full`. */
export const describeStores = (name: string, suite: Suite) => {
  if (isFull) return describeEngines(name, suite)
  const engine = oneEngine()
  describe(`${name} (${engine.kind})`, onEngine(engine, suite))
}
