import { assert } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { Audit } from "#src/choird/logs/Audit.ts"
import { AUDIT_DETAIL_BYTES_MAX } from "#src/shared/limits.ts"
import { describeEngines } from "../../support/engines.ts"
import { newTalk, stores } from "../../support/stores.ts"

describeEngines("Audit", (it) => {
  const rowsOf = (who: string) =>
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql`SELECT action, session_id, agent_id, detail FROM choir_control.audit WHERE who = ${who} ORDER BY id`
    )

  it.effect("keeps a row for each entry, storable and bounded (R77)", () =>
    Effect.gen(function* () {
      const audit = yield* Audit
      const { agent_id, session_id } = (yield* newTalk).caller
      const who = `agent:${agent_id}`
      yield* audit.record({ who, action: "rpc.HEARTBEAT", agent_id, session_id, detail: { why: "a\0b\uD800" } })
      yield* audit.record({ who, action: "rpc.HEARTBEAT", detail: "x".repeat(AUDIT_DETAIL_BYTES_MAX) })
      assert.deepStrictEqual(yield* rowsOf(who), [
        { action: "rpc.HEARTBEAT", session_id, agent_id, detail: { why: "a\uFFFDb\uFFFD" } },
        {
          action: "rpc.HEARTBEAT",
          session_id: null,
          agent_id: null,
          detail: { left_out_bytes: AUDIT_DETAIL_BYTES_MAX + 2 }
        }
      ])
    }).pipe(Effect.provide(stores))
  )

  it.effect("logs what it could not write, and stops nothing", () =>
    Effect.gen(function* () {
      const logged: Array<unknown> = []
      const logger = Logger.make(({ message }) => logged.push(message))
      const audit = yield* Audit
      yield* audit
        .record({ who: "operator", action: "config.apply", detail: { value: Number.NaN } })
        .pipe(Effect.provide(Logger.layer([logger])))
      assert.deepStrictEqual(logged, [["an audit row was not written", { who: "operator", action: "config.apply" }]])
    }).pipe(Effect.provide(Layer.fresh(stores)))
  )
})
