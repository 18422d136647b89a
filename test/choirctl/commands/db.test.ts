import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { join } from "node:path"
import { Database } from "#src/choird/database/Database.ts"
import { migrate, MIGRATIONS, NEWEST } from "#src/choird/database/Migrations.ts"
import { makeHomeFolder } from "../../support/choird.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { embeddedTemplate } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"

/** Works on a home's embedded database as a choird would that is not there. */
const inDatabase = <A, E>(home: string, work: Effect.Effect<A, E, SqlClient.SqlClient>) =>
  Effect.provide(
    work,
    Database.layerEmbedded({ folder: join(home, "data"), template: embeddedTemplate(), migrates: false })
  )

describe("choirctl db migrate", () => {
  it.live("makes a new database, says what it did, then that there is nothing to do (R67)", () =>
    Effect.gen(function* () {
      const { home } = yield* makeHomeFolder()
      const first = yield* choirctl(home, ["db", "migrate", "--json"])
      assert.strictEqual(first.code, 0, first.out + first.err)
      const applied = Object.keys(MIGRATIONS).map(Number.parseFloat)
      assert.deepStrictEqual(document(first), {
        ok: true,
        running: false,
        kind: "embedded",
        applied,
        migration: NEWEST
      })
      const again = yield* choirctl(home, ["db", "migrate"])
      assert.deepStrictEqual(again, { code: 0, out: `the database is up to date (migration ${NEWEST})\n`, err: "" })
    })
  )

  it.live("refuses a database of a later Choir with 78, as the program itself says it (R68)", () =>
    Effect.gen(function* () {
      const { home } = yield* makeHomeFolder()
      const later = Effect.gen(function* () {
        yield* migrate()
        const sql = yield* SqlClient.SqlClient
        yield* sql`INSERT INTO choir_control.schema_migrations (migration_id, name) VALUES (${NEWEST + 1}, 'later')`
      })
      yield* inDatabase(home, later)
      const ran = yield* choirctl(home, ["db", "migrate", "--json"])
      assert.strictEqual(ran.code, 78)
      const { error, ok } = document(ran) as { ok: boolean; error: { type: string; message: string } }
      assert.isFalse(ok)
      assert.strictEqual(error.type, "SchemaTooNew")
      assert.include(error.message, `has migration ${NEWEST + 1}, and this choird knows only ${NEWEST}`)
    })
  )

  it.live("leaves a running choird its database, and names a home that has no configuration", () =>
    Effect.gen(function* () {
      const { home } = yield* makeHomeFolder()
      const missing = yield* choirctl(join(home, "nowhere"), ["db", "migrate"])
      assert.strictEqual(missing.code, 78)
      assert.include(missing.err, "does not exist")
      yield* fakeChoird(home)
      const ran = yield* choirctl(home, ["db", "migrate"])
      assert.strictEqual(ran.code, 0)
      assert.include(ran.out, "choird is running and migrated its database")
    })
  )
})
