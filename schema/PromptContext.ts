/** The newest prompt of a lane, part by part, as its model was sent it. */
import { Schema } from "effect"
import { IsoInstant, LaneId, Rev } from "./Ids.ts"
import { Sources } from "./Source.ts"

/** Characters of one part's text, and of all parts together; the rest of a longer part is left out. */
export const CONTEXT_PART_CHARS_MAX = 16_384
export const CONTEXT_CHARS_MAX = 400_000
/** Parts of a prompt; of more the newest are kept. */
export const CONTEXT_PARTS_MAX = 4000

/** A message or the list of the tools. */
export const ContextPart = Schema.Struct({
  kind: Schema.Literals(["tools", "instructions", "user", "note", "assistant", "result"]),
  tokens: Schema.Natural,
  text: Schema.String.check(Schema.isMaxLength(CONTEXT_PART_CHARS_MAX + 100))
})
export type ContextPart = typeof ContextPart.Type

export const PromptContext = Schema.Struct({
  lane: LaneId,
  /** The newest revision when it was made. */
  rev: Rev,
  /** The model that answered, by its name in config.json, and the tokens that its context holds. */
  model: Schema.String,
  context_window: Schema.Natural,
  /** By the o200k vocabulary; a provider's own count may differ. */
  tokens: Schema.Natural,
  /** Of a lane whose window holds text from outside: where that came from, and when it leaves if no more of it comes. */
  label: Schema.optionalKey(Schema.Struct({ sources: Sources, until: IsoInstant })),
  parts: Schema.Array(ContextPart).check(Schema.isMaxLength(CONTEXT_PARTS_MAX))
})
export type PromptContext = typeof PromptContext.Type
