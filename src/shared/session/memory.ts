/** A lane's reference summary and how a delta changes it. It is cut to its limits, so that no delta has to be refused. */
import { Schema } from "effect"
import type { MemoryDelta, MemoryFact } from "#schema/Event.ts"
import { SessionId } from "#schema/Ids.ts"
import type { ReferenceSummary } from "./State.ts"
import { firstChars, lastChars } from "./textEnds.ts"

/** A lane's reference summary as text; of a longer one the newest part stays. */
export const SUMMARY_CHARS_MAX = 12_000
/** Facts of a lane's reference summary; of more the pinned ones and the newest stay. */
export const SUMMARY_FACTS_MAX = 128
/** The key of a fact, and its value. */
export const SUMMARY_FACT_CHARS_MAX = 500
/** References of a lane's reference summary, of each kind; of more the newest stay. */
export const SUMMARY_REFERENCES_MAX = 64

/** Messages of people that a lane's reference summary holds as they were written, and their characters together; the newest stay. */
export const SUMMARY_WORDS_MAX = 64
export const SUMMARY_WORDS_CHARS_MAX = 24_000
/** Paths that a lane wrote since its last commit to git; the oldest go first. */
export const WRITTEN_FILES_MAX = 64

export const emptySummary: ReferenceSummary = {
  summary: "",
  facts: [],
  referenced_sessions: [],
  referenced_events: [],
  files: [],
  words: []
}

/** Whether nothing was folded into it yet. */
export const isEmpty = ({
  facts,
  files,
  referenced_events,
  referenced_sessions,
  rest,
  summary,
  words
}: ReferenceSummary): boolean =>
  summary === "" &&
  rest === undefined &&
  facts.length + files.length + referenced_events.length + referenced_sessions.length + words.length === 0

/** The newest messages that a summary has room for. */
export const boundedWords = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  let left = SUMMARY_WORDS_CHARS_MAX
  const from = words.findLastIndex(({ length }) => {
    left -= length
    return left < 0
  })
  return words.slice(from + 1).slice(-SUMMARY_WORDS_MAX)
}

const isSession = Schema.is(SessionId)

const bounded = ({ key, value, ...source }: MemoryFact): MemoryFact => ({
  key: firstChars(key, SUMMARY_FACT_CHARS_MAX),
  value: firstChars(value, SUMMARY_FACT_CHARS_MAX),
  ...source
})

/** Facts are known by their key: one that is added again replaces the one before. */
export const withFacts = (facts: ReadonlyArray<MemoryFact>, { add_fact, remove_fact }: MemoryDelta) => {
  const added = add_fact === undefined ? [] : [bounded(add_fact)]
  const gone = new Set([...added, ...(remove_fact === undefined ? [] : [bounded(remove_fact)])].map(({ key }) => key))
  return [...facts.filter(({ key }) => !gone.has(key)), ...added]
}

const changedFacts = (facts: ReadonlyArray<MemoryFact>, delta: MemoryDelta): ReadonlyArray<MemoryFact> => {
  const changed = withFacts(facts, delta)
  let over = changed.length - SUMMARY_FACTS_MAX
  if (over <= 0) return changed
  const left = changed.filter(({ pinned }) => pinned === true || --over < 0)
  return left.slice(-SUMMARY_FACTS_MAX)
}

const changedReferences = (
  references: ReadonlyArray<string>,
  { add_references = [], remove_references = [] }: MemoryDelta,
  belongs: (reference: string) => boolean
): ReadonlyArray<string> => {
  const gone = new Set([...add_references, ...remove_references])
  const kept = references.filter((reference) => !gone.has(reference))
  return [...kept, ...new Set(add_references.filter(belongs))].slice(-SUMMARY_REFERENCES_MAX)
}

/** Whether a text can be a reference at all: a session's id, or the hash of an event. */
const isReference = (text: string): boolean => isSession(text) || /^[0-9a-f]{64}$/u.test(text)

/** The text of a summary after a change, not yet cut. */
export const changedText = (before: string, { mode, summary_update: update = "" }: MemoryDelta): string =>
  mode === "overwrite" && update !== "" ? update : [before, update].filter((part) => part !== "").join("\n")

/** The loss of a summary if these were applied to it, in words for the model that wrote them. */
export const lossOf = (before: ReferenceSummary, deltas: ReadonlyArray<MemoryDelta>): string | undefined => {
  const text = deltas.reduce(changedText, before.summary)
  const facts = deltas.reduce<ReadonlyArray<MemoryFact>>(withFacts, before.facts)
  const values = deltas.flatMap(({ add_fact }) => (add_fact === undefined ? [] : [add_fact.key, add_fact.value]))
  if (text.length > SUMMARY_CHARS_MAX)
    return `the summary would have ${text.length} of at most ${SUMMARY_CHARS_MAX} characters: write all of it again, shorter, with mode overwrite`
  if (facts.length > SUMMARY_FACTS_MAX)
    return `there would be ${facts.length} of at most ${SUMMARY_FACTS_MAX} facts: remove those that no longer matter, or join some`
  return values.some(({ length }) => length > SUMMARY_FACT_CHARS_MAX)
    ? `a fact may have ${SUMMARY_FACT_CHARS_MAX} characters: split it`
    : undefined
}

/**
 * `overwrite` replaces the text, `append` adds to it; facts and references change only by name, so that no delta can wipe all
 * that is known.
 */
export const applyDelta = (before: ReferenceSummary, delta: MemoryDelta): ReferenceSummary => {
  const text = changedText(before.summary, delta)
  return {
    ...before,
    // The newest part: the lane continues from what happened last.
    summary: lastChars(text, SUMMARY_CHARS_MAX),
    facts: changedFacts(before.facts, delta),
    referenced_sessions: changedReferences(before.referenced_sessions, delta, isSession),
    referenced_events: changedReferences(
      before.referenced_events,
      delta,
      (reference) => isReference(reference) && !isSession(reference)
    )
  }
}
