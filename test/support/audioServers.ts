/** ElevenLabs' speech, and OpenAI's speech and transcriptions, on loopback. They refuse what the real ones refuse, in their words. */
import { createHash } from "node:crypto"
import { Predicate } from "effect"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { type Answered, answeringServer, type Asked, type SILENCE } from "./answeringServer.ts"
import { parseMultipart } from "./testing/multipart.ts"

export const AUDIO_KEY = "audio-key-of-tests"

const OGG = Buffer.from(`OggS${"\0".repeat(24)}OpusHead`, "latin1")

/** The sound of a text: the format's first bytes, then the text, so that a test can read what was said. */
export const soundOf = (format: string, text: string): Buffer => {
  if (format.startsWith("opus")) return Buffer.concat([OGG, Buffer.from(text)])
  return Buffer.concat([format.startsWith("mp3") ? Buffer.from("ID3") : Buffer.of(0, 0), Buffer.from(text)])
}

/** The first answers, in place of the server's own. */
type First = ReadonlyArray<Answered | typeof SILENCE>

const sound = (bytes: Buffer): Answered => ({ status: 200, headers: { "content-type": "audio/ogg" }, body: bytes })

const FORMATS =
  /^(?:mp3_(?:22050_32|24000_48|44100_(?:32|64|96|128|192))|pcm_(?:8000|16000|22050|24000|32000|44100|48000)|ulaw_8000|alaw_8000|opus_48000_(?:32|64|96|128|192))$/u
const VOICES = new Set(["calm-voice", "other-voice"])
const ELEVEN_MODELS = new Set(["eleven_multilingual_v2", "eleven_flash_v2_5", "eleven_v3"])
const SETTINGS: Readonly<Record<string, readonly [number, number] | "boolean">> = {
  stability: [0, 1],
  similarity_boost: [0, 1],
  style: [0, 1],
  speed: [0.7, 1.2],
  use_speaker_boost: "boolean"
}

const elevenRefusal = (status: number, code: string, message: string): Answered => ({
  status,
  body: { detail: { status: code, message } }
})

const settingsProblem = (settings: unknown): string | undefined => {
  if (settings === undefined || settings === null) return undefined
  if (!Predicate.isObject(settings)) return "voice_settings must be an object"
  return Object.entries(settings).find(([name, value]) => {
    const range = SETTINGS[name]
    if (range === undefined) return true
    if (range === "boolean") return typeof value !== "boolean"
    return typeof value !== "number" || value < range[0] || value > range[1]
  })?.[0]
}

const elevenLabs = ({ body, headers, url: { pathname, searchParams } }: Asked): Answered => {
  const voice = /^\/v1\/text-to-speech\/([^/]+)$/u.exec(pathname)?.[1]
  if (voice === undefined) return { status: 404, body: { detail: "Not Found" } }
  if (headers["xi-api-key"] === undefined)
    return elevenRefusal(401, "needs_authorization", "Neither authorization header nor xi-api-key received.")
  if (headers["xi-api-key"] !== AUDIO_KEY) return elevenRefusal(401, "invalid_api_key", "Invalid API key")
  if (!VOICES.has(voice)) return elevenRefusal(404, "voice_not_found", `A voice with voice_id ${voice} was not found.`)
  const format = searchParams.get("output_format") ?? "mp3_44100_128"
  if (!FORMATS.test(format)) return elevenRefusal(400, "invalid_output_format", `Invalid output format: ${format}`)
  const asked = parseJson(body)
  if (!Predicate.isObject(asked))
    return { status: 422, body: { detail: [{ msg: "Input should be a valid dictionary" }] } }
  const { model_id = "eleven_multilingual_v2", text, voice_settings } = asked as Record<string, unknown>
  if (typeof text !== "string" || text.trim() === "")
    return { status: 422, body: { detail: [{ loc: ["body", "text"], msg: "Field required", type: "missing" }] } }
  if (text.length > 10_000)
    return elevenRefusal(400, "max_character_limit_exceeded", "This request exceeds the maximum number of characters.")
  if (typeof model_id !== "string" || !ELEVEN_MODELS.has(model_id))
    return elevenRefusal(400, "model_not_found", `A model with model ID ${String(model_id)} does not exist.`)
  const problem = settingsProblem(voice_settings)
  if (problem !== undefined)
    return elevenRefusal(400, "invalid_voice_settings", `Invalid setting for ${problem} received.`)
  return sound(soundOf(format, text))
}

