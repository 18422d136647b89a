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
import { counted, plural } from "#src/shared/text/counts.ts"

/** Facts that the line names, and characters of each key. */
const NAMED_MAX = 8
const KEY_CHARS_MAX = 60
/** Characters of the line, which the text makes room for. */
const LINE_CHARS_MAX = 1500

const named = (keys: ReadonlyArray<string>): string => {
  const shown = keys.slice(0, NAMED_MAX).map((key) => key.slice(0, KEY_CHARS_MAX).toWellFormed())
  return [...shown, ...(keys.length > NAMED_MAX ? [`${keys.length - NAMED_MAX} more`] : [])].join(", ")
}

/** The newest part of a text, from the beginning of a line where there is one early on. */
const newestOf = (text: string, chars: number): string => {
  const part = text.slice(-chars)
  const line = part.indexOf("\n")
  return (line >= 0 && line < chars / 2 ? part.slice(line + 1) : part).toWellFormed()
}

const list = (what: string, keys: ReadonlyArray<string>): ReadonlyArray<string> =>
  keys.length === 0 ? [] : [`${what}: ${named(keys)}`]

/** The same changes of a summary, and behind them its text with the line in front, where something is lost. */
export const withToldLoss = (
  before: ReferenceSummary,
  deltas: ReadonlyArray<MemoryDelta>,
  offered: Offered
): ReadonlyArray<MemoryDelta> => {
  const text = deltas.reduce(changedText, before.summary)
  const facts = deltas.reduce(withFacts, before.facts)
  const kept = new Set(deltas.reduce(applyDelta, before).facts.map(({ key }) => key))
  const cut = deltas.flatMap(({ add_fact }) =>
    add_fact !== undefined && Math.max(add_fact.key.length, add_fact.value.length) > SUMMARY_FACT_CHARS_MAX
      ? [add_fact.key]
      : []
  )
  const stays =
    text.length <= SUMMARY_CHARS_MAX - LINE_CHARS_MAX ? text : newestOf(text, SUMMARY_CHARS_MAX - LINE_CHARS_MAX)
  const losses = [
    ...(stays === text
      ? []
      : [`the oldest ${plural(text.length - stays.length, "character")} of its ${counted(text.length)}`]),
    ...list(
      "facts",
      facts.flatMap(({ key }) => (kept.has(key) ? [] : [key]))
    ),
    ...list(`the ends of facts longer than ${SUMMARY_FACT_CHARS_MAX} characters`, cut)
  ]
  if (losses.length === 0) return deltas
  const way = offered.has(MEMORY_QUERY)
    ? "; choir-memory-query finds the messages behind that by their words"
    : "; the log has the messages behind that"
  const line = `[No room for ${losses.join("; ")}${way}]`
  return [...deltas, { mode: "overwrite", summary_update: `${line}\n${stays}` }]
}
