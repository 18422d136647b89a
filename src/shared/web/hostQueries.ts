/** The inputs and answers of the web's host tools, as an agent sends them and choird decodes them. */
import { Schema } from "effect"
import { ToolName } from "#schema/Tool.ts"

/** Text of a page in one answer: below 6,000 tokens, and short enough for a prompt to show all of it. */
export const WEB_TEXT_BYTES_MAX = 11 * 1024

export const FETCH_TOOL = ToolName.make("choir.web.fetch")

/** Longer than any address that is taken, so that the tool can say what is wrong with it. */
const Address = Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(8192))

/** choir.web.fetch: a page, from a character of its text on. */
export const FetchInput = Schema.Struct({
  url: Address.annotate({ description: "http:// or https://" }),
  offset: Schema.optionalKey(
    Schema.Natural.annotate({ description: "The next_offset of an answer: reads on from there" })
  )
})

/** A part of a page as text; `url` is where it was found. */
export const FetchedPart = Schema.Struct({
  url: Schema.String,
  title: Schema.optionalKey(Schema.String),
  text: Schema.String,
  next_offset: Schema.optionalKey(Schema.Natural),
  chars_total: Schema.Natural
})
export type FetchedPart = typeof FetchedPart.Type
