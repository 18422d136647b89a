import { appendFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync, gzipSync } from "node:zlib"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer, Result, type Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { AgentSchemas } from "#src/choird/database/AgentSchemas.ts"
import { Backup } from "#src/choird/database/Backup.ts"
import { storedTables } from "#src/choird/database/backupTables.ts"
import { Database } from "#src/choird/database/Database.ts"
import { migrate, MIGRATIONS, migrationsUntil, NEWEST } from "#src/choird/database/Migrations.ts"
import { restore } from "#src/choird/database/restore.ts"
import { readHead, verifyLog } from "#src/choird/sessions/readLog.ts"
import { storedLog } from "#src/choird/sessions/storedEvents.ts"
import { recordLine } from "#src/shared/events/backupFormat.ts"
import { readBackup } from "#src/shared/events/BackupReader.ts"
import type { Move } from "#src/shared/files/movedPaths.ts"
import {
  describePostgres,
  embeddedTemplate,
  migratedTemplate,
  postgresDatabase,
  temporaryFolder
} from "../../support/engines.ts"
import { makeRandom } from "../../support/history.ts"
import { appendNotices, fillEvents } from "../../support/manyEvents.ts"
import { atFull, LAYER_MS_MAX } from "../../support/size.ts"

type Services = Database | SqlClient.SqlClient
type Opened = Layer.Layer<Services>
type Opener = Effect.Effect<Opened, never, Scope.Scope>

/** The migration before the newest one. */
const PREVIOUS = Math.max(
  ...Object.keys(MIGRATIONS)
    .map(Number.parseFloat)
    .filter((number) => number < NEWEST)
)

const AGENT = AgentId.make("a-b")
const KIB = 1024
const MIB = 1024 * KIB

const embeddedFrom = (template: () => string): Opener =>
  Effect.map(temporaryFolder, (folder) =>
    Layer.orDie(Database.layerEmbedded({ folder: join(folder, "data"), template: template(), migrates: false }))
  )

/** New databases that are not migrated, as a restore finds them. */
const embedded = embeddedFrom(embeddedTemplate)
const postgres: Opener = Effect.map(postgresDatabase, (location) =>
  Layer.orDie(Database.layerPostgres({ ...location, migrates: false }))
)
/** One of which a backup is made. */
const used = embeddedFrom(migratedTemplate)

/** Things that a copy may get wrong: numbers, escapes, instants, bytes, counters, an empty table, an agent's schema. */
const fill = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* migrate()
  const schemas = yield* AgentSchemas
  yield* schemas.ensure(AGENT)
  const sessions = yield* fillEvents(300 * KIB)
  yield* sql`INSERT INTO choir_control.sessions (session_id, agent_id, status, resource_bindings, lease_hash, container)
    VALUES ('000000000000000a', ${AGENT}, 'active', '{"n": 1e400, "t": "\\u00e9\\n\\"#"}', '\\xff00', '{"type":"docker"}')`
  for (let id = 1; id <= 300; id += 1)
    yield* sql`INSERT INTO choir_control.inbox (gateway, client_id, agent_id, dm, text)
      VALUES ('g', ${`${id}`}, ${AGENT}, 'me', ${`#{"type":"end"}\n\ttab é 🙂 ${id}`})`
  yield* sql`DELETE FROM choir_control.inbox WHERE inbox_id > 290`
  yield* sql`INSERT INTO choir_control.plans
      (agent_id, plan_id, kind, schedule, zone, text, dm, labelled, made_by, request, next_at, created_at, changed_at)
    VALUES (${AGENT}, 1, 'every', 'daily at 08:00', 'UTC', 'stretch', 'me', false, 'operator', 'r', now(), now(), now())`
  yield* sql`INSERT INTO choir_control.plan_slots (agent_id, plan_id, slot, state, missed) VALUES (${AGENT}, 1, now(), 'said', 0)`
  return [...sessions.map(({ session_id }) => session_id), SessionId.make("000000000000000a")]
}).pipe(Effect.provide(AgentSchemas.layer))

