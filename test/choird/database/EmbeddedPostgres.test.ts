import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Database, EMBEDDED_CONNECTIONS_MAX } from "#src/choird/database/Database.ts"
import type { EmbeddedOptions } from "#src/choird/database/EmbeddedPostgres.ts"
import { embeddedTemplate, temporaryFolder } from "../../support/engines.ts"
import { EMBEDDED_OPEN_MS_MAX } from "#src/choird/database/EmbeddedPostgres.ts"
import { EMBEDDED_ANSWER_BYTES_MAX } from "#src/choird/database/PostgresBridge.ts"

const open = (folder: string, waits: Pick<EmbeddedOptions, "idleInTransactionMs" | "stuckMs"> = {}) =>
  Database.layerEmbedded({ folder, template: embeddedTemplate(), ...waits })

/** Runs the writer until it has committed `rows` rows, kills it at once, and returns the last row that it reported. */
const writeAndKill = (folder: string, rows: number) =>
  Effect.promise(async () => {
    const child = spawn(process.execPath, [join(import.meta.dirname, "writer.ts"), folder, embeddedTemplate()], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    const ended = once(child, "exit")
    let last = 0
    for await (const line of createInterface(child.stdout)) {
      last = Number.isNaN(Number(line)) ? last : Number(line)
      if (last >= rows && !child.killed) child.kill("SIGKILL")
    }
    await ended
    return last
  })

// Opening takes half a second, and several on a machine that is busy with other tests.
describe("EmbeddedPostgres", { timeout: 300_000 }, () => {
  it.live("has every committed row, and no half of a transaction, after kill -9", () =>
    Effect.gen(function* () {
      const folder = join(yield* temporaryFolder, "data")
      const reported = yield* writeAndKill(folder, 100)
      const count = yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql<{
          count: number
          max: number
        }>`SELECT count(*)::int AS count, max(n) AS max FROM written`
        return row
      }).pipe(Effect.provide(open(folder)))
      assert.isAtLeast(count?.max ?? 0, reported)
      assert.strictEqual(count?.count, count?.max)
      assert.strictEqual((count?.count ?? 1) % 2, 0)
    })
  )

  it.live("makes a fresh folder whole or not at all, and clears away what an interrupted try left", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      mkdirSync(join(home, "data.new/base"), { recursive: true })
      writeFileSync(join(home, "data.new/PG_VERSION"), "18\n")
      const { kind, pgvector, version } = yield* Effect.provide(Database, open(join(home, "data")))
      assert.deepStrictEqual({ kind, pgvector, version }, { kind: "embedded", pgvector: "0.8.7", version: "18.6" })
      assert.deepStrictEqual(readdirSync(home), ["data"])
    })
  )

  it.live("refuses a folder that holds something else, and touches nothing in it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      writeFileSync(join(folder, "letter.txt"), "dear")
      const error = yield* Effect.flip(Effect.provide(Database, open(folder)))
      assert.strictEqual(error._tag, "EmbeddedUnusable")
      assert.include(error.message, "is not empty and holds no database")
      assert.deepStrictEqual(readdirSync(folder), ["letter.txt"])
    })
  )

  it.live("refuses a damaged folder with its name", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      writeFileSync(join(folder, "PG_VERSION"), "18\n")
      const error = yield* Effect.flip(Effect.provide(Database, open(folder)))
      assert.strictEqual(error._tag, "EmbeddedUnusable")
      assert.include(error.message, folder)
    })
  )

  it.effect("asks for another start, and not for an empty database, when the machine is too busy to open it", () =>
    Effect.gen(function* () {
      const folder = join(yield* temporaryFolder, "data")
      const opening = yield* Effect.forkChild(Effect.flip(Effect.provide(Database, open(folder))), {
        startImmediately: true
      })
      yield* TestClock.adjust(EMBEDDED_OPEN_MS_MAX)
      const error = yield* Fiber.join(opening)
      assert.strictEqual(error._tag, "EmbeddedLate")
      assert.match(error.message, /too busy\. Start choird again$/u)
    })
  )

  it.live("ends a transaction that waits for a query outside of it, and goes on", () =>
    Effect.gen(function* () {
      const folder = join(yield* temporaryFolder, "data")
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE t (id int)`
        const inserted = yield* Deferred.make<void>()
        const outside = yield* Effect.forkChild(Effect.andThen(Deferred.await(inserted), sql`SELECT 1 AS one`))
        const stuck = Effect.gen(function* () {
          yield* sql`INSERT INTO t VALUES (1)`
          yield* Deferred.succeed(inserted, undefined)
          yield* Fiber.join(outside)
          yield* sql`INSERT INTO t VALUES (2)`
        })
        const error = yield* Effect.flip(sql.withTransaction(stuck))
        assert.strictEqual(error._tag, "SqlError")
        assert.deepStrictEqual(yield* Fiber.join(outside), [{ one: 1 }])
        assert.deepStrictEqual(yield* sql`SELECT * FROM t`, [])
      }).pipe(Effect.provide(open(folder, { idleInTransactionMs: 5000 })))
    })
  )

  it.live("refuses an answer that is too large, and goes on", () =>
    Effect.gen(function* () {
      const folder = join(yield* temporaryFolder, "data")
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const rows = Math.ceil(EMBEDDED_ANSWER_BYTES_MAX / 2 ** 20) + 1
        const error = yield* Effect.flip(sql`SELECT repeat('x', ${2 ** 20}) FROM generate_series(1, ${rows}::int)`)
        assert.include(String(error.reason.cause), "read it in pages")
        assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
      }).pipe(Effect.provide(open(folder)))
    })
  )

  it.live("is lost when a statement takes too long, fails what is asked afterwards, and opens again", () =>
    Effect.gen(function* () {
      const folder = join(yield* temporaryFolder, "data")
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { lost } = yield* Database
        const endless = sql`SELECT count(*) FROM generate_series(1, 1000000000)`
        const waiting = yield* Effect.forkChild(
          Effect.all([Effect.flip(endless), Effect.flip(sql`SELECT 1`)], { concurrency: 2 })
        )
        assert.strictEqual((yield* Effect.flip(lost))._tag, "DatabaseLost")
        assert.deepStrictEqual(
          (yield* Fiber.join(waiting)).map(({ _tag }) => _tag),
          ["SqlError", "SqlError"]
        )
        assert.strictEqual((yield* Effect.flip(sql`SELECT 1`))._tag, "SqlError")
      }).pipe(Effect.provide(open(folder, { stuckMs: 1500 })))
      assert.strictEqual((yield* Effect.provide(Database, open(folder))).kind, "embedded")
    })
  )

  it.live("serves more work at once than it has connections", () =>
    Effect.gen(function* () {
      const folder = join(yield* temporaryFolder, "data")
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const numbers = Array.from({ length: 10 * EMBEDDED_CONNECTIONS_MAX }, (_, index) => index)
        const answers = yield* Effect.forEach(numbers, (n) => sql<{ n: number }>`SELECT ${n}::int AS n`, {
          concurrency: 10 * EMBEDDED_CONNECTIONS_MAX
        })
        assert.deepStrictEqual(
          answers.flat().map(({ n }) => n),
          numbers
        )
      }).pipe(Effect.provide(open(folder)))
      assert.isFalse(existsSync(`${folder}.new`))
    })
  )
})
