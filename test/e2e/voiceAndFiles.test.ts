/** Voice messages, voice notes and files of a whole Choir at Telegram, whose choird is killed in between. */
import { existsSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SILENCE } from "../support/answeringServer.ts"
import { AUDIO_KEY, openAiAudioServer, soundOf, wordsOf } from "../support/audioServers.ts"
import { botConfig } from "../support/botConfig.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { arrivedFiles } from "../support/outgoingWorld.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { answer, callTools, makeProvider } from "../support/testing/Provider.ts"
import { makeTelegram } from "../support/testing/Telegram.ts"
import * as fault from "../support/testing/TelegramFaults.ts"

const USER = 4711
const TOKEN = "1000:secret"
const OPUS = Buffer.from(`OggS${"\0".repeat(24)}OpusHead and a question`, "latin1")

/** An agent with ears and a voice, bound to a person at Telegram. */
const setUpWith = Effect.fnUntraced(function* (...first: Parameters<typeof openAiAudioServer>) {
  const provider = yield* makeProvider
  const audio = yield* openAiAudioServer(...first)
  const telegram = yield* makeTelegram
  const bot = telegram.bot(TOKEN)
  const service = { provider: "openai", endpoint: `${audio.origin}/v1`, secret: "audio" }
  const choir = yield* makeTestInstallation({
    endpoint: provider.endpoint,
    secrets: { "bot-token": TOKEN, audio: AUDIO_KEY },
    config: {
      ...botConfig(telegram.url, { phone: { user_id: String(USER) } }),
      stt: { ears: { ...service, model_id: "whisper-1", price_per_minute: 0.5 } },
      tts: { mouth: { ...service, model_id: "tts-1", price_per_million_characters: 15 } },
      voice_profiles: { calm: { tts: "mouth", voice_id: "nova", output_format: "opus_48000_64" } }
    }
  })
  const choird = yield* choir.start
  yield* choir.build
  const payload = { dm: "phone" as never, voice_profile: "calm" as never }
  const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload })
  return { ...choir, audio, bot, choird, provider, session_id: session_id as never }
})

class Choir extends Context.Service<Choir, Effect.Success<ReturnType<typeof setUpWith>>>()("choir/test/Talking") {
  static readonly layer = Layer.effect(Choir, setUpWith())
}

