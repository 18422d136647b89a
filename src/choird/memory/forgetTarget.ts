/** An order to forget, resolved to what is in the tables: the words to look for, parts of sessions, and facts. */
import { Effect, Result, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { ChoirEvent } from "#schema/Event.ts"
import { type AgentId, EDGE, LaneId, Rev, REV_MAX, SessionId } from "#schema/Ids.ts"
import { DocumentId, FactSource, type Forget } from "#schema/Memory.ts"
import { storedLog } from "#src/choird/sessions/storedEvents.ts"
import { eventOf, type EventRow, readRow } from "#src/shared/events/eventRow.ts"
import { agentTable, asAgent } from "./agentTables.ts"
import { hasMemory } from "./embeddingRows.ts"
import { ForgetWords, isDistinct } from "./forgetWords.ts"

/** Events that are looked through before others of choird's work go on. */
const SLICE_EVENTS = 32
/** Revisions around a fact's origin in which its turn is looked for. */
const TURN_REVS_MAX = 2000

/** A part of a session; of one lane, or of all. */
export const Span = Schema.Struct({
  session_id: SessionId,
  first_rev: Rev,
  last_rev: Rev,
  lane: Schema.optionalKey(LaneId)
})
export type Span = typeof Span.Type

/** Kept until it is carried out, so that a choird that dies meanwhile ends it. */
export const Target = Schema.Struct({
  phrases: Schema.Array(Schema.String),
  spans: Schema.Array(Span),
  facts: Schema.Array(DocumentId),
  /** Facts and chunks that go: prompts and searches of any session may have shown them. */
  shown: Schema.Array(DocumentId),
  /** Sessions that were reached when it was ordered: their chunks are made again even where a crash left nothing in their logs to find. */
  sessions: Schema.Array(SessionId)
})
export type Target = typeof Target.Type

/** The event of a stored row; undefined for one of a later Choir, or one that does not decode. */
export const storedEvent = (row: EventRow): ChoirEvent | undefined => {
  const text = readRow(row)
  return Result.isFailure(text) ? undefined : Result.getOrUndefined(eventOf(text.success))
}

interface FactRow {
  readonly id: DocumentId
  readonly key: string | null
  readonly text: string
  readonly source: unknown
}

const decodeSource = Schema.decodeUnknownOption(FactSource)

/** The turn of edge in which something was written: from the message before it to the one after. */
const turnOf = Effect.fnUntraced(function* (session_id: SessionId, rev: Rev) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly first: number; readonly last: number }>`SELECT
      coalesce(max(rev) FILTER (WHERE rev <= ${rev}), ${rev})::int AS first,
      coalesce(min(rev) FILTER (WHERE rev > ${rev}) - 1, ${rev}::int + ${TURN_REVS_MAX})::int AS last
    FROM choir_control.session_events WHERE session_id = ${session_id} AND event_type = 'UserMsg'
      AND rev BETWEEN ${rev}::int - ${TURN_REVS_MAX} AND ${rev}::int + ${TURN_REVS_MAX}`
  const { first, last } = row ?? { first: rev, last: rev }
  return { session_id, first_rev: Rev.make(first), last_rev: Rev.make(last), lane: EDGE } satisfies Span
})

/** The places a fact came from: the turn of edge, and the call of a job that wrote it. */
const originsOf = Effect.fnUntraced(function* (source: unknown) {
  const found = decodeSource(source)
  if (found._tag === "None" || found.value.session_id === undefined || found.value.rev === undefined) return []
  const { lane = EDGE, rev, session_id } = found.value
  // No event has it, whatever the agent said that wrote the fact.
  if (rev > REV_MAX) return []
  const turn = yield* turnOf(session_id, rev)
  return lane === EDGE ? [turn] : [turn, { session_id, first_rev: rev, last_rev: rev, lane } satisfies Span]
})

const factTarget = Effect.fnUntraced(function* (rows: ReadonlyArray<FactRow>) {
  const spans = yield* Effect.forEach(rows, ({ source }) => originsOf(source))
  return {
    phrases: rows.map(({ text }) => text).filter(isDistinct),
    spans: spans.flat(),
    facts: rows.map(({ id }) => id),
    shown: rows.map(({ id }) => id),
    sessions: []
  } satisfies Target
})

