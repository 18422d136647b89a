/** A process of its own that commits rows and says so, until it is killed: `node writer.ts FOLDER TEMPLATE`. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { writeSync } from "node:fs"
import { Database } from "#src/choird/database/Database.ts"

const [, , folder = "", template] = process.argv

const main = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS written (n int PRIMARY KEY, pad text)`
  for (let n = 1; ; n += 2) {
    yield* sql.withTransaction(
      Effect.andThen(
        sql`INSERT INTO written VALUES (${n}, repeat('x', 2000))`,
        sql`INSERT INTO written VALUES (${n + 1}, repeat('y', 2000))`
      )
    )
    writeSync(1, `${n + 1}\n`)
  }
})

NodeRuntime.runMain(main.pipe(Effect.provide(Database.layerEmbedded({ folder, template }))))
