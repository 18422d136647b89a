/** The summary of a session that ends: its model makes it at a graceful stop, and choird stores it with the session. */
import { Schema } from "effect"

/** How long its parts may be, in UTF-16 units, and how many entries a list may have. A longer one is cut by the agent, refused by choird. */
export const SUMMARY_LIMITS = { title_chars: 200, text_chars: 8000, entries: 32, entry_chars: 500 } as const

const { entries, entry_chars, text_chars, title_chars } = SUMMARY_LIMITS
const entryList = Schema.Array(Schema.String.check(Schema.isMaxLength(entry_chars))).check(Schema.isMaxLength(entries))

export const Summary = Schema.Struct({
  title: Schema.String.check(Schema.isMaxLength(title_chars)),
  summary: Schema.String.check(Schema.isMaxLength(text_chars)),
  decisions: entryList,
  open_points: entryList,
  facts: entryList
})
export type Summary = typeof Summary.Type
