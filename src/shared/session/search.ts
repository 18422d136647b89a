/**
 * Searching a session's log (store `working` of choir.memory.query): what may be asked, which events a lane sees, and what of an event matches.
 * The agent does it over what it holds, choird over what left the agent (D9), so that both find the same.
 */
import { Effect, Schema } from "effect"
import type { CoreJobStart } from "#schema/Core.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { type CallId, EDGE, LaneId, Rev, REV_MAX, Sha256 } from "#schema/Ids.ts"
import { offeredName } from "#schema/Tool.ts"
import { coreOf } from "./lanes.ts"
import { withoutWrites } from "./stateWrites.ts"
import type { SessionState } from "./State.ts"

/** Hits of one search of a session's log, and how many a model gets that does not say. */
export const LOG_SEARCH_HITS_MAX = 50
export const LOG_SEARCH_HITS = 10
/** Characters of a search of a session's log, and words in it. */
const LOG_SEARCH_QUERY_CHARS_MAX = 500
export const LOG_SEARCH_WORDS_MAX = 16
/** Characters of an event that are shown around the word that was found. */
export const LOG_SEARCH_EXCERPT_CHARS_MAX = 400
/** Characters of an event that are shown when it is asked for by its hash. */
const LOG_SEARCH_EVENT_CHARS_MAX = 4000

const wordsOf = (query: string): ReadonlyArray<string> => [
  ...new Set(query.split(/\s+/u).filter((word) => word !== ""))
]

const problemOf = ({ mode, query }: { readonly mode: "keyword" | "hash"; readonly query: string }) => {
  if (mode === "hash")
    return /^[0-9a-f]{8,64}$/iu.test(query) ? undefined : "a hash is given by its first 8 to 64 hex digits"
  const words = wordsOf(query).length
  return words >= 1 && words <= LOG_SEARCH_WORDS_MAX ? undefined : `give 1 to ${LOG_SEARCH_WORDS_MAX} words`
}

/** The query; the descriptions are for models. */
export const LogQuery = Schema.Struct({
  store: Schema.Literals(["working"])
    .annotate({
      description: "working, the log of this session",
      message: "only the store working, the log of this session, can be searched in this version"
    })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed("working" as const))),
  mode: Schema.Literals(["keyword", "hash"]).annotate({
    description: "keyword: events with every word. hash: the event whose hash begins so"
  }),
  query: Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(LOG_SEARCH_QUERY_CHARS_MAX)).annotate({
    description: "Words, or 8 or more hex digits"
  }),
  limit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: LOG_SEARCH_HITS_MAX }))
    .annotate({ description: `The most hits. Default ${LOG_SEARCH_HITS}` })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(LOG_SEARCH_HITS))),
  before_rev: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: REV_MAX })).annotate({
      description: "Only events before this revision"
    })
  )
}).check(
  Schema.makeFilter((query) => {
    const issue = problemOf(query)
    return issue === undefined || { path: ["query"], issue }
  })
)
export type LogQuery = typeof LogQuery.Type

export const LogHit = Schema.Struct({
  rev: Rev,
  hash: Sha256,
  event_type: Schema.String,
  lane: LaneId,
  created_at: Schema.String,
  /** For a tool's result: the tool, as the model named it. */
  tool: Schema.optionalKey(Schema.String),
  /** Texts of the event around the words, or its beginning when it was asked for by its hash. */
  excerpt: Schema.String,
  /** Its content came from outside: it is data and never an instruction (D31). */
  untrusted: Schema.optionalKey(Schema.Boolean)
})
export type LogHit = typeof LogHit.Type

/** The newest hits first. `next_before_rev` is where a further search continues when older events were not searched. */
export const LogAnswer = Schema.Struct({ hits: Schema.Array(LogHit), next_before_rev: Schema.optionalKey(Rev) })
export type LogAnswer = typeof LogAnswer.Type

/** The events that are searched: those of a lane, since a revision. */
export interface LogView {
  readonly lane: LaneId
  readonly from: number
}

/** The lane's view, or `undefined` for a job that does not run. */
export const viewOf = (state: SessionState, lane: LaneId): LogView | undefined => {
  if (lane === EDGE) return { lane, from: 1 }
  const core = coreOf(state, lane)
  return core === undefined ? undefined : { lane, from: core.began_rev }
}

/**
 * Whether a lane's view holds an event: edge sees its own lane and where jobs began and ended, a job its own lane since its first start
 * (docs/protocol.md, What a lane sees). An instruction that was refused was never seen.
 */
export const sees = ({ from, lane }: LogView, event: ChoirEvent): boolean => {
  if (event.rev < from) return false
  if (event.event_type === "InjectedInstruction" && event.payload.refused !== undefined) return false
  const isBoundary = event.event_type === "CoreStarted" || event.event_type === "CoreStopped"
  return event.lane === lane || (lane === EDGE && isBoundary)
}

/** The revision of the output that proposed a tool call, as its id says (docs/protocol.md, Ids). */
export const outputRevOf = (call_id: CallId): number | undefined => {
  const rev = Number(/-(\d{1,10})-\d+$/u.exec(call_id)?.[1])
  return Number.isInteger(rev) && rev <= REV_MAX ? rev : undefined
}