const factRows = (agent_id: AgentId, column: "key" | "id", value: string) =>
  asAgent(
    agent_id,
    Effect.flatMap(
      SqlClient.SqlClient,
      (
        sql
      ) => sql<FactRow>`SELECT id::text AS id, key, text, source FROM ${sql(agentTable(agent_id, "knowledge_documents"))}
        WHERE ${column === "key" ? sql`key = ${value}` : sql`id = ${value}::uuid`}`
    )
  )

/** The events of parts of sessions, and the chunks that were made of them. */
const spanTarget = Effect.fnUntraced(function* (agent_id: AgentId, spans: ReadonlyArray<Span>) {
  if (!(yield* hasMemory(agent_id))) return { phrases: [], spans, facts: [], shown: [], sessions: [] } satisfies Target
  const sql = yield* SqlClient.SqlClient
  const chunks = yield* asAgent(
    agent_id,
    Effect.forEach(
      spans,
      ({ first_rev, last_rev, session_id }) => sql<{ readonly id: DocumentId }>`SELECT id::text AS id
        FROM ${sql(agentTable(agent_id, "memory_documents"))}
        WHERE session_id = ${session_id} AND first_rev <= ${last_rev} AND last_rev >= ${first_rev}`
    )
  )
  return { phrases: [], spans, facts: [], shown: chunks.flat().map(({ id }) => id), sessions: [] } satisfies Target
})

/** A fact without a key, one value of a key with all others of it, or the events of a chunk. */
const documentTarget = Effect.fnUntraced(function* (agent_id: AgentId, id: DocumentId) {
  const [fact] = yield* factRows(agent_id, "id", id)
  if (fact !== undefined)
    return yield* factTarget(fact.key === null ? [fact] : yield* factRows(agent_id, "key", fact.key))
  const sql = yield* SqlClient.SqlClient
  const spans = yield* asAgent(
    agent_id,
    sql<Span>`SELECT session_id, first_rev, last_rev, lane FROM ${sql(agentTable(agent_id, "memory_documents"))} WHERE id = ${id}::uuid`
  )
  return yield* spanTarget(agent_id, spans)
})

/** The target of an order, which may be empty. */
export const targetOf = Effect.fnUntraced(function* (agent_id: AgentId, forget: Forget) {
  switch (forget.type) {
    case "fact":
      return yield* factTarget(yield* factRows(agent_id, "key", forget.key))
    case "document":
      return yield* documentTarget(agent_id, forget.id)
    case "words":
      return { phrases: [forget.words], spans: [], facts: [], shown: [], sessions: [] } satisfies Target
    case "span": {
      const { first_rev, last_rev, session_id } = forget
      return yield* spanTarget(agent_id, [{ session_id, first_rev, last_rev }])
    }
  }
})

/** The events of a session that a target names, with the calls and messages that they belong to. */
export interface Reached {
  readonly session_id: SessionId
  readonly revs: ReadonlyArray<Rev>
  readonly calls: ReadonlySet<string>
  readonly inbox: ReadonlySet<string>
}

const holds = (spans: ReadonlyArray<Span>, { lane, rev }: ChoirEvent) =>
  spans.some((span) => rev >= span.first_rev && rev <= span.last_rev && (span.lane ?? lane) === lane)

/** A row of memory, or a part of a session, that a model was shown. */
interface Quote {
  readonly id?: string | undefined
  readonly session_id?: string | undefined
  readonly first_rev: number
  readonly last_rev: number
}

const Hits = Schema.Struct({
  hits: Schema.Array(
    Schema.Struct({
      id: Schema.optional(Schema.String),
      agent: Schema.optional(Schema.String),
      session_id: Schema.optional(Schema.String),
      first_rev: Schema.optional(Schema.Finite),
      last_rev: Schema.optional(Schema.Finite),
      rev: Schema.optional(Schema.Finite)
    })
  )
})
const isHits = Schema.is(Hits)

/** Revisions before a chunk whose words it may begin with. */
const OVERLAP_REVS_MAX = 16

/** The place of a chunk as the note of a prompt names it. */
const NOTED = /\bsession ([0-9a-z]{16}) rev (\d+)-(\d+)/gu

