/**
 * Makes a migrated database that tests copy: `node migratedTemplate.ts embedded EMPTY FILE` from the template of an empty one, or
 * `node migratedTemplate.ts postgres PARTS` as a new database of the server that PARTS, as JSON, name.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, renameSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Logger } from "effect"
import { Reactivity } from "effect/reactivity"
import { Database } from "#src/choird/database/Database.ts"
import type { PostgresParts } from "#src/choird/database/PostgresServer.ts"

const migrate = <E>(layer: Layer.Layer<Database, E>) =>
  Effect.runPromise(Effect.scoped(Effect.provide(Layer.build(layer), Logger.layer([]))))

const embedded = async (template: string, file: string) => {
  const folder = mkdtempSync(join(tmpdir(), "choir-template-"))
  const data = join(folder, "data")
  const partial = `${file}.${process.pid}`
  await migrate(Database.layerEmbedded({ folder: data, template }))
  execFileSync("tar", ["--format=ustar", "-C", data, "-czf", partial, "."])
  renameSync(partial, file)
  rmSync(folder, { recursive: true })
}

const server = async (parts: PostgresParts) => {
  const { database, host, port, user: username } = parts
  const create = Effect.flatMap(PgClient.makeClient({ host, port, username, database: "postgres" }), (sql) =>
    sql.unsafe(`CREATE DATABASE ${database}`)
  )
  await Effect.runPromise(Effect.scoped(create).pipe(Effect.provide(Reactivity.layer)))
  await migrate(Database.layerPostgres(parts))
}

const [kind, from = "", file = ""] = process.argv.slice(2)
if (kind === "embedded") await embedded(from, file)
else await server(JSON.parse(from) as PostgresParts)
