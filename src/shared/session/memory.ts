/** A lane's reference summary and how a delta changes it. It is cut to its limits, so that no delta has to be refused. */
import { Schema } from "effect"
import type { MemoryDelta, MemoryFact } from "#schema/Event.ts"
import { SessionId } from "#schema/Ids.ts"
import type { ReferenceSummary } from "./State.ts"

/** A lane's reference summary as text; of a longer one the newest part stays. */
export const SUMMARY_CHARS_MAX = 8000
/** Facts of a lane's reference summary; of more the newest stay. */
export const SUMMARY_FACTS_MAX = 64
/** The key of a fact, and its value. */
export const SUMMARY_FACT_CHARS_MAX = 500
/** References of a lane's reference summary, of each kind; of more the newest stay. */
export const SUMMARY_REFERENCES_MAX = 64

export const emptySummary: ReferenceSummary = { summary: "", facts: [], referenced_sessions: [], referenced_events: [] }

/** Whether nothing was folded into it yet. */
export const isEmpty = ({ facts, referenced_events, referenced_sessions, summary }: ReferenceSummary): boolean =>
  summary === "" && facts.length + referenced_events.length + referenced_sessions.length === 0

const isSession = Schema.is(SessionId)

/** The newest part: the lane continues from what happened last. */
const lastChars = (text: string, chars: number): string =>
  text.length <= chars ? text : text.slice(-chars).toWellFormed()

const bounded = ({ key, value, ...source }: MemoryFact): MemoryFact => ({
  key: key.slice(0, SUMMARY_FACT_CHARS_MAX).toWellFormed(),
  value: value.slice(0, SUMMARY_FACT_CHARS_MAX).toWellFormed(),
  ...source
})

/** Facts are known by their key: one that is added again replaces the one before. */
const changedFacts = (facts: ReadonlyArray<MemoryFact>, { add_fact, remove_fact }: MemoryDelta) => {
  const added = add_fact === undefined ? [] : [bounded(add_fact)]
  const gone = new Set([...added, ...(remove_fact === undefined ? [] : [bounded(remove_fact)])].map(({ key }) => key))
  return [...facts.filter(({ key }) => !gone.has(key)), ...added].slice(-SUMMARY_FACTS_MAX)
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

/**
 * `overwrite` replaces the text, `append` adds to it; facts and references change only by name, so that no delta can wipe all
 * that is known.
 */
export const applyDelta = (before: ReferenceSummary, delta: MemoryDelta): ReferenceSummary => {
  const { mode, summary_update: update = "" } = delta
  const text =
    mode === "overwrite" && update !== "" ? update : [before.summary, update].filter((part) => part !== "").join("\n")
  return {
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
