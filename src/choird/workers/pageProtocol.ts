/** The messages between choird and the process that reads one page: an order on its standard input, reports as lines on its standard output. */
import { Schema } from "effect"

/** A report; what a page turns into is smaller by far. */
export const REPORT_BYTES_MAX = 16 * 1024 * 1024

export interface PageOrder {
  readonly html: string
  /** The page's own address, which its links are relative to. */
  readonly url: string
}

const PageText = Schema.Struct({ title: Schema.String, text: Schema.String })
/** A page as Markdown. */
export type PageText = typeof PageText.Type

export const PageReport = Schema.Union([
  /** The process has loaded its program: the time of the page begins. */
  Schema.TaggedStruct("Ready", {}),
  Schema.TaggedStruct("Read", { page: PageText }),
  Schema.TaggedStruct("Refused", { problem: Schema.String })
])
export type PageReport = typeof PageReport.Type
