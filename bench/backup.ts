/** R70: how long a database of a GiB takes to back up and to restore, its proof included, into either database. */
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Clock, Effect, FileSystem, Layer, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { AgentSchemas } from "#src/choird/database/AgentSchemas.ts"
import { Backup } from "#src/choird/database/Backup.ts"
import { Database } from "#src/choird/database/Database.ts"
import { migrate } from "#src/choird/database/Migrations.ts"
import { restore } from "#src/choird/database/restore.ts"
import { fillEvents } from "../test/support/manyEvents.ts"
import { onPostgres } from "./postgres.ts"
import { atMost, type Row } from "./Row.ts"

const MIB = 1024 ** 2
/** An event is stored as text and as `jsonb`, so that a database of a GiB holds about half of it in canonical bytes. */
const CANONICAL_BYTES = 512 * MIB
const TEMPLATE = join(import.meta.dirname, "../dist/postgres-template.tar.gz")
const LIMIT_S = 300

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-bench-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const timed = <A, E, R>(what: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const began = yield* Clock.currentTimeMillis
    const result = yield* what
    return [((yield* Clock.currentTimeMillis) - began) / 1000, result] as const
  })

const filled = (file: string) =>
  Effect.gen(function* () {
    yield* migrate()
    yield* fillEvents(CANONICAL_BYTES)
    const sql = yield* SqlClient.SqlClient
    const [size] = yield* sql<{ bytes: number }>`SELECT pg_database_size(current_database())::float8 AS bytes`
    const mib = Math.round((size?.bytes ?? 0) / MIB)
    const fs = yield* FileSystem.FileSystem
    const backup = yield* Backup
    const [seconds] = yield* timed(Stream.run(backup.file("bench"), fs.sink(file)))
    process.stderr.write(`R70: ${mib} MiB of database, a file of ${Math.round(statSync(file).size / MIB)} MiB\n`)
    return seconds
  }).pipe(Effect.provide([AgentSchemas.layer, Backup.layer, NodeFileSystem.layer]))

const restored = (file: string) =>
  Effect.gen(function* () {
    const [seconds, { broken }] = yield* timed(restore({ file, force: false }, () => Effect.void))
    if (broken.length > 0) return yield* Effect.die(new Error(`${broken.length} chains do not hold`))
    return seconds
  })

/** Fills the embedded database, and restores its backup into another and into a server. Takes about a quarter of an hour. */
export const backup: Effect.Effect<ReadonlyArray<Row>, unknown> = onPostgres("R70", (_options, server) =>
  Effect.gen(function* () {
    const home = yield* folder
    const file = join(home, "backup.gz")
    const embedded = (name: string) =>
      Database.layerEmbedded({ folder: join(home, name), template: TEMPLATE, migrates: false })
    const inServer = Database.layerPostgres({ ...server, database: "postgres", ssl: false, migrates: false })
    const on =
      <LE>(layer: Layer.Layer<Database | SqlClient.SqlClient, LE>) =>
      <A, E>(what: Effect.Effect<A, E, Database | SqlClient.SqlClient>) =>
        Effect.provide(what, Layer.fresh(layer))
    const written = yield* filled(file).pipe(on(embedded("from")))
    const intoEmbedded = yield* restored(file).pipe(on(embedded("into")))
    const intoServer = yield* restored(file).pipe(on(inServer))
    return [
      atMost("R70", "backup of 1 GiB, embedded", written, "s", LIMIT_S),
      atMost("R70", "restore of 1 GiB, embedded", intoEmbedded, "s", LIMIT_S),
      atMost("R70", "restore of 1 GiB, Postgres", intoServer, "s", LIMIT_S)
    ]
  }).pipe(Effect.scoped)
)
