/**
 * The messages between choird and the process that reads one page: on its standard input an order as one line and then the body as the site sent it, on
 * its standard output reports as lines.
 */
import { Schema } from "effect"

/** The body of a page, as it is sent and as it is unpacked. */
export const PAGE_BYTES_MAX = 5 * 1024 * 1024
/** Characters of a page's text; the rest is left out. */
export const PAGE_CHARS_MAX = 1_000_000
/** A report; a text has at most six bytes for each character. */
export const REPORT_BYTES_MAX = 8 * 1024 * 1024

/** The compressions that a site is offered. */
export const PAGE_ENCODINGS = ["gzip", "deflate", "br"] as const

export interface PageOrder {
  /** The page's own address, which its links are relative to. */
  readonly url: string
  /**
   * `html` becomes Markdown, `text` stays as it is, `markdown` has to be text that is not a page, `unknown` is what it looks like, and the words of `pdf`
   * are taken out of it.
   */
  readonly form: "html" | "text" | "markdown" | "unknown" | "pdf"
  /** How the body is compressed, where it is. */
  readonly encoding?: (typeof PAGE_ENCODINGS)[number] | undefined
  /** The characters, as the site names them; otherwise the page names them itself. */
  readonly charset?: string | undefined
}

const PageText = Schema.Struct({ title: Schema.String, text: Schema.String })
/** A page as text. */
export type PageText = typeof PageText.Type

export const PageReport = Schema.Union([
  /** The process has loaded its program: the time of the page begins. */
  Schema.TaggedStruct("Ready", {}),
  /** Addresses that the page names: of its Markdown version, and of the page that it leads to by itself. Comes before the rest. */
  Schema.TaggedStruct("Offers", {
    markdown: Schema.optionalKey(Schema.String),
    refresh: Schema.optionalKey(Schema.String)
  }),
  Schema.TaggedStruct("Read", { page: PageText }),
  Schema.TaggedStruct("Refused", { problem: Schema.String })
])
export type PageReport = typeof PageReport.Type
