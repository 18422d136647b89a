/**
 * A summary's own word on what it had no room for. Where the second answer of a compaction is too long again, its oldest text and its surplus facts
 * go; the fold cuts without a mark, so that the cut is made here, with a line that says what is missing and how to find it.
 */
import type { MemoryDelta } from "#schema/Event.ts"
import { MEMORY_QUERY, type Offered } from "#src/agent/model/offeredTools.ts"
import {
  applyDelta,
  changedText,
  SUMMARY_CHARS_MAX,
  SUMMARY_FACT_CHARS_MAX,
  withFacts
} from "#src/shared/session/memory.ts"
import type { ReferenceSummary } from "#src/shared/session/State.ts"
import { counted } from "#src/shared/text/counts.ts"

/** Facts that the line names, and characters of each key. */
const NAMED_MAX = 8
const KEY_CHARS_MAX = 60
/** Characters that a cut takes more, so that what stays begins with a line. */
const LINE_START_CHARS_MAX = 200

const named = (keys: ReadonlyArray<string>): string => {
  const shown = keys.slice(0, NAMED_MAX).map((key) => key.slice(0, KEY_CHARS_MAX).toWellFormed())
  return [...shown, ...(keys.length > NAMED_MAX ? [`${keys.length - NAMED_MAX} more`] : [])].join(", ")
}

/** The newest part of a text, from the beginning of a line where there is one early on. */
const newestOf = (text: string, chars: number): string => {
  const part = text.slice(-chars)
  const line = part.indexOf("\n")
  return (line >= 0 && line < LINE_START_CHARS_MAX ? part.slice(line + 1) : part).toWellFormed()
}

const list = (what: string, keys: ReadonlyArray<string>): ReadonlyArray<string> =>
  keys.length === 0 ? [] : [`${what}: ${named(keys)}`]

/** The facts that are lost, as parts of the line. */
const lostFacts = (before: ReferenceSummary, deltas: ReadonlyArray<MemoryDelta>): ReadonlyArray<string> => {
  const kept = new Set(deltas.reduce(applyDelta, before).facts.map(({ key }) => key))
  const gone = deltas.reduce(withFacts, before.facts).flatMap(({ key }) => (kept.has(key) ? [] : [key]))
  const cut = deltas.flatMap(({ add_fact }) =>
    add_fact !== undefined && Math.max(add_fact.key.length, add_fact.value.length) > SUMMARY_FACT_CHARS_MAX
      ? [add_fact.key]
      : []
  )
  return [
    ...list("these facts", gone),
    ...list(`all but the first ${SUMMARY_FACT_CHARS_MAX} characters of these facts`, cut)
  ]
}

/** The same changes of a summary, and behind them its text with the line in front, where something is lost. */
export const withLossNote = (
  before: ReferenceSummary,
  deltas: ReadonlyArray<MemoryDelta>,
  offered: Offered
): ReadonlyArray<MemoryDelta> => {
  const text = deltas.reduce(changedText, before.summary)
  const facts = lostFacts(before, deltas)
  const way = offered.has(MEMORY_QUERY)
    ? "To find them, search this session with choir-memory-query by words that they hold."
    : "They are in older messages of this session, which you cannot search; ask if you need them."
  const lineOf = (cut: number) => {
    const losses = cut === 0 ? facts : [`the first ${counted(cut)} characters of the summary`, ...facts]
    return `[There was no room for ${losses.join("; ")}. ${way}]`
  }
  if (text.length <= SUMMARY_CHARS_MAX && facts.length === 0) return deltas
  const whole = `${lineOf(0)}\n${text}`
  if (whole.length <= SUMMARY_CHARS_MAX) return [...deltas, { mode: "overwrite", summary_update: whole }]
  // No cut takes more than the whole text, so that the line gets no longer than with all of it.
  const stays = newestOf(text, SUMMARY_CHARS_MAX - lineOf(text.length).length - 1)
  return [...deltas, { mode: "overwrite", summary_update: `${lineOf(text.length - stays.length)}\n${stays}` }]
}
