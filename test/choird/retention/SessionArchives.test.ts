import { appendFileSync, existsSync, readdirSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Layer, Option, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { isPrintedEvent } from "#schema/SessionsApi.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type DatabaseAway, databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { SessionArchives, type SessionKept } from "#src/choird/retention/SessionArchives.ts"
import { homeBackupLockPath } from "#src/shared/files/homeLocks.ts"
import { holdLockFile } from "#src/shared/files/lockFile.ts"
import { archivePath } from "#src/choird/sessions/archivedLog.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Backup } from "#src/choird/database/Backup.ts"
import { readBackup } from "#src/shared/events/BackupReader.ts"
import { describeStores, temporaryFolder } from "../../support/engines.ts"
import { pruned, retentionWith } from "../../support/retention.ts"
import { BINDINGS, message, newTalk, type Talk } from "../../support/stores.ts"

const TURNS = 700

/** A session of many pages that has ended. */
const ended = (turns = 2) =>
  Effect.gen(function* () {
    const events = yield* EventStore
    const talk = yield* newTalk
    for (let turn = 1; turn <= turns; turn += 1) talk.turn(turn)
    yield* events.append(talk.caller, talk.heartbeat(0))
    yield* (yield* SessionStore).end(talk.caller.session_id, "stopped")
    return talk
  })

const printed = (talk: Talk, options: { readonly from?: number; readonly last?: number } = {}) =>
  Effect.flatMap(EventStore, (events) =>
    Stream.runCollect(events.events(talk.caller.session_id, { ...options, follow: false }))
  )

const kept = (work: Effect.Effect<unknown, SessionKept | DatabaseAway>) =>
  Effect.map(Effect.flip(databaseDefect(work)), ({ kind }) => kind)

describeStores("SessionArchives", (it) => {
  it.effect("moves the events of a long session into a file that reads and verifies as the table did", () =>
    Effect.gen(function* () {
      const archives = yield* SessionArchives
      const events = yield* EventStore
      const sql = yield* SqlClient.SqlClient
      const talk = yield* ended(TURNS)
      const { agent_id, session_id } = talk.caller
      const before = { all: yield* printed(talk), verified: yield* events.verify(session_id) }
      const archived = yield* archives.archive(session_id, "operator")
      assert.deepInclude(archived, { session_id, agent_id, last_rev: 3 * TURNS, head: before.verified.head })
      for (const table of ["session_events", "session_snapshots", "signals", "call_results"])
        assert.deepStrictEqual(
          yield* sql`SELECT 1 FROM ${sql(`choir_control.${table}`)} WHERE session_id = ${session_id}`,
          [],
          table
        )
      assert.deepStrictEqual(yield* printed(talk), before.all)
      assert.deepStrictEqual(yield* events.verify(session_id), before.verified)
      assert.deepStrictEqual(
        (yield* printed(talk, { last: 2 })).map((line) => (isPrintedEvent(line) ? line.event : line.opaque).rev),
        [3 * TURNS - 1, 3 * TURNS]
      )
      assert.strictEqual((yield* events.state(session_id)).rev, 3 * TURNS)
      assert.strictEqual(yield* kept(archives.archive(session_id, "operator")), "SESSION_ARCHIVED")
    }).pipe(Effect.provide(retentionWith({})))
  )

  it.effect("says what is wrong with an archive that was changed or is gone", () =>
    Effect.gen(function* () {
      const events = yield* EventStore
      const { caller } = yield* ended()
      const { path } = yield* (yield* SessionArchives).archive(caller.session_id, "operator")
      appendFileSync(path, "not gzip")
      const changed = yield* Effect.flip(events.verify(caller.session_id))
      assert.match(changed.message, /cannot be read: .*Put the file back from a copy of the home/u)
      rmSync(path)
      assert.match((yield* Effect.flip(events.verify(caller.session_id))).message, /ENOENT/u)
    }).pipe(Effect.provide(retentionWith({})))
  )

  it.effect("leaves alone a session that runs or that a person still has to decide about", () =>
    Effect.gen(function* () {
      const archives = yield* SessionArchives
      const sql = yield* SqlClient.SqlClient
      const { caller } = yield* newTalk
      assert.strictEqual(yield* kept(archives.archive(caller.session_id, "operator")), "SESSION_RUNNING")
      assert.strictEqual(yield* kept(archives.remove(caller.session_id, "operator")), "SESSION_RUNNING")
      yield* (yield* SessionStore).end(caller.session_id, "stopped")
      yield* sql`INSERT INTO choir_control.pending_approvals
        (session_id, agent_id, request_type, payload, call_id, canonical, payload_hash, summary, lane, expires_at)
        VALUES (${caller.session_id}, ${caller.agent_id}, 'confirm_tool', '{}', 'c-1', '{}', '\\x00', '', 'edge', now())`
      assert.strictEqual(yield* kept(archives.remove(caller.session_id, "operator")), "SESSION_PENDING")
      yield* sql`UPDATE choir_control.pending_approvals SET status = 'expired', resolved_at = now()`
      yield* archives.remove(caller.session_id, "operator")
      assert.strictEqual(yield* kept(archives.remove(caller.session_id, "operator")), "SESSION_DELETED")
    }).pipe(Effect.provide(retentionWith({})))
  )

  it.effect("leaves of a deleted session its id, end and date, no text, and no earlier session to go on in", () =>
    Effect.gen(function* () {
      const archives = yield* SessionArchives
      const inbox = yield* Inbox
      const sessions = yield* SessionStore
      const sql = yield* SqlClient.SqlClient
      const { home } = yield* ConfigStore
      const earlier = yield* ended()
      const { agent_id } = earlier.caller
      const { session_id } = yield* sessions.create(agent_id, BINDINGS, "0000000")
      const text = "a text to forget"
      yield* inbox.receive(message(agent_id, "one", text))
      yield* sql`UPDATE choir_control.inbox SET acked_rev = 1 WHERE agent_id = ${agent_id}`
      yield* sessions.end(session_id, "stopped")
      yield* archives.archive(session_id, "operator")
      const gone = yield* archives.remove(session_id, "operator")
      assert.deepInclude(gone, { session_id, agent_id, last_rev: 0 })
      assert.deepStrictEqual(yield* archives.deleted(session_id), Option.some(gone))
      assert.isFalse(existsSync(archivePath(home, { agent_id, session_id })))
      assert.deepStrictEqual(yield* sql`SELECT 1 FROM choir_control.inbox WHERE text = ${text}`, [])
      // The message itself is still known, should it be delivered again.
      assert.strictEqual((yield* inbox.receive(message(agent_id, "one", text))).type, "queued")
      assert.strictEqual(yield* inbox.pending(agent_id), 0)
      assert.deepStrictEqual(yield* sessions.latest(agent_id), Option.none())
      const fresh = yield* sessions.create(agent_id, BINDINGS, "0000000")
      assert.deepStrictEqual(Option.getOrThrow(yield* sessions.latest(agent_id)).session_id, fresh.session_id)
    }).pipe(Effect.provide(retentionWith({})))
  )

  it.effect(
    "keeps the file of a session that is deleted while a backup of the home runs, and deletes it afterwards",
    () =>
      Effect.gen(function* () {
        const archives = yield* SessionArchives
        const { home } = yield* ConfigStore
        const { caller } = yield* ended()
        const { path } = yield* archives.archive(caller.session_id, "operator")
        yield* Effect.gen(function* () {
          yield* holdLockFile(homeBackupLockPath(home))
          yield* archives.remove(caller.session_id, "operator")
          yield* pruned()
          assert.isTrue(existsSync(path))
          assert.isTrue(Option.isSome(yield* archives.deleted(caller.session_id)))
        }).pipe(Effect.scoped)
        yield* pruned()
        assert.isFalse(existsSync(path))
        assert.strictEqual(yield* archives.finish, 0)
      }).pipe(Effect.provide(retentionWith({})))
  )

  it.effect("is finished by a later life of choird when it was cut short", () =>
    Effect.gen(function* () {
      const archives = yield* SessionArchives
      const sql = yield* SqlClient.SqlClient
      const [one, other] = [yield* ended(), yield* ended()]
      const left = (talk: Talk) =>
        sql`SELECT 1 FROM choir_control.session_events WHERE session_id = ${talk.caller.session_id}`
      const copies = yield* sql`CREATE TABLE copies AS SELECT * FROM choir_control.session_events
        WHERE session_id IN (${one.caller.session_id}, ${other.caller.session_id})`
      assert.deepStrictEqual(copies, [])
      yield* archives.archive(one.caller.session_id, "operator")
      yield* archives.remove(other.caller.session_id, "operator")
      // As if choird had died after the session's own row was written.
      yield* sql`INSERT INTO choir_control.session_events SELECT * FROM copies`
      yield* sql`UPDATE choir_control.sessions SET archive = archive || '{"cleared": false}' WHERE session_id = ${one.caller.session_id}`
      yield* sql`UPDATE choir_control.deleted_sessions SET cleared = false WHERE session_id = ${other.caller.session_id}`
      assert.strictEqual((yield* left(one)).length + (yield* left(other)).length, 12)
      yield* pruned()
      assert.strictEqual((yield* left(one)).length + (yield* left(other)).length, 0)
      assert.isTrue((yield* (yield* EventStore).verify(one.caller.session_id)).ok)
    }).pipe(Effect.provide(retentionWith({})))
  )

  it.effect("is not in a backup of the database, which is whole without it", () =>
    Effect.gen(function* () {
      const backup = yield* Backup
      const [one, other] = [yield* ended(), yield* ended()]
      yield* (yield* SessionArchives).archive(one.caller.session_id, "operator")
      const folder = yield* temporaryFolder
      const file = join(folder, "backup.gz")
      yield* Stream.runForEach(backup.file("0.1.0"), (bytes) => Effect.sync(() => appendFileSync(file, bytes)))
      const tables: Array<string> = []
      const { broken } = yield* readBackup(file, (items) =>
        Effect.sync(() => {
          for (const item of items) if (item.type === "row") tables.push(item.text)
        })
      )
      assert.notInclude(
        broken.map(({ session_id }) => session_id),
        one.caller.session_id
      )
      const events = (talk: Talk) =>
        tables.filter((row) => row.includes(`"session_id":"${talk.caller.session_id}"`) && row.includes('"canonical"'))
          .length
      assert.deepStrictEqual([events(one), events(other)], [0, 6])
    }).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(Backup.layer, retentionWith({}))))
  )

  it.effect("keeps no half of a file, and the events where they are, when the file cannot be written", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { home } = yield* ConfigStore
      const talk = yield* ended()
      const { session_id } = talk.caller
      // The log ends before the session's row says that it does.
      yield* sql`DELETE FROM choir_control.session_events WHERE session_id = ${session_id} AND rev = 6`
      assert.strictEqual(yield* kept((yield* SessionArchives).archive(session_id, "operator")), "FILE")
      assert.deepStrictEqual(readdirSync(dirname(archivePath(home, talk.caller))), [])
      assert.strictEqual(
        (yield* sql`SELECT 1 FROM choir_control.session_events WHERE session_id = ${session_id}`).length,
        5
      )
    }).pipe(Effect.provide(retentionWith({})))
  )
})
