import { assert, describe, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { beginLife, database, LIVE, makeAgentHome } from "../../support/choird.ts"

describe("an agent whose session has events of a later choird", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: "30 seconds" })((it) => {
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
