import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { ReceivedMark } from "#src/agent/settings/ReceivedMark.ts"
import { agentConfig, settingsOf } from "../../support/testing/TestAgent.ts"

describe("AgentSettings", () => {
  it.effect("knows of a file from a person from the moment at which choird marks it, and to the end of its run", () => {
    let isMarked = false
    return Effect.gen(function* () {
      const settings = yield* AgentSettings
      assert.deepStrictEqual(settings.situation().workspace_label, {})
      isMarked = true
      assert.deepStrictEqual(settings.situation().workspace_label, { received: true })
      isMarked = false
      yield* settings.replace(2, { ...agentConfig(), workspace_label: { written_from: ["notion"] } })
      assert.deepStrictEqual(settings.situation().workspace_label, { received: true, written_from: ["notion"] })
    }).pipe(
      Effect.provide(AgentSettings.layer(settingsOf(1))),
      Effect.provideService(ReceivedMark, () => isMarked)
    )
  })

  it.effect("looks for choird's mark only for a decision that asks where the workspace's files come from", () => {
    let looks = 0
    return Effect.gen(function* () {
      const settings = yield* AgentSettings
      const { budgets } = settings.situation()
      assert.deepStrictEqual(budgets, agentConfig().budgets)
      assert.strictEqual(looks, 0)
      assert.deepStrictEqual(settings.situation().workspace_label, {})
      assert.strictEqual(looks, 1)
    }).pipe(
      Effect.provide(AgentSettings.layer(settingsOf(1))),
      Effect.provideService(ReceivedMark, () => {
        looks += 1
        return false
      })
    )
  })
})
