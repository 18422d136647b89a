import { assert, describe, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { beginLife, database, LIVE, makeAgentHome } from "../support/choird.ts"
import { LAYER_MS_MAX } from "../support/size.ts"

describe("an agent whose session has events of a later choird", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("keeps all that an agent of a later Choir sends, then ends it, and does not start it again (D53)", () =>
      Effect.gen(function* () {
        const { agent_id, home } = yield* makeAgentHome()
        const life = yield* beginLife(home)
        const { lifecycle, views } = life
        const { session_id } = yield* lifecycle.start(agent_id, {})
        yield* life.say(agent_id, "later")
        const ended = yield* views.first((view) => view.status === "crashed")
        assert.match(
          ended.reason ?? "",
          /from revision 4 on \(PlanCommitted, version 2\); a later Choir wrote them; run /u
        )
        yield* life.told(agent_id, /^1: later$/u)
        yield* life.told(agent_id, /stopped working: the session .* holds events/u)
        const store = yield* life.within(EventStore)
        const verified = yield* store.verify(session_id!)
        assert.deepInclude(verified, { ok: true, events: 4, newer: { rev: 4, v: 2, event_type: "PlanCommitted" } })
        const sessions = yield* life.within(SessionStore)
        const row = Option.getOrThrow(yield* sessions.get(session_id!))
        assert.deepInclude(row, { status: "crashed", epoch: 1, last_rev: 4, frozen_reason: null })
        assert.strictEqual((yield* Effect.flip(lifecycle.start(agent_id, {}))).kind, "NEWER_EVENTS")
      })
    )

    it.effect("does not run a session that a later choird went on with, and leaves it to that one (D53)", () =>
      Effect.gen(function* () {
        const { agent_id, home } = yield* makeAgentHome()
        const life = yield* beginLife(home)
        const { lifecycle, views } = life
        const session = life
          .within(Effect.flatMap(SessionStore, (sessions) => sessions.latest(agent_id)))
          .pipe(Effect.map(Option.getOrThrow))
        yield* lifecycle.start(agent_id, {})
        yield* life.say(agent_id, "hello")
        yield* life.told(agent_id, /hello/u)
        yield* lifecycle.stop(agent_id)
        yield* views.first((view) => view.status === "stopped")
        const { session_id } = yield* session
        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE choir_control.session_events SET v = 3 WHERE session_id = ${session_id} AND rev = 2`
        yield* sql`UPDATE choir_control.sessions SET choird_version = '9.1.0' WHERE session_id = ${session_id}`
        const refused = yield* Effect.flip(lifecycle.start(agent_id, {}))
        assert.strictEqual(refused.kind, "NEWER_EVENTS")
        assert.include(refused.message, "from revision 2 on (ModelOutput, version 3); choird 9.1.0 ran it last")
        assert.match(refused.hint, /^run choird 9\.1\.0 or later; .*--fresh/u)
        assert.deepInclude(yield* session, { session_id, status: "stopped", frozen_reason: null })
        assert.notStrictEqual((yield* lifecycle.start(agent_id, { fresh: true })).session_id, session_id)
      })
    )
  })
})
