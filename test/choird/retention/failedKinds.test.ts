/** Retention of which one kind, or one session, cannot be removed. */
import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Retention } from "#src/choird/retention/Retention.ts"
import { SessionArchives } from "#src/choird/retention/SessionArchives.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { describeStores } from "../../support/engines.ts"
import { endedBefore, pruned, retentionWith } from "../../support/retention.ts"
import { BINDINGS, message, newTalk } from "../../support/stores.ts"

/** A message that a session has answered. */
const conversation = Effect.gen(function* () {
  const talk = yield* newTalk
  const received = yield* (yield* Inbox).receive(message(talk.caller.agent_id, "first", "the text"))
  if (received.type === "full") return yield* Effect.die("full")
  talk.turn(received.inbox_id)
  yield* (yield* EventStore).append(talk.caller, talk.heartbeat(0))
  return talk
})

/** A session that was archived, as one that has this size. */
const archivedWith = Effect.fnUntraced(function* (bytes: string) {
  const sql = yield* SqlClient.SqlClient
  const { agent_id, session_id } = (yield* conversation).caller
  yield* endedBefore(session_id, 100)
  yield* (yield* SessionStore).create(agent_id, BINDINGS, "0000000")
  assert.deepInclude(yield* pruned(), { sessions: 1 })
  yield* sql`UPDATE choir_control.sessions SET archive = jsonb_set(archive, '{bytes}', ${bytes}::text::jsonb)
    WHERE session_id = ${session_id}`
  return session_id
})

describeStores("Retention where one kind fails", (it) => {
  it.effect("deletes archives of more than 2 GiB", () =>
    Effect.gen(function* () {
      const session_id = yield* archivedWith(String(3 * 1024 ** 3))
      const { kinds } = yield* (yield* Retention).prune({ dry_run: false, who: "operator" })
      const archives = kinds.find(({ kind }) => kind === "archives")
      assert.deepStrictEqual(archives, { kind: "archives", removed: 1, bytes: 3 * 1024 ** 3 })
      assert.isTrue(Option.isSome(yield* (yield* SessionArchives).deleted(session_id)))
    }).pipe(Effect.provide(retentionWith({ sessions_days: 5, archives_mb: 1024 })))
  )

  it.effect("removes all other kinds, says which one stays and why, and no longer once it goes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const retention = yield* Retention
      const session_id = yield* archivedWith('"many"')
      yield* conversation
      yield* sql`UPDATE choir_control.inbox SET created_at = now() - interval '8 days'`
      const { kinds } = yield* retention.prune({ dry_run: false, who: "operator" })
      const failed = kinds.filter(({ problem }) => problem !== undefined)
      assert.deepStrictEqual(
        failed.map(({ kind, removed }) => [kind, removed]),
        [["archives", 0]]
      )
      const why = /^invalid input syntax for type .*"many"; the log of choird says why under ref [0-9a-f]{8}$/u
      assert.match(failed[0]?.problem ?? "", why)
      assert.isAbove(kinds.find(({ kind }) => kind === "messages")?.removed ?? 0, 0)
      assert.deepStrictEqual(
        (yield* retention.problems).map((problem) => problem.split(":")[0]),
        ["archives"]
      )
      yield* sql`UPDATE choir_control.sessions SET archive = jsonb_set(archive, '{bytes}', '5') WHERE session_id = ${session_id}`
      yield* pruned()
      assert.deepStrictEqual(yield* retention.problems, [])
    }).pipe(Effect.provide(retentionWith({ sessions_days: 5, messages_days: 7, archives_mb: 1024 })))
  )

  it.effect("archives the other sessions where one cannot be", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const retention = yield* Retention
      const ended = yield* Effect.forEach([102, 101], (days) =>
        Effect.gen(function* () {
          const { agent_id, session_id } = (yield* conversation).caller
          yield* endedBefore(session_id, days)
          yield* (yield* SessionStore).create(agent_id, BINDINGS, "0000000")
          return session_id
        })
      )
      yield* sql.unsafe(`CREATE FUNCTION choir_control.stays() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF NEW.archive IS NOT NULL AND NEW.session_id = '${ended[0]}' THEN RAISE EXCEPTION 'it stays'; END IF; RETURN NEW; END $$`)
      yield* sql`CREATE TRIGGER stays BEFORE UPDATE ON choir_control.sessions FOR EACH ROW EXECUTE FUNCTION choir_control.stays()`
      yield* Effect.addFinalizer(() => Effect.orDie(sql`DROP FUNCTION choir_control.stays() CASCADE`))
      const { kinds } = yield* retention.prune({ dry_run: false, who: "operator" })
      const [sessions] = kinds
      assert.strictEqual(sessions?.removed, 1)
      assert.match(sessions?.problem ?? "", new RegExp(`^${ended[0]}: it stays; `, "u"))
    }).pipe(Effect.provide(retentionWith({ sessions_days: 5 })))
  )
})
