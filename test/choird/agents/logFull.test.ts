import { assert, describe, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import type { SessionId } from "#schema/Ids.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { beginLife, database, LIVE, makeAgentHome } from "../../support/choird.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

const LIMIT_BYTES = 4096 * 1024 ** 2

const setUp = Effect.gen(function* () {
  const { agent_id, home } = yield* makeAgentHome()
  const life = yield* beginLife(home)
  const { session_id } = yield* life.lifecycle.start(agent_id, {})
  yield* life.say(agent_id, "hello")
  yield* life.told(agent_id, /^1: hello$/u)
  const sql = yield* SqlClient.SqlClient
  const held = (log_bytes: number) =>
    sql`UPDATE choir_control.sessions SET log_bytes = ${log_bytes} WHERE session_id = ${session_id}`
  const sessions = yield* life.within(SessionStore)
  const row = Effect.map(sessions.get(session_id as SessionId), Option.getOrThrow)
  return { agent_id, held, life, row, session_id }
})

describe("an agent whose session's log is at its limit", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("ends with all that it committed, tells its person, and begins a new session at the next start", () =>
      Effect.gen(function* () {
        const { agent_id, held, life, row, session_id } = yield* setUp
        yield* held(LIMIT_BYTES)
        const ended = yield* life.views.first((view) => view.status === "crashed")
        assert.match(
          ended.reason ?? "",
          /4\.0 GiB of events \(LOG_FULL, retention\.session_mb\); the next start begins/u
        )
        yield* life.told(agent_id, /stopped working: its session has reached its 4\.0 GiB of events/u)
        const { epoch, frozen_reason, last_rev, status } = yield* row
        assert.deepStrictEqual({ epoch, frozen_reason, status }, { epoch: 1, frozen_reason: null, status: "crashed" })
        const store = yield* life.within(EventStore)
        assert.deepInclude(yield* store.verify(session_id as SessionId), { ok: true, events: last_rev })
        assert.notStrictEqual((yield* life.lifecycle.start(agent_id, {})).session_id, session_id)
        yield* life.say(agent_id, "again")
        yield* life.told(agent_id, /^1: again$/u)
      })
    )

    it.effect("is resumed as before while its log is below the limit", () =>
      Effect.gen(function* () {
        const { agent_id, held, life, session_id } = yield* setUp
        yield* life.lifecycle.stop(agent_id)
        yield* held(LIMIT_BYTES - 1024 ** 2)
        assert.strictEqual((yield* life.lifecycle.start(agent_id, {})).session_id, session_id)
      })
    )
  })
})
