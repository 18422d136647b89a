/** Searching the stored events of a session, newest first, in pages that are short for whoever shares the database. */
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import type { ChoirEvent } from "#schema/Event.ts"
import { type CallId, EDGE, type SessionId } from "#schema/Ids.ts"
import {
  EVENT_COLUMNS,
  EVENT_SIZE,
  LOG_PAGE_BYTES_MAX,
  LOG_PAGE_EVENTS_MAX
} from "#src/choird/sessions/storedEvents.ts"
import { type EventRow, readRow, valueOf } from "#src/shared/events/eventRow.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import {
  type LogAnswer,
  type LogHit,
  type LogQuery,
  type LogSearch,
  logSearch,
  type LogView,
  outputRevOf,
  sees
} from "#src/shared/session/search.ts"

/** Revisions and canonical bytes that choird looks through for one request by words; what is older takes another request. */
export const LOG_SEARCH_REVS_MAX = 5000
export const LOG_SEARCH_BYTES_MAX = 16 * 1024 * 1024
/** Revisions that choird looks through for one request by hash, for which the events are not read. */
const LOG_SEARCH_HASHES_MAX = 100_000

interface Page {
  readonly rows: ReadonlyArray<Row>
  /** The oldest revision that was looked at. */
  readonly to: number
}

interface Row extends EventRow {
  readonly size: number
  /** Rows of the page before it was cut to its bytes. */
  readonly total: number
}

/** The events of a view in `[from, before)`, newest first; of more bytes than a page has, the newest, and at least one. */
const readPage = Effect.fnUntraced(function* (
  session_id: SessionId,
  { lane }: LogView,
  { mode, query }: LogQuery,
  from: number,
  before: number
) {
  const sql = yield* SqlClient.SqlClient
  const isSeen =
    lane === EDGE ? sql`(lane = ${lane} OR event_type IN ('CoreStarted', 'CoreStopped'))` : sql`lane = ${lane}`
  const isAsked = mode === "hash" ? sql`encode(hash, 'hex') LIKE ${`${query.toLowerCase()}%`}` : sql`true`
  const rows = yield* sql<Row>`SELECT ${sql.literal(EVENT_COLUMNS)}, size, total FROM (
      SELECT ${sql.literal(EVENT_COLUMNS)}, ${sql.literal(EVENT_SIZE)} AS size, (count(*) OVER ())::int AS total,
        sum(${sql.literal(EVENT_SIZE)}) OVER newest_first AS page_bytes, row_number() OVER newest_first AS place
      FROM choir_control.session_events
      WHERE session_id = ${session_id} AND rev >= ${from} AND rev < ${before} AND ${isSeen} AND ${isAsked}
      WINDOW newest_first AS (ORDER BY rev DESC)
    ) AS page WHERE page_bytes <= ${LOG_PAGE_BYTES_MAX} OR place = 1 ORDER BY rev DESC`
  const last = rows.at(-1)
  return { rows, to: last !== undefined && rows.length < last.total ? last.rev : from } satisfies Page
})

interface Found {
  readonly hit: LogHit
  /** For a tool's result: its call. */
  readonly call_id: CallId | undefined
}

/** The event of a row. It was decoded when it was stored, which would take far longer than the look at it. */
const eventIn = (row: EventRow, mayBe: (text: string) => boolean): ChoirEvent | undefined => {
  const text = Result.getOrUndefined(readRow(row))
  if (text === undefined || !mayBe(text.payload ?? text.chained)) return undefined
  return Result.getOrUndefined(valueOf(text)) as ChoirEvent | undefined
}

/** The hit in a row. */
const hitOf = (view: LogView, search: LogSearch, row: EventRow): Found | undefined => {
  const event = eventIn(row, (text) => search.mayMatch(text))
  const hit = event !== undefined && sees(view, event) ? search.hit(event, () => hex(row.hash)) : undefined
  const call_id = event?.event_type === "ToolResultCommitted" ? event.payload.call_id : undefined
  return hit === undefined ? undefined : { hit, call_id }
}

/** Names the tools of hits that are results, from the outputs that proposed them. */
const withTools = Effect.fnUntraced(function* (session_id: SessionId, found: ReadonlyArray<Found>) {
  const sql = yield* SqlClient.SqlClient
  const revs = found.flatMap(({ call_id }) => (call_id === undefined ? [] : (outputRevOf(call_id) ?? [])))
  const outputs =
    revs.length === 0
      ? []
      : yield* sql<EventRow>`SELECT ${sql.literal(EVENT_COLUMNS)} FROM choir_control.session_events
          WHERE session_id = ${session_id} AND rev = ANY(${revs}::int[]) AND event_type = 'ModelOutput'`
  const calls = outputs.flatMap((row) => {
    const event = eventIn(row, () => true)
    return event?.event_type === "ModelOutput" ? event.payload.tool_calls : []
  })
  const tools = new Map<string, string>(calls.map(({ call_id, name }) => [call_id, name]))
  return found.map(({ call_id, hit }): LogHit => {
    const tool = call_id === undefined ? undefined : tools.get(call_id)
    return tool === undefined ? hit : { ...hit, tool }
  })
})

/** Looks until there are enough hits, the view's beginning is reached, or the limits of one request are. */
export const searchLog = Effect.fn("searchLog")(function* (
  session_id: SessionId,
  view: LogView,
  query: LogQuery,
  last_rev: number
) {
  const search = logSearch(query)
  const [page_revs, revs_max] =
    query.mode === "hash" ? [LOG_SEARCH_HASHES_MAX, LOG_SEARCH_HASHES_MAX] : [LOG_PAGE_EVENTS_MAX, LOG_SEARCH_REVS_MAX]
  const start = Math.min(query.before_rev ?? Infinity, last_rev + 1)
  const found: Array<Found> = []
  const answer = (next: number) =>
    Effect.map(withTools(session_id, found), (hits): LogAnswer =>
      next > view.from ? { hits, next_before_rev: next } : { hits }
    )
  let bytes = 0
  let next = start
  while (next > view.from && start - next < revs_max && bytes < LOG_SEARCH_BYTES_MAX) {
    const page = yield* readPage(session_id, view, query, Math.max(view.from, next - page_revs), next)
    for (const row of page.rows) {
      bytes += row.size
      const hit = hitOf(view, search, row)
      if (hit !== undefined) found.push(hit)
      if (found.length === query.limit) return yield* answer(row.rev)
    }
    next = page.to
  }
  return yield* answer(next)
})
