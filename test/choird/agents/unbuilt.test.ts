/** An agent that was running and has no image when choird starts, as in a home that was just restored. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { beginLife, database, LIVE, makeAgentHome } from "../../support/choird.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

const leases = (agent_id: AgentId) =>
  Effect.map(
    Effect.flatMap(Leases, ({ all }) => all),
    (all) => all.filter((lease) => lease.agent_id === agent_id)
  )

describe("an agent without an image", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("leaves an agent whose images are gone stopped at the next start of choird, and tells nobody", () =>
      Effect.gen(function* () {
        const { agent_id, home } = yield* makeAgentHome()
        const life = yield* beginLife(home)
        yield* life.lifecycle.start(agent_id, {})
        yield* Scope.close(life.scope, Exit.void)
        rmSync(join(home, "images"), { recursive: true })
        const next = yield* beginLife(home)
        yield* next.lifecycle.recover
        const left = yield* next.views.first((view) => view.status === "stopped" || view.status === "crashed")
        assert.deepInclude(left, {
          status: "stopped",
          reason: `${agent_id} has no image yet: run choirctl agent build ${agent_id}`
        })
        assert.deepStrictEqual(yield* next.within(leases(agent_id)), [])
        const told = yield* next.within(
          Effect.flatMap(
            SqlClient.SqlClient,
            (sql) => sql`SELECT text FROM choir_control.outbox WHERE agent_id = ${agent_id} AND source = 'choird'`
          )
        )
        assert.deepStrictEqual(told, [])
      })
    )
  })
})