/** Every row of every table as text, and where the counters stand. */
const contents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const found: Record<string, unknown> = {}
  for (const { columns, counters, keys, name } of yield* storedTables([AGENT])) {
    const listed = columns.map((column) => `"${column}"`).join(", ")
    const order = keys.map((key) => `"${key.name}"`).join(", ")
    const rows = yield* sql.unsafe<{ row: string }>(
      `SELECT row_to_json(t)::text AS row FROM (SELECT ${listed} FROM ${name} ORDER BY ${order}) AS t`
    )
    found[name] = rows.map(({ row }) => row)
    for (const { column, sequence } of counters)
      found[`${name}.${column}`] = yield* sql`SELECT pg_sequence_last_value(${sequence}::regclass)::text AS value`
  }
  return found
})

const verified = Effect.fnUntraced(function* (session_id: SessionId) {
  const head = yield* readHead(session_id)
  return (yield* verifyLog(session_id, head, storedLog(session_id, head.newest_rev))).ok
})

/** Writes a backup and answers its path. */
const backedUp = Effect.gen(function* () {
  const file = join(yield* temporaryFolder, "backup.gz")
  const backup = yield* Backup
  const pieces = yield* Stream.runCollect(backup.file("0.1.0"))
  writeFileSync(file, Buffer.concat(pieces))
  return file
}).pipe(Effect.provide(Backup.layer))

const restored = (file: string, force = false) => restore({ file, force }, () => Effect.void)

/** A backup of a database with these things, and what is in it. */
const backupOf = (from: Opener) =>
  Effect.gen(function* () {
    const sessions = yield* fill
    return { sessions, file: yield* backedUp, before: yield* contents }
  }).pipe(Effect.provide(Layer.unwrap(from)))

/** That of an embedded database, which no test changes. */
class EmbeddedBackup extends Context.Service<EmbeddedBackup, Effect.Success<ReturnType<typeof backupOf>>>()(
  "choir/test/EmbeddedBackup"
) {
  static readonly layer = Layer.effect(EmbeddedBackup, backupOf(used))
}

const cycle = ({ before, file, sessions }: Effect.Success<ReturnType<typeof backupOf>>, into: Opener) =>
  Effect.gen(function* () {
    const target = yield* into
    yield* Effect.gen(function* () {
      const summary = yield* restored(file)
      assert.deepStrictEqual(summary.broken, [])
      assert.strictEqual(summary.sessions, sessions.length)
      assert.deepStrictEqual(yield* contents, before)
      for (const session_id of sessions) assert.isTrue(yield* verified(session_id), session_id)
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{
        inbox_id: string
      }>`INSERT INTO choir_control.inbox (gateway, client_id, agent_id, dm, text)
        VALUES ('g', 'next', ${AGENT}, 'me', 'next') RETURNING inbox_id::text`
      assert.strictEqual(row?.inbox_id, "301")
      assert.strictEqual((yield* sql`SELECT 1 FROM pg_namespace WHERE nspname = ${`choir_${AGENT}`}`).length, 1)
      // It has sessions now: another restore takes the word for it.
      const refused = yield* Effect.flip(restored(file))
      assert.match(refused.message, /^nothing was restored: the database has sessions or messages: add --force/u)
      yield* restored(file, true)
      assert.deepStrictEqual(yield* contents, before)
    }).pipe(Effect.provide(target))
  })

/** Many times what the slowest test takes. */
const LONG = 300_000

/** The containers that a database remembers after each of these restores of one backup into it. */
const containersAfter = (...moves: ReadonlyArray<Move>) =>
  Effect.gen(function* () {
    const { file } = yield* EmbeddedBackup
    return yield* Effect.forEach(moves, (move) =>
      Effect.gen(function* () {
        yield* restore({ file, force: true, move }, () => Effect.void)
        const sql = yield* SqlClient.SqlClient
        return yield* sql`SELECT container FROM choir_control.sessions WHERE container IS NOT NULL`
      })
    ).pipe(Effect.provide(yield* embedded))
  })

