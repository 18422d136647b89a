/** A request to a model before a codec writes it. */
import type { Model } from "#schema/Config.ts"
import type { Message, Tool } from "./Conversation.ts"

/** The parameters that a model's provider refused: the keys that are left out, or sent under another name. */
export type ParameterChanges = ReadonlyMap<string, string | undefined>

/** The bytes of pictures in base64, by their digests, or {@link REFUSED_PICTURE}. */
export type PictureData = ReadonlyMap<string, string>

/** A request before it is written. */
export interface Asked {
  readonly model: Model
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<Tool>
  /** The bytes of the pictures in messages, as far as there are some. */
  readonly pictures?: PictureData
  readonly changes?: ParameterChanges
  /** Names the prompts that begin alike, for providers that route by it to a cache. */
  readonly cache_key?: string
}
