import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { SecretName, ResourceName } from "#schema/Ids.ts"
import { OutsideApi } from "#src/agent/outside/OutsideApi.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { ttsSpeak } from "#src/agent/tools/ttsSpeak.ts"
import { AUDIO_KEY, elevenLabsServer, openAiAudioServer, soundOf } from "../../support/audioServers.ts"
import { agentConfig, settingsOf } from "../../support/testing/TestAgent.ts"
import { callIdOf, laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

type Voice = NonNullable<AgentConfig["voice"]>

const SECRET = SecretName.make("voice-key")

const voiceAt = (
  endpoint: string,
  tts: Partial<Voice["tts"]> = {},
  profile: Partial<Voice["profile"]> = {}
): Voice => ({
  tts: { provider: "elevenlabs", model_id: "eleven_multilingual_v2", endpoint, secret: SECRET, ...tts },
  profile: { tts: ResourceName.make("voice"), voice_id: "calm-voice", output_format: "opus_48000_64", ...profile }
})

const openVoice = (endpoint: string, profile: Partial<Voice["profile"]> = {}) =>
  voiceAt(endpoint, { provider: "openai", model_id: "tts-1" }, { voice_id: "nova", ...profile })

const speaker = Effect.fnUntraced(function* (voice: Voice, key = AUDIO_KEY) {
  const { root } = yield* temporaryWorkspace
  const services = yield* toolServices(root, { ...agentConfig(), voice })
  const store = yield* Effect.provideContext(SecretStore, services)
  yield* store.replaceAll(new Map([[SECRET, Redacted.make(key)]]))
  const api = OutsideApi.layer.pipe(
    Layer.provide([
      Layer.fresh(NodeHttpClient.layerUndiciOptions({ allowH2: false })),
      AgentSettings.layer(settingsOf(1))
    ])
  )
  const tool = yield* ttsSpeak.pipe(Effect.provideContext(services), Effect.provideContext(yield* Layer.build(api)))
  const run = Effect.fnUntraced(function* (text: string) {
    return yield* (yield* tool.prepare({ text })).run(laneThatSaw())
  })
  return { root, run, tool }
})

describe("choir.tts.speak", () => {
  it.effect("says a text by ElevenLabs in the bound voice, as a file that goes to the user, and counts its cost", () =>
    Effect.gen(function* () {
      const { asked, origin } = yield* elevenLabsServer()
      const voice_settings = { stability: 0.5, similarity_boost: 0.75, style: 0, use_speaker_boost: true, speed: 1 }
      const { root, run } = yield* speaker(
        voiceAt(`${origin}/v1/`, { price_per_million_characters: 200 }, { voice_settings })
      )
      const { cost_usd, notes, output, sends, status, summary } = yield* run("Hello there")
      assert.deepStrictEqual([status, summary], ["success", "said to the user: 11 characters"])
      assert.deepStrictEqual([cost_usd, output, notes], [0.0022, undefined, undefined])
      assert.strictEqual(sends?.files[0]?.path, `.choirtmp/send/voice-${callIdOf("s-1-1-0")}.ogg`)
      assert.isTrue(readFileSync(join(root, sends?.files[0]?.path ?? "")).equals(soundOf("opus", "Hello there")))
      assert.strictEqual(asked[0]?.url.searchParams.get("output_format"), "opus_48000_64")
      assert.deepStrictEqual(JSON.parse(asked[0]?.body ?? ""), {
        text: "Hello there",
        model_id: "eleven_multilingual_v2",
        voice_settings
      })
    })
  )

  it.effect("says a text by a server with OpenAI's API, with or without a key", () =>
    Effect.gen(function* () {
      const { asked, origin } = yield* openAiAudioServer()
      const { root, run } = yield* speaker(
        openVoice(`${origin}/v1`, { output_format: "mp3_44100_128", voice_settings: { speed: 1.5 } })
      )
      const { cost_usd, sends } = yield* run("Hi")
      assert.isUndefined(cost_usd)
      assert.match(sends?.files[0]?.path ?? "", /\.mp3$/u)
      assert.isTrue(readFileSync(join(root, sends?.files[0]?.path ?? "")).equals(soundOf("mp3", "Hi")))
      assert.deepStrictEqual(JSON.parse(asked[0]?.body ?? ""), {
        model: "tts-1",
        input: "Hi",
        voice: "nova",
        response_format: "mp3",
        speed: 1.5
      })
      const { secret: _, ...keyless } = openVoice(`${origin}/v1`).tts
      const open = yield* speaker({ ...openVoice(`${origin}/v1`), tts: keyless })
      assert.match((yield* open.run("Hi")).summary, /answered 401/u)
      assert.isUndefined(asked.at(-1)?.headers.authorization)
    })
  )

  it.effect("waits out a short limit, and is an error in the service's words otherwise, without the key", () =>
    Effect.gen(function* () {
      const limited = { status: 429, headers: { "retry-after": "0" }, body: { detail: { message: "busy" } } }
      const { asked, origin } = yield* elevenLabsServer([limited])
      const voice = voiceAt(`${origin}/v1`)
      assert.strictEqual((yield* (yield* speaker(voice)).run("one")).status, "success")
      assert.lengthOf(asked, 2)
      const refused = Effect.fnUntraced(function* (changed: Voice, key?: string) {
        const { sends, status, summary } = yield* (yield* speaker(changed, key)).run("two")
        assert.deepStrictEqual([status, sends], ["error", undefined])
        assert.notInclude(summary, AUDIO_KEY)
        return summary
      })
      assert.match(yield* refused(voice, "wrong"), /answered 401 .*Invalid API key/u)
      assert.match(yield* refused(voiceAt(`${origin}/v1`, {}, { voice_id: "../x" })), /answered 404/u)
      assert.match(yield* refused(voiceAt(`${origin}/v1`, {}, { output_format: "opus" })), /Invalid output format/u)
      assert.match(yield* refused(voiceAt(`${origin}/v1`, { model_id: "none" })), /model ID none does not exist/u)
      assert.match(yield* refused(voiceAt("http://127.0.0.1:1")), /did not answer/u)
    })
  )

  it.effect("refuses a text without words or over 4,096 characters before anybody is asked", () =>
    Effect.gen(function* () {
      const { asked, origin } = yield* elevenLabsServer()
      const { run } = yield* speaker(voiceAt(`${origin}/v1`))
      for (const text of ["", "  \n", "a".repeat(4097)])
        assert.strictEqual((yield* Effect.exit(run(text)))._tag, "Failure", text.slice(0, 5))
      assert.lengthOf(asked, 0)
    })
  )
})