/** The rows of memory and the parts of sessions that an event quotes: a model was shown them, or searched for them. */
const quotesOf = (event: ChoirEvent, session_id: SessionId): ReadonlyArray<Quote> => {
  if (event.event_type === "ModelOutput") {
    const { notes = [], recalled } = event.payload.prompt ?? {}
    const places = notes.flatMap(({ text }) => [...text.matchAll(NOTED)])
    return [
      ...(recalled?.rows ?? []).map((id): Quote => ({ id, first_rev: 0, last_rev: -1 })),
      ...places.map(([, session_id, first, last]) => ({ session_id, first_rev: Number(first), last_rev: Number(last) }))
    ]
  }
  if (event.event_type !== "ToolResultCommitted" || !isHits(event.payload.output)) return []
  return event.payload.output.hits.map(({ agent, first_rev, id, last_rev, rev, ...hit }): Quote => ({
    id,
    // A search of the running session names its events by their revisions alone.
    session_id: agent === undefined ? (hit.session_id ?? session_id) : undefined,
    first_rev: first_rev ?? rev ?? 0,
    last_rev: last_rev ?? rev ?? -1
  }))
}

const isOf = (spans: ReadonlyArray<Span>, { first_rev, last_rev, session_id }: Quote) =>
  spans.some(
    (span) =>
      span.session_id === session_id && first_rev - OVERLAP_REVS_MAX <= span.last_rev && last_rev >= span.first_rev
  )

const callsOf = (event: ChoirEvent): ReadonlyArray<string> => {
  if (event.event_type === "ModelOutput") return event.payload.tool_calls.map(({ call_id }) => call_id)
  return "call_id" in event.payload ? [event.payload.call_id] : []
}

/** The calls whose results a job was handed. */
const handedTo = (event: ChoirEvent): ReadonlyArray<string> =>
  event.event_type === "CoreStarted"
    ? (event.payload.start.context_bundle.handed ?? []).map(({ call_id }) => call_id)
    : []

/** A listing of forgotten events holds no text, and must stay. */
const isListing = (event: ChoirEvent) =>
  event.event_type === "MemoryWriteCommitted" && event.payload.action === "forget"

/** Reads a session's log and finds what a target names: its spans, its words, and the summaries that were written of them later. */
export const reachIn = Effect.fnUntraced(function* (
  { phrases, shown, spans }: Target,
  { last_rev, session_id }: { readonly session_id: SessionId; readonly last_rev: number }
) {
  const words = new ForgetWords(phrases)
  const here = spans.filter((span) => span.session_id === session_id)
  const rows = new Set<string>(shown)
  const isReached = (event: ChoirEvent) =>
    holds(here, event) ||
    words.inEvent(event) ||
    quotesOf(event, session_id).some((quote) => rows.has(quote.id ?? "") || isOf(spans, quote))
  const found = new Map<number, ChoirEvent>()
  const compactions: Array<ChoirEvent> = []
  const starts: Array<ChoirEvent> = []
  if (phrases.length > 0 || spans.length > 0 || rows.size > 0)
    yield* Stream.runForEachArray(Stream.rechunk(storedLog(session_id, last_rev).rows(1), SLICE_EVENTS), (stored) =>
      Effect.andThen(
        Effect.sync(() => {
          for (const row of stored) {
            const event = storedEvent(row)
            if (event === undefined || isListing(event)) continue
            if (isReached(event)) found.set(event.rev, event)
            else if (event.event_type === "CompactionCommitted") compactions.push(event)
            else if (handedTo(event).length > 0) starts.push(event)
          }
        }),
        Effect.yieldNow
      )
    )
  // What a job was handed is written as its prompt showed it, in which the words of the result need not be found.
  const read = new Set([...found.values()].flatMap(callsOf))
  for (const event of starts) if (handedTo(event).some((call_id) => read.has(call_id))) found.set(event.rev, event)
  const first = Math.min(...found.keys())
  for (const event of compactions)
    if (event.event_type === "CompactionCommitted" && event.payload.boundary_rev >= first) found.set(event.rev, event)
  const events = [...found.values()]
  return {
    session_id,
    revs: events.map(({ rev }) => rev).toSorted((a, b) => a - b),
    calls: new Set(events.flatMap(callsOf)),
    inbox: new Set(events.flatMap((event) => (event.event_type === "UserMsg" ? [event.payload.inbox_id] : [])))
  } satisfies Reached
})