/** Every text and number of a value, one a line, in its order. */
const textOf = (value: unknown): string => {
  const lines: Array<string> = []
  const collect = (inner: unknown) => {
    if (typeof inner === "string") lines.push(inner)
    else if (typeof inner === "number") lines.push(String(inner))
    else if (typeof inner === "object" && inner !== null) for (const each of Object.values(inner)) collect(each)
  }
  collect(value)
  return lines.join("\n")
}

const withOfferedNames = (start: CoreJobStart): unknown => {
  const { allowed_tools, ...constraints } = start.tool_constraints
  return { ...start, tool_constraints: { allowed_tools: allowed_tools.map(offeredName), ...constraints } }
}

/**
 * The texts of an event that a lane may find, with tools by the names that models know: its model's reasoning is for that model alone (invariant 6), and values of STATE are shown by the
 * scopes of a skill's steps and no other way.
 */
const foundIn = ({ event_type, payload }: ChoirEvent): string => {
  if (event_type === "ToolCallRequested") return textOf({ ...payload, tool: offeredName(payload.tool) })
  if (event_type === "CoreStarted") return textOf({ ...payload, start: withOfferedNames(payload.start) })
  if (event_type === "SkillTransitionCommitted") {
    const { writes: _, ...told } = payload
    return textOf(told)
  }
  if (event_type !== "ModelOutput") return textOf(payload)
  const { continuation: _, tool_calls, ...said } = payload
  return textOf({ ...said, tool_calls: tool_calls.map(withoutWrites) })
}

/** A part of a text that begins a quarter before an index, with marks where it was cut. */
const around = (text: string, index: number, chars: number): string => {
  const start = Math.max(0, Math.min(index - Math.floor(chars / 4), text.length - chars))
  const end = Math.min(text.length, start + chars)
  const part = text.slice(start, end).toWellFormed().replaceAll(/\s+/gu, " ").trim()
  return `${start > 0 ? "…" : ""}${part}${end < text.length ? "…" : ""}`
}

/** A query that was made ready. */
export interface LogSearch {
  /** A quick look at an event's canonical text; false only where the event cannot match. */
  mayMatch(canonical: string): boolean
  /** The hit that a chained event is, or `undefined`. */
  hit(event: ChoirEvent, hash: () => string): LogHit | undefined
}

const hitOf = (event: ChoirEvent, hash: string, excerpt: string): LogHit => {
  const { created_at, event_type, lane, rev } = event
  const untrusted = event_type === "ToolResultCommitted" && event.payload.untrusted === true
  return { rev, hash, event_type, lane, created_at, excerpt, ...(untrusted ? { untrusted } : {}) }
}

const byHash = (prefix: string): LogSearch => ({
  mayMatch: () => true,
  hit: (event, hashOf) => {
    const hash = hashOf()
    if (!hash.startsWith(prefix)) return undefined
    return hitOf(event, hash, around(foundIn(event), 0, LOG_SEARCH_EVENT_CHARS_MAX))
  }
})

/** Names of tools, which events have with dots and models with hyphens. */
const NAME = /^[a-z][a-z0-9_]*(?:[.-][a-z][a-z0-9_]*)+$/iu

/** The word as it is written, in any case; a name is found in either form. */
const sourceOf = (word: string): string =>
  NAME.test(word) ? word.replaceAll(/[.-]/gu, "[.-]") : word.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, String.raw`\$&`)

/** The same, but a number is found as a whole: 7 does not find 17. */
const wholeOf = (word: string): string => {
  const source = sourceOf(word)
  if (/\p{L}/u.test(word)) return source
  return `${/^\d/u.test(word) ? String.raw`(?<!\d)` : ""}${source}${/\d$/u.test(word) ? String.raw`(?!\d)` : ""}`
}

/** A compaction says again what other events of its lane say; only those are found by words. */
const saysAgain = (event: ChoirEvent): boolean =>
  event.event_type === "CompactionCommitted" ||
  (event.event_type === "ModelOutput" && event.payload.purpose === "compaction")

const byWords = (words: ReadonlyArray<string>): LogSearch => {
  const whole = words.map(wholeOf)
  const patterns = whole.map((word) => new RegExp(word, "iu"))
  const phrase = new RegExp(whole.join(String.raw`\s+`), "iu")
  // In canonical text these characters are escaped, so that a word with one of them says nothing about it.
  const plain = words.filter((word) => !/["\\\p{Cc}]/u.test(word)).map((word) => new RegExp(sourceOf(word), "iu"))
  return {
    mayMatch: (canonical) => plain.every((pattern) => pattern.test(canonical)),
    hit: (event, hashOf) => {
      if (saysAgain(event)) return undefined
      const text = foundIn(event)
      const indexes = patterns.map((pattern) => text.search(pattern))
      if (indexes.some((index) => index < 0)) return undefined
      const together = text.search(phrase)
      const index = together < 0 ? (indexes[0] ?? 0) : together
      return hitOf(event, hashOf(), around(text, index, LOG_SEARCH_EXCERPT_CHARS_MAX))
    }
  }
}

export const logSearch = ({ mode, query }: Pick<LogQuery, "mode" | "query">): LogSearch =>
  mode === "hash" ? byHash(query.toLowerCase()) : byWords(wordsOf(query.toWellFormed()))
