/** The agents that choird lists. */
import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { beginLife, database, LIVE, makeAgentHome } from "../../support/choird.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

describe("the list of agents", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("has an agent that config.json no longer has only while it runs", () =>
      Effect.gen(function* () {
        const { agent_id, home } = yield* makeAgentHome()
        const { lifecycle, within } = yield* beginLife(home)
        yield* lifecycle.start(agent_id, {})
        const store = yield* within(ConfigStore)
        const { config } = yield* store.current
        const listed = Effect.gen(function* () {
          yield* store.replace({ version: 2, config: { ...config, agents: {} } })
          const names = (yield* lifecycle.list).map((view) => view.agent_id)
          yield* store.replace({ version: 3, config })
          return names
        })
        assert.deepStrictEqual(yield* listed, [agent_id])
        yield* lifecycle.stop(agent_id)
        assert.deepStrictEqual(yield* listed, [])
      })
    )
  })
})
