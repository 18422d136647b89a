import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Config } from "#schema/Config.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { attachFile } from "#src/choird/gateway/attachFiles.ts"
import { TRANSCRIBED_SECONDS_MAX, Transcriber } from "#src/choird/gateway/Transcriber.ts"
import { AUDIO_KEY, openAiAudioServer, wordsOf } from "../../support/audioServers.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { CONFIG } from "../../support/stores.ts"

const OPUS = Buffer.from(`OggS${"\0".repeat(24)}OpusHead and sound`, "latin1")

const configured = (stt: object, key: string) =>
  Transcriber.layer.pipe(
    Layer.provide(
      Layer.mock(ConfigStore, {
        home: "/",
        current: Effect.succeed({ version: 1, config: Schema.decodeUnknownSync(Config)({ ...CONFIG, stt }) }),
        secret: () => Effect.succeed(Redacted.make(key))
      })
    )
  )

const server = (origin: string, more: object = {}) => ({
  ears: { provider: "openai", model_id: "whisper-1", endpoint: `${origin}/v1`, secret: "ears", ...more }
})

const hear = (stt: object, key = AUDIO_KEY, seconds?: number, bytes = OPUS) =>
  Effect.flatMap(Transcriber, ({ transcribe }) => transcribe({ bytes, seconds })).pipe(
    Effect.provide(configured(stt, key))
  )

const problemOf = (stt: object, key?: string, seconds?: number, bytes?: Buffer<ArrayBuffer>) =>
  Effect.map(Effect.flip(hear(stt, key, seconds, bytes)), ({ problem }) => problem)

describe("a voice message", () => {
  it.effect("becomes its words, with the model, the seconds and the cost", () =>
    Effect.gen(function* () {
      const { asked, origin } = yield* openAiAudioServer()
      const priced = server(origin, { price_per_minute: 0.5, language: "en" })
      assert.deepStrictEqual(yield* hear(priced), {
        text: wordsOf(OPUS),
        model: "whisper-1",
        seconds: 3,
        cost_usd: 0.025
      })
      assert.include(asked[0]?.body, 'name="language"')
      // A model that tells no time is counted by the time of the message.
      const other = server(origin, { model_id: "gpt-4o-transcribe", price_per_minute: 0.6 })
      assert.deepInclude(yield* hear(other, AUDIO_KEY, 30), { seconds: 30, cost_usd: 0.3 })
      const free = yield* hear(server(origin))
      assert.isUndefined(free?.cost_usd)
      assert.isUndefined(yield* hear({}))
    })
  )

  it.effect("is not transcribed in words that say why, and never with the key", () =>
    Effect.gen(function* () {
      const echo = { status: 400, body: { error: { message: `no ${AUDIO_KEY}\nhere` } } }
      const { origin } = yield* openAiAudioServer([
        echo,
        { status: 200, body: { text: "  " } },
        { status: 200, body: {} }
      ])
      assert.strictEqual(yield* problemOf(server(origin)), "the server answered 400: no … here")
      assert.strictEqual(yield* problemOf(server(origin)), "no words were found in it")
      assert.strictEqual(yield* problemOf(server(origin)), "the server's answer has no text")
      assert.match(yield* problemOf(server(origin), "wrong"), /^the server answered 401: Incorrect API key/u)
      assert.match(yield* problemOf(server(origin, { model_id: "none" })), /^the server answered 404: The model/u)
      assert.match(yield* problemOf(server(origin), AUDIO_KEY, 1, Buffer.from("noise")), /could not be decoded/u)
      assert.strictEqual(
        yield* problemOf(server(origin), AUDIO_KEY, TRANSCRIBED_SECONDS_MAX + 1),
        "it is longer than 10 minutes"
      )
      assert.strictEqual(yield* problemOf(server("http://127.0.0.1:1")), "the server cannot be reached")
    })
  )

  it.effect("reaches the agent as a file whatever comes of its words, and the message says which", () =>
    Effect.gen(function* () {
      const { origin } = yield* openAiAudioServer()
      const workspace = yield* temporaryFolder
      const attach = Effect.fnUntraced(function* (stt: object, kind: "voice" | "audio", seconds = 3) {
        const { transcribe } = yield* Effect.provide(Transcriber, configured(stt, AUDIO_KEY))
        const file = { file_id: "f", kind, name: kind, bytes: undefined, seconds }
        return yield* attachFile(
          { file, id: `1:${kind}${seconds}` },
          workspace,
          () => Effect.succeed(OPUS),
          () => Effect.void,
          transcribe
        )
      })
      const good = yield* attach(server(origin, { price_per_minute: 0.5 }), "voice")
      assert.deepStrictEqual([good.words, good.problem], [wordsOf(OPUS), undefined])
      assert.deepStrictEqual(good.attachments[0]?.transcribed, { model: "whisper-1", seconds: 3, cost_usd: 0.025 })
      const long = yield* attach(server(origin), "voice", 4000)
      assert.strictEqual(
        long.problem,
        "The voice message has reached the agent as a file, without its words: it is longer than 10 minutes."
      )
      const silent = yield* attach({}, "voice", 5)
      const sound = yield* attach(server(origin), "audio")
      assert.match(silent.problem ?? "", /^The voice message has .*no speech-to-text server.*"stt" in config\.json\.$/u)
      assert.isUndefined(sound.problem)
      for (const { attachments, words } of [long, silent, sound]) {
        assert.isTrue(existsSync(join(workspace, attachments[0]?.path ?? "none")))
        assert.isUndefined(attachments[0]?.transcribed)
        assert.isUndefined(words)
      }
    })
  )
})
