/**
 * The words of voice messages, by a server with OpenAI's `/audio/transcriptions`. The recording reaches its agent whatever comes of this;
 * without an entry of `stt` it is a file like any other.
 */
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import type { Config } from "#schema/Config.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { errorMessage } from "#src/shared/wire/errorMessage.ts"
import { plainFetch } from "#src/shared/wire/plainFetch.ts"
import { inTheClearText, isInTheClear } from "#src/shared/config/clearText.ts"
import { bytesOf } from "#src/shared/wire/bytesOf.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** The longest recording that is transcribed. */
export const TRANSCRIBED_SECONDS_MAX = 600
/** The longest wait for its words, which the messages behind it wait, too. */
const TRANSCRIPT_MS_MAX = 30_000
const TRANSCRIPT_CHARS_MAX = 20_000
const ANSWER_BYTES_MAX = 1024 * 1024
/** Characters of a server's words in a message to people. */
const WORDS_CHARS_MAX = 200

/** A recording that was fetched. */
export interface Recording {
  readonly bytes: Uint8Array
  /** By its bytes; a voice message is Opus in Ogg, a round video MP4. */
  readonly mime?: string
  /** As Telegram has it. */
  readonly seconds: number | undefined
}

export interface Transcript {
  readonly text: string
  readonly model: string
  readonly seconds?: number
  readonly cost_usd?: number
}

/** No words came of a recording; `problem` is for the person and the agent. */
export class NotTranscribed extends Schema.TaggedError<NotTranscribed>()("NotTranscribed", {
  problem: Schema.String
}) {}

export class Transcriber extends Context.Service<
  Transcriber,
  {
    /** The words of a recording; `undefined` where nothing is configured for that. */
    transcribe(recording: Recording): Effect.Effect<Transcript | undefined, NotTranscribed>
  }
>()("choir/choird/Transcriber") {
  static readonly layer = Layer.effect(
    Transcriber,
    Effect.suspend(() => make)
  )
}

type Stt = Config["stt"][keyof Config["stt"]]

const Answer = Schema.Struct({
  text: Schema.String,
  duration: Schema.optionalKey(Schema.Finite),
  usage: Schema.optionalKey(Schema.Struct({ seconds: Schema.optionalKey(Schema.Finite) }))
})
const decodeAnswer = Schema.decodeUnknownOption(Schema.fromJsonString(Answer))

const failed = (problem: string) => new NotTranscribed({ problem })

/** Servers tell formats apart by the name. */
const formOf = ({ language, model_id }: Stt, { bytes, mime }: Recording): FormData => {
  const form = new FormData()
  const [type, name] = mime === "video/mp4" ? [mime, "voice.mp4"] : ["audio/ogg", "voice.ogg"]
  form.set("file", new Blob([Uint8Array.from(bytes)], { type }), name)
  form.set("model", model_id)
  form.set("response_format", "json")
  if (language !== undefined) form.set("language", language)
  return form
}

/** The server's own words about a refusal, on one line and without the key. */
const refusal = (status: number, body: string, key: string): NotTranscribed => {
  const words = (errorMessage(body) ?? "").replaceAll(/[\p{C}\s]+/gu, " ").slice(0, WORDS_CHARS_MAX)
  const safe = key === "" ? words : words.replaceAll(key, "…")
  return failed(`the server answered ${status}${safe === "" ? "" : `: ${safe.toWellFormed()}`}`)
}

const make = Effect.gen(function* () {
  const store = yield* ConfigStore

  const ask = (stt: Stt, key: string, recording: Recording) =>
    Effect.tryPromise({
      try: async (signal) => {
        const response = await plainFetch(`${stt.endpoint.replace(/\/+$/u, "")}/audio/transcriptions`, {
          method: "POST",
          body: formOf(stt, recording),
          headers: key === "" ? {} : { authorization: `Bearer ${key}` },
          signal
        })
        const body = await bytesOf(response, ANSWER_BYTES_MAX)
        return { status: response.status, body: Buffer.from(body ?? []).toString("utf8") }
      },
      catch: () => failed("the server cannot be reached")
    }).pipe(
      Effect.timeoutOrElse({
        duration: TRANSCRIPT_MS_MAX,
        orElse: () => failed(`the server did not answer within ${TRANSCRIPT_MS_MAX / 1000} s`)
      })
    )

  const keyOf = ({ secret }: Stt) =>
    secret === undefined
      ? Effect.succeed("")
      : Effect.mapBoth(store.secret(secret), {
          onSuccess: Redacted.value,
          onFailure: ({ message }) => failed(message)
        })

  const transcribe = Effect.fn("Transcriber.transcribe")(function* (recording: Recording) {
    const { seconds } = recording
    const { config } = yield* store.current
    const [stt] = Object.values(config.stt)
    if (stt === undefined) return undefined
    if ((seconds ?? 0) > TRANSCRIBED_SECONDS_MAX)
      return yield* failed(`it is longer than ${TRANSCRIBED_SECONDS_MAX / 60} minutes`)
    const key = yield* keyOf(stt)
    if (key !== "" && isInTheClear(stt.endpoint)) return yield* failed(inTheClearText(stt.endpoint))
    const { body, status } = yield* ask(stt, key, recording)
    if (status < 200 || status > 299) return yield* refusal(status, body, key)
    const answer = decodeAnswer(body)
    if (answer._tag === "None") return yield* failed("the server's answer has no text")
    const text = firstPart(answer.value.text.trim(), TRANSCRIPT_CHARS_MAX)
    if (text === "") return yield* failed("no words were found in it")
    const heard = answer.value.usage?.seconds ?? answer.value.duration ?? seconds
    const price = stt.price_per_minute
    return {
      text,
      model: stt.model_id,
      ...(heard === undefined || heard < 0 ? {} : { seconds: Math.ceil(heard) }),
      ...(heard === undefined || heard < 0 || price === undefined ? {} : { cost_usd: (heard * price) / 60 })
    } satisfies Transcript
  })
  return Transcriber.of({ transcribe })
})
