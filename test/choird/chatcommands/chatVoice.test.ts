import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { Config } from "#schema/Config.ts"
import { AgentRefused } from "#src/choird/agents/AgentRefused.ts"
import { type ModelChoice, Models } from "#src/choird/agents/Models.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { ChatSettings, type VoiceMode } from "#src/choird/chatcommands/ChatSettings.ts"
import { makeChatVoice } from "#src/choird/chatcommands/chatVoice.ts"
import { readCommand } from "#src/choird/chatcommands/readCommand.ts"
import { CONFIG, PHONE } from "../../support/stores.ts"

const AGENT = AgentId.make("helper")
const name = ResourceName.make

const setUp = (bound: boolean) => {
  const tts = { v: { provider: "openai", model_id: "m", endpoint: "http://localhost:1" } }
  const voice_profiles = { calm: { tts: "v", voice_id: "nova" } }
  const config = Schema.decodeUnknownSync(Config)({ ...CONFIG, tts, voice_profiles })
  const modes = new Map<string, VoiceMode>()
  const set: Array<ModelChoice> = []
  const models = {
    agent_id: AGENT,
    llm: name("small"),
    core_llm: name("small"),
    default_llm: name("small"),
    default_core_llm: name("small"),
    voice_profile: bound ? name("calm") : null,
    in_use: true
  }
  const services = Layer.mergeAll(
    Layer.mock(ConfigStore, { home: "/", current: Effect.succeed({ version: 1, config }) }),
    Layer.mock(ChatSettings, {
      voice: (dm) => Effect.sync(() => modes.get(dm) ?? "off"),
      setVoice: (dm, mode) => Effect.sync(() => void modes.set(dm, mode))
    }),
    Layer.mock(Models, {
      get: () => Effect.succeed(models),
      set: (_, __, choice) =>
        choice.voice_profile === "calm"
          ? Effect.sync(() => {
              set.push(choice)
              return models
            })
          : new AgentRefused({
              kind: "NOT_READY",
              agent_id: AGENT,
              reason: "there is no such voice",
              hint: "choirctl voice list"
            })
    })
  )
  const say = Effect.fnUntraced(function* (text: string) {
    const read = readCommand(text, false)
    const run = yield* makeChatVoice
    const { command } = read?.type === "command" ? read : assert.fail(`${text} is no command`)
    if (command.type !== "voice" && command.type !== "voice mode" && command.type !== "set voice")
      return assert.fail(text)
    const speaker = { agent_id: AGENT, gateway: name("bot"), dm: PHONE, writer: PHONE, request_id: "1", admin: false }
    return (yield* run(command, speaker)).text
  }, Effect.provide(services))
  return { modes, set, say }
}

describe("/voice", () => {
  it.effect("shows what a chat hears, and switches it and the voice", () =>
    Effect.gen(function* () {
      const { modes, say, set } = setUp(true)
      assert.strictEqual(yield* say("/voice"), "Answers come as texts. The agent speaks as calm.")
      assert.strictEqual(yield* say("/voice mirror"), "Answers to voice messages come as voice notes.")
      assert.strictEqual(modes.get(PHONE), "mirror")
      assert.strictEqual(yield* say("/voice ON"), "All answers come as voice notes.")
      assert.match(yield* say("/voice"), /^All answers come as voice notes\. /u)
      assert.match(yield* say("/voice calm"), /speaks as calm from now on/u)
      assert.deepStrictEqual(set, [{ voice_profile: name("calm") }])
      assert.strictEqual(yield* say("/voice none"), "There is no such voice. On the host: choirctl voice list")
      assert.strictEqual(yield* say("/voice off"), "Answers come as texts.")
    })
  )

  it.effect("says which voices there are where the agent has none", () =>
    Effect.gen(function* () {
      const { modes, say } = setUp(false)
      assert.strictEqual(yield* say("/voice on"), "The agent has no voice yet. Send /voice and one of: calm")
      assert.strictEqual(modes.size, 0)
      assert.match(yield* say("/voice"), /^Answers come as texts\. The agent has no voice yet\./u)
    })
  )
})
