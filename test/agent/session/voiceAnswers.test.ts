/** Answers that people hear: the text and its sound are one event, and the text goes where there is no sound. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Layer, Redacted } from "effect"
import { ResourceName, SecretName } from "#schema/Ids.ts"
import { OutsideApi } from "#src/agent/outside/OutsideApi.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { AnswerVoice } from "#src/agent/session/AnswerVoice.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { AUDIO_KEY, openAiAudioServer } from "../../support/audioServers.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { says } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, settingsOf } from "../../support/testing/TestAgent.ts"
import { temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const SECRET = SecretName.make("voice-key")

/** An agent with a voice whose model says one text, and the answer to one message. */
const talk = Effect.fnUntraced(function* (text: string, speak: boolean, key = AUDIO_KEY) {
  const { asked, origin } = yield* openAiAudioServer()
  const voice = {
    tts: {
      provider: "openai" as const,
      model_id: "tts-1",
      endpoint: `${origin}/v1`,
      secret: SECRET,
      price_per_million_characters: 15
    },
    profile: { tts: ResourceName.make("v"), voice_id: "nova", output_format: "opus_48000_64" }
  }
  const config = { ...agentConfig(), voice }
  const { root } = yield* temporaryWorkspace
  const services = yield* toolServices(root, config)
  const store = yield* Effect.provideContext(SecretStore, services)
  yield* store.replaceAll(new Map([[SECRET, Redacted.make(key)]]))
  const http = Layer.fresh(NodeHttpClient.layerUndiciOptions({ allowH2: false }))
  const api = yield* Layer.build(OutsideApi.layer.pipe(Layer.provide([http, AgentSettings.layer(settingsOf(1))])))
  const answers = AnswerVoice.layer.pipe(
    Layer.provide(Layer.merge(Layer.succeedContext(services), Layer.succeedContext(api)))
  )
  const plane = yield* makeMemoryControlPlane
  const script = () => Effect.succeed(says(text))
  yield* Effect.forkScoped(runAgent({ plane, script, voice: answers, config }))
  yield* plane.say("hello", [], speak)
  let spent = 0
  yield* plane.until((events, state) => {
    spent = state.spent.cost_usd
    return spoken(events).length === 1 && quiet(state)
  })
  const [answer] = ofType(plane.events, "AgentMessage")
  return { asked, answer: answer?.payload, spent }
})

describe("an answer to a person who wants to hear it", () => {
  it.live("has its sound beside its text, and counts what that cost", () =>
    Effect.gen(function* () {
      const { answer, spent } = yield* talk("It is **done**.", true)
      assert.deepStrictEqual([answer?.kind, answer?.text, answer?.files?.length], ["reply", "It is **done**.", 1])
      assert.strictEqual(answer?.files?.[0]?.speaks, "all")
      assert.match(answer?.files?.[0]?.path ?? "", /^\.choirtmp\/send\/answer-.*\.ogg$/u)
      assert.deepStrictEqual([answer?.cost_usd, spent], [(11 * 15) / 1e6, (11 * 15) / 1e6])
      const { answer: coded } = yield* talk("Run `ls` now", true)
      assert.strictEqual(coded?.files?.[0]?.speaks, "part")
    })
  )

  it.live("is a text alone where nobody asked to hear it, nothing can be said, or the voice service refuses", () =>
    Effect.gen(function* () {
      for (const { answer, asked } of [
        yield* talk("plain", false),
        yield* talk("```\nls\n```", true),
        yield* talk("plain", true, "wrong key")
      ]) {
        assert.isNotEmpty(answer?.text ?? "")
        assert.deepStrictEqual([answer?.files, answer?.cost_usd, asked.length < 2], [undefined, undefined, true])
      }
    })
  )
})
