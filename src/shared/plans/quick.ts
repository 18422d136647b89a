/** Parsers of chrono-node without those patterns that are slow on some texts. */
import type { Chrono } from "chrono-node/en"
import type { Parser } from "./Language.ts"

/** Matches nowhere. */
const NEVER = /(?!)/u

/**
 * Reads without patterns of durations, whose cost grows with the third power of a text such as "1 min 1 h 1 min 1 h". `durations.ts` reads these
 * in one pass. A pattern of durations is one with digits and the language's word for a minute.
 */
export const quick = (chrono: Chrono, minute: string): Parser => {
  const made = chrono.clone()
  made.parsers = made.parsers.map((parser) => {
    let isDuration: boolean | undefined
    return {
      pattern: (context) => {
        if (isDuration === true) return NEVER
        const pattern = parser.pattern(context)
        isDuration ??= pattern.source.includes(minute) && /\\d|0-9/u.test(pattern.source)
        return isDuration ? NEVER : pattern
      },
      extract: (context, match) => parser.extract(context, match)
    }
  })
  return made
}