layer(EmbeddedBackup.layer, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
  describe("A backup of the embedded database", () => {
    it.effect(
      "forgets in another home the containers of the first, which may run there, and knows them in the same one",
      () =>
        Effect.gen(function* () {
          const [same, other] = yield* containersAfter({ from: ["/a"], to: "/a" }, { from: ["/a"], to: "/b" })
          assert.lengthOf(same ?? [], 1)
          assert.deepStrictEqual(other, [])
        }),
      LONG
    )

    it.effect(
      "brings back every row, counter and chain in another embedded one (R70)",
      () => Effect.flatMap(EmbeddedBackup, (backup) => cycle(backup, embedded)),
      LONG
    )

    it.effect(
      "is one moment, while sessions go on: all events that a head names and none beyond (R70)",
      () =>
        Effect.gen(function* () {
          const source = yield* used
          yield* Effect.gen(function* () {
            yield* migrate()
            const [session] = yield* fillEvents(6 * MIB)
            assert.isDefined(session)
            const { end, session_id } = session
            const file = join(yield* temporaryFolder, "backup.gz")
            const backup = yield* Effect.provide(Backup, Backup.layer)
            let appended = 0
            // At its first piece it is still among the events that it began with: it cannot be more than the buffer ahead.
            yield* backup.file("0.1.0").pipe(
              Stream.runForEach((piece) =>
                Effect.gen(function* () {
                  if (appended === 0) appended = (yield* appendNotices(session_id, end, makeRandom(1))).rev - end.rev
                  appendFileSync(file, piece)
                })
              )
            )
            const { broken, events } = yield* readBackup(file, () => Effect.void)
            assert.deepStrictEqual(broken, [])
            assert.strictEqual(events, end.rev + appended)
            const parts = gunzipSync(readFileSync(file))
              .toString()
              .match(/^#.*"table":"session_events"/gmu)
            assert.strictEqual(parts?.length, 2)
          }).pipe(Effect.provide(source))
        }),
      LONG
    )

    it.effect(
      "is refused with its fault when it is cut, damaged, of another kind or newer, and nothing changes (R70)",
      () =>
        Effect.gen(function* () {
          const backup = yield* EmbeddedBackup
          const file = join(yield* temporaryFolder, "backup.gz")
          yield* Effect.gen(function* () {
            yield* migrate()
            yield* fillEvents(KIB)
            const before = yield* contents
            const whole = readFileSync(backup.file)
            const text = gunzipSync(whole).toString("utf8")
            const lines = text.trimEnd().split("\n")
            const faulty = Effect.fnUntraced(function* (bytes: Uint8Array, why: RegExp) {
              writeFileSync(file, bytes)
              const error = yield* Effect.flip(restored(file, true))
              assert.match(error.message, why)
            })
            const written = (changed: ReadonlyArray<string>) => gzipSync(`${changed.join("\n")}\n`)
            const CUT = /is truncated|not those that were written/u
            const random = makeRandom(5)
            for (let n = 0; n < 20; n += 1)
              yield* faulty(whole.subarray(0, Math.floor(random() * whole.length)), /is truncated|not gzip/u)
            for (let n = 0; n < 20; n += 1) {
              const changed = Buffer.from(whole)
              const at = Math.floor(random() * changed.length)
              changed[at] = (changed[at] ?? 0) ^ (1 << Math.floor(random() * 8))
              // A flag of the compression's own header may change without a change of the contents.
              const read = Result.try(() => gunzipSync(changed).toString("utf8"))
              const same = Result.isSuccess(read) && read.success === text
              if (!same) yield* faulty(changed, /cannot be used as a backup/u)
            }
            yield* faulty(Buffer.from(""), CUT)
            yield* faulty(Buffer.from("hello"), /it is not gzip/u)
            yield* faulty(written(["hello"]), /a row is outside a table \(line 1\)/u)
            yield* faulty(written(lines.slice(0, -1)), CUT)
            yield* faulty(written([...lines, "#{}"]), /there is something after its end/u)
            const row = lines.findIndex((line) => line.startsWith("{"))
            yield* faulty(written(lines.with(row, "{}")), /does not have the columns of its table/u)
            yield* faulty(written(lines.toSpliced(row, 1)), /are not those that were written/u)
            yield* faulty(
              written(lines.with(row, (lines[row] ?? "").replace("1970", "1971"))),
              /not those that were written|does not/u
            )
            yield* faulty(Buffer.from(gzipSync(Buffer.alloc(20_000_000, 97))), /a line is too long/u)
            const header = JSON.parse((lines[0] ?? "").slice(1))
            yield* faulty(
              written(lines.with(0, recordLine({ ...header, format: 3 }))),
              /its format is 3, and this Choir reads up to 2: use the newer Choir/u
            )
            assert.deepStrictEqual(yield* contents, before)
          }).pipe(Effect.provide(Layer.unwrap(used)))
        }),
      LONG
    )
  })

  describePostgres("A backup between Postgres and the embedded database", () => {
    atFull(it.effect)(
      "brings back every row, counter and chain from one server database to another (R70)",
      () => Effect.flatMap(backupOf(postgres), (backup) => cycle(backup, postgres)),
      LONG
    )
    it.effect(
      "brings the embedded database to a server (R70, E2)",
      () => Effect.flatMap(EmbeddedBackup, (backup) => cycle(backup, postgres)),
      LONG
    )
    it.effect(
      "brings a server's database into the embedded one (R70)",
      () => Effect.flatMap(backupOf(postgres), (backup) => cycle(backup, embedded)),
      LONG
    )

    it.effect(
      "made before the newest migration is brought up to date, one of a later Choir or with unknown tables is refused (R67, R68)",
      () =>
        Effect.gen(function* () {
          const old = yield* postgres
          const file = yield* Effect.andThen(migrate(migrationsUntil(PREVIOUS)), backedUp).pipe(Effect.provide(old))
          const strange = yield* postgres
          const unknown = yield* Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            yield* migrate()
            yield* sql`CREATE TABLE choir_control.strange (id int PRIMARY KEY)`
            return yield* backedUp
          }).pipe(Effect.provide(strange))
          const newer = yield* Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            yield* sql`INSERT INTO choir_control.schema_migrations (migration_id, name) VALUES (${NEWEST + 1}, 'later')`
            return yield* backedUp
          }).pipe(Effect.provide(strange))
          const target = yield* postgres
          yield* Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            assert.strictEqual((yield* restored(file)).header.migration, PREVIOUS)
            assert.deepStrictEqual(
              yield* sql`SELECT max(migration_id) AS latest FROM choir_control.schema_migrations`,
              [{ latest: NEWEST }]
            )
            yield* fill
            const before = yield* contents
            const [first, second] = [
              yield* Effect.flip(restored(unknown, true)),
              yield* Effect.flip(restored(newer, true))
            ]
            assert.include(first.message, "has no table choir_control.strange with the columns of the backup")
            assert.include(second.message, `has migration ${NEWEST + 1}, and this choird knows only ${NEWEST}`)
            assert.deepStrictEqual(yield* contents, before)
            // A database of a later Choir is left behind by a restore: the way back after an upgrade.
            yield* sql`INSERT INTO choir_control.schema_migrations (migration_id, name) VALUES (${NEWEST + 1}, 'later')`
            yield* restored(file, true)
            assert.deepStrictEqual(yield* migrate(), [])
          }).pipe(Effect.provide(target))
        }),
      LONG
    )

    it.effect(
      "with a session that does not verify is taken by force alone",
      () =>
        Effect.gen(function* () {
          const source = yield* postgres
          yield* Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            yield* migrate()
            const [session] = yield* fillEvents(KIB)
            assert.isDefined(session)
            const { session_id } = session
            yield* sql`UPDATE choir_control.session_events SET salt = substr(sha256(salt), 1, 16) WHERE rev = 7`
            const file = yield* backedUp
            const error = yield* Effect.flip(restored(file, false))
            assert.include(
              error.message,
              `the session ${session_id} of the backup does not verify (the digest of event 7`
            )
            const { broken } = yield* restored(file, true)
            assert.deepStrictEqual(broken, [{ session_id, reason: "the digest of event 7 does not match" }])
          }).pipe(Effect.provide(source))
        }),
      LONG
    )
  })
})
