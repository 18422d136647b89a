/** The speech of a text in the voice that the agent is bound to: ElevenLabs, or a server with OpenAI's `/audio/speech`. */
import { Effect, Redacted, type Schema } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { OutsideApi, OutsideProblem } from "./OutsideApi.ts"
import { sourceOf } from "#src/shared/session/sources.ts"
import { retryAfterMs } from "#src/shared/wire/retryAfterMs.ts"

/** Characters of one speech: what OpenAI takes, which is less than ElevenLabs does. */
export const SPEECH_CHARS_MAX = 4096
/** The longest wait for a speech. */
export const SPEECH_MS_MAX = 90_000

export interface Speech {
  readonly bytes: Uint8Array
  /** Of a file of that format, without a dot. */
  readonly ending: string
  readonly cost_usd?: number
}

type Voice = NonNullable<AgentConfig["voice"]>

const ENDINGS: Readonly<Record<string, string>> = { opus: "ogg", mp3: "mp3", wav: "wav", flac: "flac", aac: "aac" }

/** The codec of a format such as `opus_48000_64`. */
const codecOf = ({ profile }: Voice): string => profile.output_format.split("_", 1)[0] ?? ""

interface Asked {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Schema.Json
}

const elevenLabs = ({ profile, tts }: Voice, key: string, text: string): Asked => {
  const url = new URL(`${tts.endpoint.replace(/\/+$/u, "")}/text-to-speech/${encodeURIComponent(profile.voice_id)}`)
  url.searchParams.set("output_format", profile.output_format)
  const { voice_settings } = profile
  return {
    url: url.href,
    headers: { "xi-api-key": key },
    body: {
      text,
      model_id: tts.model_id,
      ...(voice_settings === undefined ? {} : { voice_settings: { ...voice_settings } })
    }
  }
}

const openAi = (voice: Voice, key: string, text: string): Asked => {
  const { profile, tts } = voice
  const { speed } = profile.voice_settings ?? {}
  return {
    url: `${tts.endpoint.replace(/\/+$/u, "")}/audio/speech`,
    headers: key === "" ? {} : { authorization: `Bearer ${key}` },
    body: {
      model: tts.model_id,
      input: text,
      voice: profile.voice_id,
      response_format: codecOf(voice),
      ...(speed === undefined ? {} : { speed })
    }
  }
}

const problem = (words: string) => new OutsideProblem({ problem: words, in_doubt: false })

/** Makes what speaks, with the voice and the secret of the moment. */
export const makeSpeak = Effect.gen(function* () {
  const api = yield* OutsideApi
  const secrets = yield* SecretStore
  const settings = yield* AgentSettings

  const keyOf = Effect.fnUntraced(function* ({ tts }: Voice) {
    if (tts.secret === undefined) return ""
    const key = yield* secrets.get(tts.secret)
    if (key !== undefined) return Redacted.value(key)
    return yield* problem(`the voice's secret has no value; the operator can set it: choirctl secret set ${tts.secret}`)
  })

  return Effect.fn("Speech.speak")(function* (text: string): Effect.fn.Return<Speech, OutsideProblem> {
    const { voice } = settings.current().config
    if (voice === undefined) return yield* problem("the agent has no voice: bind a voice profile to it")
    const key = yield* keyOf(voice)
    const { body, headers, url } = (voice.tts.provider === "elevenlabs" ? elevenLabs : openAi)(voice, key, text)
    const bytes = yield* api.bytes({
      service: "the voice service",
      source: sourceOf("web", URL.parse(url)?.hostname ?? ""),
      method: "POST",
      url,
      headers,
      body,
      ms_max: SPEECH_MS_MAX,
      waitOf: retryAfterMs
    })
    if (bytes.length === 0) return yield* problem("the voice service returned no sound")
    const price = voice.tts.price_per_million_characters
    return {
      bytes,
      ending: ENDINGS[codecOf(voice)] ?? "bin",
      ...(price === undefined ? {} : { cost_usd: (text.length * price) / 1e6 })
    }
  })
})
