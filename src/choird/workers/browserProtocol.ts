/** The messages between choird and the process of one agent's browser, each a line of JSON. */
import { Schema } from "effect"
import { CallId } from "#schema/Ids.ts"
import { Browsed, BrowseInput } from "#src/shared/web/hostQueries.ts"
import { ActionFailed } from "./ActionFailed.ts"

/** An order of choird: an input of at most 20,000 characters, and little else. */
export const ORDER_BYTES_MAX = 1024 * 1024
/** A report about a page, with a picture: below what a host tool may answer. */
export const REPORT_BYTES_MAX = 768 * 1024

/** Characters of a page's address in a report, more than a card shows. */
export const HELD_ADDRESS_CHARS_MAX = 8192

const Id = Schema.Natural

/** The first line: where Chromium is started, and the way of all its bytes. */
export const BrowserStart = Schema.Struct({
  /** The script that becomes Chromium. */
  program: Schema.String,
  /** Whether Chromium may run without its own sandbox, where it cannot run in it. */
  may_be_bare: Schema.Boolean,
  proxy: Schema.Struct({ server: Schema.String, username: Schema.String, password: Schema.String }),
  /** The `PageWaitFactor` of choird. */
  patience: Schema.Finite
})
export type BrowserStart = typeof BrowserStart.Type

export const BrowserOrder = Schema.TaggedUnion({
  Act: {
    id: Id,
    input: BrowseInput,
    call: Schema.optionalKey(Schema.Struct({ call_id: CallId, is_asked: Schema.Boolean }))
  },
  Hold: { id: Id, call_id: CallId, input: BrowseInput },
  Cancel: { id: Id }
})
export type BrowserOrder = typeof BrowserOrder.Type

/** The object of a call, for the person who is asked. */
export const Held = Schema.Struct({
  site: Schema.String,
  /** The whole address, cut at a limit. */
  address: Schema.String,
  title: Schema.String,
  ref: Schema.optionalKey(Schema.String),
  element: Schema.Struct({ role: Schema.String, name: Schema.String }),
  /** The host of the frame that it is in, if it is in one. */
  frame: Schema.optionalKey(Schema.String)
})
export type Held = typeof Held.Type

export const BrowserReport = Schema.TaggedUnion({
  Ready: { is_sandboxed: Schema.Boolean },
  Unusable: { problem: Schema.String },
  Acted: { id: Id, done: Browsed },
  Held: { id: Id, held: Held },
  Failed: { id: Id, error: ActionFailed }
})
export type BrowserReport = typeof BrowserReport.Type
