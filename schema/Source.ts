/** The sources of text from outside, by which results, lanes, memory and approvals are labelled (docs/security.md, Text from outside). */
import { Schema } from "effect"

/** The characters of the name behind a kind, such as a host or an address. */
export const SOURCE_NAME_CHARS_MAX = 200
/** The sources of one result, lane or chunk. */
export const SOURCES_MAX = 32

/**
 * Kinds that name which one it was: `web:<host>`, `mail:<address>`, `file:<who sent it>`. Of too many of one kind only `<kind>:*` is left. A job
 * carries the sources of what it read.
 */
export const NAMED_SOURCES = ["web", "mail", "job", "tool", "agent", "file", "forward", "group", "mcp"] as const
export type NamedSource = (typeof NAMED_SOURCES)[number]
/**
 * Kinds that need no name. `file`, `command` and `memory` carry the sources of what is in them; `file` alone is a file of the workspace whose sender
 * is not known, `forwarded` a message whose writer is not.
 */
export const PLAIN_SOURCES = ["notion", "file", "search", "command", "memory", "forwarded", "import"] as const

/** Where a text from outside came from. Only visible characters of ASCII, since people decide by it. */
export const Source = Schema.Union([
  Schema.Literals(PLAIN_SOURCES),
  Schema.TemplateLiteral([Schema.Literals(NAMED_SOURCES), ":", Schema.String]).check(
    Schema.isPattern(new RegExp(`^[a-z]+:[!-~]{1,${SOURCE_NAME_CHARS_MAX}}$`, "u"))
  )
])
export type Source = typeof Source.Type

export const Sources = Schema.Array(Source).check(Schema.isMaxLength(SOURCES_MAX), Schema.isUnique())

/** How sure a tool is that it acted: it read it back or has the other side's id, the other side took it, or nobody knows. */
export const Acted = Schema.Literals(["verified", "accepted", "unknown"])
export type Acted = typeof Acted.Type