/** ElevenLabs: the base address of its API is `origin` with `/v1`. */
export const elevenLabsServer = (first: First = []) => answeringServer(elevenLabs, first)

const openAiRefusal = (status: number, message: string, code: string | null = null): Answered => ({
  status,
  body: { error: { message, type: "invalid_request_error", param: null, code } }
})

const OPEN_VOICES = new Set("alloy ash ballad coral echo fable nova onyx sage shimmer verse".split(" "))
const OPEN_FORMATS = new Set("mp3 opus aac flac wav pcm".split(" "))
const SPEECH_MODELS = new Set(["tts-1", "tts-1-hd", "gpt-4o-mini-tts"])
const HEARING_MODELS = new Set(["whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe"])
const RECORDINGS = /\.(?:flac|m4a|mp3|mp4|mpeg|mpga|oga|ogg|wav|webm)$/u
const RECORDING_BYTES_MAX = 25 * 1024 * 1024

const speech = ({ body }: Asked): Answered => {
  const asked = parseJson(body)
  if (!Predicate.isObject(asked)) return openAiRefusal(400, "We could not parse the JSON body of your request.")
  const { input, model, response_format = "mp3", speed = 1, voice, ...rest } = asked as Record<string, unknown>
  const unknown = Object.keys(rest).find((key) => key !== "instructions" && key !== "stream_format")
  if (unknown !== undefined) return openAiRefusal(400, `Unrecognized request argument supplied: ${unknown}`)
  if (typeof model !== "string" || !SPEECH_MODELS.has(model))
    return openAiRefusal(404, `The model \`${String(model)}\` does not exist`, "model_not_found")
  if (typeof input !== "string" || input === "") return openAiRefusal(400, "Missing required parameter: 'input'.")
  if (input.length > 4096)
    return openAiRefusal(400, "Input should have at most 4096 characters.", "string_above_max_length")
  if (typeof voice !== "string" || !OPEN_VOICES.has(voice))
    return openAiRefusal(400, `Invalid value: '${String(voice)}'.`)
  if (typeof response_format !== "string" || !OPEN_FORMATS.has(response_format))
    return openAiRefusal(400, `Invalid value: '${String(response_format)}'.`)
  if (typeof speed !== "number" || speed < 0.25 || speed > 4) return openAiRefusal(400, "speed is out of range")
  return sound(soundOf(response_format, input))
}

/** What a recording says: a text by the digest of its bytes, so that only these bytes give it. */
export const wordsOf = (bytes: Uint8Array): string =>
  `words of ${createHash("sha256").update(bytes).digest("hex").slice(0, 8)}`

const transcription = ({ bytes, headers }: Asked): Answered => {
  const form = parseMultipart(headers["content-type"] ?? "", bytes)
  if (form === undefined) return openAiRefusal(400, "Could not parse multipart form")
  const file = form.files["file"]
  const { model = "", response_format = "json" } = form.fields
  if (file === undefined) return openAiRefusal(400, "Missing required parameter: 'file'.")
  if (!HEARING_MODELS.has(model)) return openAiRefusal(404, `The model \`${model}\` does not exist`, "model_not_found")
  if (!RECORDINGS.test(file.name)) return openAiRefusal(400, "Invalid file format.")
  if (model !== "whisper-1" && response_format !== "json")
    return openAiRefusal(400, "response_format is not compatible")
  if (file.bytes.length > RECORDING_BYTES_MAX) return openAiRefusal(413, "Maximum content size limit exceeded")
  // The kind is told by the content.
  if (!["OggS", "RIFF"].includes(Buffer.from(file.bytes.subarray(0, 4)).toString("latin1")))
    return openAiRefusal(400, "The audio file could not be decoded or its format is not supported.")
  const usage = model === "whisper-1" ? { usage: { type: "duration", seconds: 3 } } : {}
  return { status: 200, body: { text: wordsOf(file.bytes), ...usage } }
}

const openAi = (asked: Asked): Answered => {
  const {
    headers,
    url: { pathname: path }
  } = asked
  if (path !== "/v1/audio/speech" && path !== "/v1/audio/transcriptions")
    return openAiRefusal(404, `Invalid URL (POST ${path})`)
  if (headers.authorization !== `Bearer ${AUDIO_KEY}`)
    return openAiRefusal(401, "Incorrect API key provided.", "invalid_api_key")
  return path === "/v1/audio/speech" ? speech(asked) : transcription(asked)
}

/** OpenAI's audio API: its base address is `origin` with `/v1`. */
export const openAiAudioServer = (first: First = []) => answeringServer(openAi, first)