layer(Choir.layer, { excludeTestServices: true, timeout: LAYER_MS_MAX })("a person who talks and gets files", (it) => {
  it.effect("is heard, is answered by voice after /voice mirror, and pays for both", () =>
    Effect.gen(function* () {
      const { bot, events, provider, session_id } = yield* Choir
      yield* provider.script(answer("I heard you."), answer("It is done."))
      yield* bot.file(USER, "voice", { name: "v.ogg", mime: "audio/ogg", bytes: OPUS })
      yield* bot.sent.first(({ text }) => text === "I heard you.")
      yield* bot.text(USER, "/voice mirror")
      yield* bot.sent.first(({ text }) => text?.includes("Answers to voice messages come as voice notes.") === true)
      yield* bot.file(USER, "voice", { name: "v.ogg", mime: "audio/ogg", bytes: OPUS })
      yield* bot.sent.first(({ voice }) => voice !== undefined)
      const [note] = yield* arrivedFiles(bot)
      assert.isTrue(note?.bytes.equals(soundOf("opus", "It is done.")))
      const history = (yield* events(session_id)).map(({ event }) => event)
      const heard = history.flatMap((event) => (event.event_type === "UserMsg" ? [event.payload] : []))
      assert.deepStrictEqual(
        heard.map(({ cost_usd, speak, text }) => [text, cost_usd, speak]),
        [
          [wordsOf(OPUS), 0.025, undefined],
          [wordsOf(OPUS), 0.025, true]
        ]
      )
      assert.deepStrictEqual(
        heard.map(({ attachments: [file] }) => [file?.transcribed?.model, file?.transcribed?.seconds]),
        [
          ["whisper-1", 3],
          ["whisper-1", 3]
        ]
      )
      const said = history.flatMap((event) => (event.event_type === "AgentMessage" ? [event.payload.cost_usd] : []))
      assert.deepStrictEqual(said, [undefined, (11 * 15) / 1e6])
      const [asked] = (yield* provider.requests.all).map(({ body }) => JSON.stringify(body))
      assert.include(asked, "was transcribed from it")
    })
  )

  it.effect("gets a file once, as its tool left it, although choird is killed while Telegram is away (R43)", () =>
    Effect.gen(function* () {
      const installation = yield* Choir
      const { bot, home, provider, workspace } = installation
      yield* bot.fail("sendDocument", fault.serverError, 2)
      yield* provider.script(
        callTools([
          { name: "choir-exec", input: { command: "printf one > .choirtmp/send/a.bin; echo .choirtmp/send/a.bin" } }
        ])
      )
      // The agent that dies with choird may have asked already; its successor asks again.
      yield* provider.otherwise(() => answer("sent"))
      yield* bot.text(USER, "make it")
      yield* bot.calls.first(({ method }) => method === "sendDocument")
      yield* installation.choird.signal("SIGKILL")
      yield* installation.choird.exited
      if (existsSync(join(workspace, ".choirtmp/send"))) writeFileSync(join(workspace, ".choirtmp/send/a.bin"), "two")
      yield* installation.start
      yield* bot.sent.first(({ document }) => document !== undefined)
      yield* bot.sent.first(({ text }) => text === "sent")
      const files = (yield* arrivedFiles(bot)).filter(({ kind }) => kind === "document")
      assert.deepStrictEqual(
        files.map(({ bytes, name }) => [name, bytes.toString()]),
        [["a.bin", "one"]]
      )
      yield* Effect.repeat(
        Effect.sync(() => readdirSync(join(home, "outgoing")).length),
        { until: (left) => left === 0 }
      )
    })
  )
})

describe("a person who talks while choird dies", () => {
  it.live(
    "is heard once although choird is killed while it listens, and answered although it is killed while it speaks (R42, R43)",
    () =>
      Effect.gen(function* () {
        const heard = { status: 200, body: { text: "good morning", usage: { type: "duration", seconds: 3 } } }
        const installation = yield* setUpWith([SILENCE, heard, SILENCE])
        const { audio, bot, events, provider, session_id } = installation
        /** Kills choird when the audio server was asked so often, and starts it again. */
        const killedAt = Effect.fnUntraced(function* (count: number, choird: typeof installation.choird) {
          yield* Effect.repeat(Effect.sleep("20 millis"), { until: () => audio.asked.length === count })
          yield* choird.signal("SIGKILL")
          yield* choird.exited
          return yield* installation.start
        })
        yield* provider.script(answer("I heard you."))
        // The agent that dies with choird asks again.
        yield* provider.otherwise(() => answer("It is done."))
        yield* bot.file(USER, "voice", { name: "v.ogg", mime: "audio/ogg", bytes: OPUS })
        const second = yield* killedAt(1, installation.choird)
        yield* bot.sent.first(({ text }) => text === "I heard you.")
        yield* bot.text(USER, "/voice on")
        yield* bot.sent.first(({ text }) => text?.includes("All answers come as voice notes.") === true)
        yield* bot.text(USER, "do it")
        yield* killedAt(3, second)
        yield* bot.sent.first(({ text, voice }) => voice !== undefined || text === "It is done.")
        const history = (yield* events(session_id)).map(({ event }) => event)
        assert.deepStrictEqual(
          history.flatMap((event) =>
            event.event_type === "UserMsg" ? [[event.payload.text, event.payload.cost_usd]] : []
          ),
          [
            ["good morning", 0.025],
            ["do it", undefined]
          ]
        )
      }).pipe(Effect.scoped)
  )
})
