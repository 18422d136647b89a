/** Services that speak and hear, and the voices of agents (docs/configuration.md, Voice). */
import { Schema } from "effect"
import { ResourceName, SecretName } from "./Ids.ts"
import { Url } from "./Url.ts"
import { withDefault } from "./withDefault.ts"

const Text = Schema.String.check(Schema.isMinLength(1, { message: "must not be empty" }))
/** USD. */
const Price = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

/** A service that speaks: ElevenLabs, or a server with OpenAI's `/audio/speech`, which may need no key. */
export const Tts = Schema.Struct({
  provider: Schema.Literals(["elevenlabs", "openai"]),
  model_id: Text,
  endpoint: Url,
  secret: Schema.optionalKey(SecretName),
  price_per_million_characters: Schema.optionalKey(Price)
})
/** A server with OpenAI's `/audio/transcriptions`, which turns voice messages into text. `language` is a hint, such as `en`. */
export const Stt = Schema.Struct({
  provider: Schema.Literal("openai"),
  model_id: Text,
  endpoint: Url,
  secret: Schema.optionalKey(SecretName),
  language: Schema.optionalKey(Text),
  price_per_minute: Schema.optionalKey(Price)
})
const Unit = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
export const VoiceProfile = Schema.Struct({
  tts: ResourceName,
  voice_id: Text,
  output_format: withDefault(Text, "mp3_44100_128"),
  voice_settings: Schema.optionalKey(
    Schema.Struct({
      stability: Schema.optionalKey(Unit),
      similarity_boost: Schema.optionalKey(Unit),
      style: Schema.optionalKey(Unit),
      use_speaker_boost: Schema.optionalKey(Schema.Boolean),
      speed: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0.5, maximum: 2 })))
    })
  )
})
