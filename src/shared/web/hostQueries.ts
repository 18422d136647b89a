/** The inputs and answers of the web's host tools, as an agent sends them and choird decodes them. */
import { Schema } from "effect"
import { builtIn } from "#schema/BuiltInTool.ts"

/** Text of a page in one answer: below 6,000 tokens, and short enough for a prompt to show all of it. */
export const WEB_TEXT_BYTES_MAX = 11 * 1024

export const FETCH_TOOL = builtIn("choir.web.fetch")

/** Longer than any address that is taken, so that the tool can say what is wrong with it. */
const Address = Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(8192))

/** choir.web.fetch: a page, from a character of its text on. */
export const FetchInput = Schema.Struct({
  url: Address.annotate({ description: "http:// or https://" }),
  offset: Schema.optionalKey(Schema.Natural.annotate({ description: "The next_offset of an answer" }))
})

/** In the output of a fetch that was refused before anything left choird's machine, so that it is sure that nothing happened. */
export const Unasked = Schema.Struct({ is_asked: Schema.Literal(false) })
export const UNASKED: typeof Unasked.Type = { is_asked: false }

/** A part of a page as text; `url` is where it was found. */
export const FetchedPart = Schema.Struct({
  url: Schema.String,
  title: Schema.optionalKey(Schema.String),
  text: Schema.String,
  next_offset: Schema.optionalKey(Schema.Natural),
  chars_total: Schema.Natural
})
export type FetchedPart = typeof FetchedPart.Type

export const BROWSE_TOOL = builtIn("choir.web.browse")

const BROWSE_ACTIONS = [
  "open",
  "snapshot",
  "click",
  "type",
  "select",
  "press",
  "back",
  "tabs",
  "screenshot",
  "read"
] as const
/** The actions that a site may take for a person's. */
const ACTS = new Set<string>(["click", "type", "select", "press"])
export const actsOnPage = (action: string): boolean => ACTS.has(action)

const Ref = Schema.String.check(Schema.isPattern(/^(?:f\d{1,6})?e\d{1,8}$/u))

/** choir.web.browse: one action in the agent's browser. */
export const BrowseInput = Schema.Struct({
  action: Schema.Literals(BROWSE_ACTIONS).annotate({ description: "What to do" }),
  url: Schema.optionalKey(Address.annotate({ description: "For open" })),
  ref: Schema.optionalKey(
    Ref.annotate({
      description: "Such as e12; limits snapshot and screenshot to it"
    })
  ),
  text: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(20_000)).annotate({ description: "type: the new text" })
  ),
  submit: Schema.optionalKey(Schema.Boolean.annotate({ description: "type: then press Enter" })),
  values: Schema.optionalKey(
    Schema.Array(Schema.String.check(Schema.isMaxLength(500)))
      .check(Schema.isMaxLength(50))
      .annotate({ description: "For select" })
  ),
  key: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^[\w+ -]{1,40}$/u)).annotate({
      description: "press: such as PageDown"
    })
  ),
  depth: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
  offset: Schema.optionalKey(Schema.Natural.annotate({ description: "snapshot, read: next_offset" })),
  tab: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 })).annotate({
      description: "tabs: go to it"
    })
  ),
  close: Schema.optionalKey(Schema.Boolean.annotate({ description: "tabs: close it" }))
})
export type BrowseInput = typeof BrowseInput.Type

/** The page after an action. `locator` is what was acted on, in words that find it again; `picture` is a JPEG in base64. */
export const Browsed = Schema.Struct({
  url: Schema.String,
  title: Schema.String,
  tab: Schema.String,
  locator: Schema.optionalKey(Schema.String),
  notes: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The hosts of everything in the tab since an address was opened there: frames, pages that it went to, and the page that opened it. */
  sites: Schema.optionalKey(Schema.Array(Schema.String)),
  text: Schema.optionalKey(Schema.String),
  next_offset: Schema.optionalKey(Schema.Natural),
  chars_total: Schema.optionalKey(Schema.Natural),
  picture: Schema.optionalKey(Schema.String)
})
export type Browsed = typeof Browsed.Type
