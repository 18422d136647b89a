import { statSync } from "node:fs"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Result, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { SessionId } from "#schema/Ids.ts"
import { jsonText } from "#src/choirctl/terminal/text.ts"
import { printedEvent } from "#src/choirctl/render/printedEvent.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { SessionArchives } from "#src/choird/retention/SessionArchives.ts"
import { archivePath } from "#src/choird/sessions/archivedLog.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { verifiedByDocs } from "../../support/documentedVerifier.ts"
import { describeStores } from "../../support/engines.ts"
import { retentionWith } from "../../support/retention.ts"
import { addNewer, forgets, LATER, PLAN, reduce, storeVersion1 } from "../../support/storedVersions.ts"
import { newTalk, type Talk } from "../../support/stores.ts"

const TEXT = "My pin is 4711."

const append = Effect.fnUntraced(function* (talk: Talk, from: number) {
  assert.strictEqual((yield* (yield* EventStore).append(talk.caller, talk.heartbeat(from))).action, "OK")
})
const end = (talk: Talk) => Effect.flatMap(SessionStore, (sessions) => sessions.end(talk.caller.session_id, "stopped"))

/** Three events of version 1, then of version 2, of which two were reduced, then of a later Choir. */
const everyForm = Effect.gen(function* () {
  const talk = (yield* newTalk).turn(1)
  yield* storeVersion1(talk)
  yield* append(talk.turn(2, TEXT), 3)
  yield* append(talk.commit(forgets(talk, 5, 6)), 6)
  assert.strictEqual(yield* reduce(talk.caller.session_id, 5, 6), 2)
  yield* addNewer(talk, PLAN, LATER)
  yield* end(talk)
  return talk
})

/** What an operator sees of a session: its events, its proof, and its state or why it is not known. */
const seen = Effect.fnUntraced(function* (session_id: SessionId) {
  const events = yield* EventStore
  const read = (options: { readonly from?: number; readonly last?: number }) =>
    Stream.runCollect(events.events(session_id, { ...options, follow: false }))
  return {
    all: yield* read({}),
    last: yield* read({ last: 3 }),
    verified: yield* events.verify(session_id),
    state: Result.mapError(yield* Effect.result(events.state(session_id)), ({ message }) => message)
  }
})

describeStores("an archive", (it) => {
  it.effect("has events of version 1, reduced ones and those of a later Choir as the table had them", () =>
    Effect.gen(function* () {
      const talk = yield* everyForm
      const { session_id } = talk.caller
      const before = yield* seen(session_id)
      const newer = { rev: 8, v: 2, event_type: "PlanCommitted" }
      assert.deepStrictEqual(before.verified, { ok: true, events: 9, head: talk.hash(9), forgotten: 2, newer })
      yield* (yield* SessionArchives).archive(session_id, "operator")
      assert.deepStrictEqual(yield* seen(session_id), before)
      const lines = before.all.map((line) => jsonText(printedEvent(line)))
      assert.strictEqual(verifiedByDocs(session_id, lines), `9 events, head ${talk.hash(9)}, 2 payloads reduced`)
      assert.notInclude(lines.join("\n"), TEXT)
    }).pipe(Effect.provide(retentionWith({})))
  )

  it.effect("is where nothing is reduced any more", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const talk = yield* newTalk
      const { session_id } = talk.caller
      yield* append(talk.turn(1, TEXT), 0)
      yield* append(talk.commit(forgets(talk, 2, 3)), 3)
      yield* end(talk)
      yield* sql`CREATE TABLE kept AS SELECT * FROM choir_control.session_events WHERE session_id = ${session_id}`
      yield* (yield* SessionArchives).archive(session_id, "operator")
      // As if choird had died before the rows were removed.
      yield* sql`INSERT INTO choir_control.session_events SELECT * FROM kept`
      const { verify } = yield* EventStore
      const { message } = yield* Effect.flip(reduce(session_id, 2, 3))
      assert.strictEqual(message, "event 2 is not reduced: its session is archived")
      assert.deepStrictEqual(yield* verify(session_id), { ok: true, events: 4, head: talk.hash(4) })
    }).pipe(Effect.provide(retentionWith({})))
  )

  it.effect("has no text that was forgotten while its file was written", () =>
    Effect.gen(function* () {
      const archives = yield* SessionArchives
      const { home } = yield* ConfigStore
      const talk = yield* newTalk
      const { session_id } = talk.caller
      for (let turn = 1; turn <= 700; turn += 1) talk.turn(turn, turn === 1 ? TEXT : "done")
      yield* append(talk, 0)
      yield* append(talk.commit(forgets(talk, 2, 3)), 2100)
      yield* end(talk)
      const archive = yield* Effect.forkChild(Effect.result(archives.archive(session_id, "operator")))
      const part = `${archivePath(home, talk.caller)}.part`
      const begun = () => (statSync(part, { throwIfNoEntry: false })?.size ?? 0) > 0
      while (!begun()) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      // The page with the text is in the file. Whichever comes first, the other is refused.
      const forgotten = yield* Effect.result(reduce(session_id, 2, 3))
      const archived = yield* Fiber.join(archive)
      assert.notStrictEqual(Result.isSuccess(forgotten), Result.isSuccess(archived))
      if (Result.isSuccess(forgotten)) yield* archives.archive(session_id, "operator")
      const { all, verified } = yield* seen(session_id)
      assert.strictEqual(JSON.stringify(all).includes(TEXT), Result.isFailure(forgotten))
      assert.deepStrictEqual([verified.ok, verified.forgotten], [true, Result.isSuccess(forgotten) ? 2 : undefined])
    }).pipe(Effect.provide(retentionWith({})))
  )
})
