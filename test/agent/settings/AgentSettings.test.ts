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
})
