import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { openOperator } from "../../../support/operatorSocket.ts"

describe("the configuration over the operator's socket", () => {
  it.effect("is loaded with its steps, compared, applied and gone back to; refusals keep kind and hint", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const lines = yield* Stream.runCollect(yield* api.configuration.load())
      assert.deepStrictEqual(lines, [
        { type: "step", text: "fetch global" },
        { type: "done", result: { changes: [], repos: [], warnings: [] } }
      ])
      assert.deepStrictEqual(
        (yield* api.configuration.diff()).map(({ path }) => path),
        ["a"]
      )
      const refused = yield* Effect.flip(api.configuration.apply())
      assert.nestedInclude(refused, { "error.type": "NOTHING_STAGED", "error.hint": "choirctl config load" })
      assert.deepInclude(yield* api.configuration.rollback({ payload: { version: 1 } }), { version: 2, previous: 1 })
      const unknown = yield* Effect.flip(api.configuration.rollback({ payload: { version: 9 } }))
      assert.nestedInclude(unknown, { "error.type": "NO_SUCH_VERSION" })
      for (const version of [0, 2 ** 31, 1.5]) {
        const bad = yield* Effect.flip(api.configuration.version({ params: { version } }))
        assert.nestedInclude(bad, { "error.type": "BAD_REQUEST" })
      }
      assert.deepInclude(yield* api.configuration.version({ params: { version: 1 } }), { heartbeat_interval_ms: 5000 })
      yield* api.configuration.applySecrets()
      assert.deepStrictEqual(world.effects, ["operator loads", "operator goes back to 1", "operator applies secrets"])
    })
  )

  it.effect("shows an agent that has not taken it over as behind, and says so in the status (R58)", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      assert.notProperty((yield* api.agents.list())[0], "config_version_latest")
      world.view = { ...world.view, config_version: 0 }
      assert.deepInclude((yield* api.agents.list())[0], { config_version: 0, config_version_latest: 1 })
      assert.deepInclude(yield* api.agents.status({ params: { id: world.view.agent_id } }), {
        config_version_latest: 1
      })
      assert.include((yield* api.system.status()).warnings, "ada runs with configuration 0, the newest is 1")
      world.view = { ...world.view, status: "stopped" }
      assert.notProperty((yield* api.agents.list())[0], "config_version_latest")
    })
  )
})
