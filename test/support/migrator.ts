/**
 * A process of its own that migrates a database and dies by SIGKILL before its n-th statement: `node migrator.ts WHERE N`, with WHERE
 * as JSON. Without N it migrates to the end and prints how many statements that takes.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { writeSync } from "node:fs"
import { Database } from "#src/choird/database/Database.ts"
import { migrate, MIGRATIONS } from "#src/choird/database/Migrations.ts"
import type { EmbeddedOptions } from "#src/choird/database/EmbeddedPostgres.ts"
import type { PostgresParts } from "#src/choird/database/PostgresServer.ts"

/** Where the database is: the options of one of its layers. */
export type Where = EmbeddedOptions | PostgresParts

const [, , where = "", dies = "0"] = process.argv

/** Counts what a migration executes; the last count is its commit. */
const counted = Effect.map(SqlClient.SqlClient, (sql) => {
  let count = 0
  const next = Effect.sync(() => {
    count += 1
    if (count === Number(dies)) process.kill(process.pid, "SIGKILL")
  })
  const client = new Proxy(sql, {
    get: (target, key, receiver) =>
      key === "unsafe"
        ? (...args: Parameters<typeof sql.unsafe>) => Effect.andThen(next, sql.unsafe(...args))
        : Reflect.get(target, key, receiver)
  })
  return { client, next, total: () => count }
})

const main = Effect.gen(function* () {
  const { client, next, total } = yield* counted
  const migrations = Object.fromEntries(
    Object.entries(MIGRATIONS).map(([key, migration]) => [
      key,
      Effect.andThen(Effect.provideService(migration, SqlClient.SqlClient, client), next)
    ])
  )
  yield* migrate(migrations)
  writeSync(1, `${total()}\n`)
})

const options = { ...(JSON.parse(where) as Where), migrates: false }
const database: Layer.Layer<SqlClient.SqlClient> =
  "folder" in options ? Layer.orDie(Database.layerEmbedded(options)) : Layer.orDie(Database.layerPostgres(options))
NodeRuntime.runMain(Effect.provide(main, database))
