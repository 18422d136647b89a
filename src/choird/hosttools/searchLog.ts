/** Searching the stored events of a session, newest first, in pages that are short for whoever shares the database. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { ChoirEvent } from "#schema/Event.ts"
import { type CallId, EDGE, type SessionId } from "#schema/Ids.ts"
import type { StoredEvent } from "#src/choird/sessions/storedEvents.ts"
import { hex } from "#src/shared/hashChain.ts"
import {
  LOG_PAGE_BYTES_MAX,
  LOG_PAGE_EVENTS_MAX,
  LOG_SEARCH_BYTES_MAX,
  LOG_SEARCH_HASHES_MAX,
  LOG_SEARCH_REVS_MAX
} from "#src/shared/limits.ts"
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

interface Page {
  readonly rows: ReadonlyArray<StoredEvent>
  /** The oldest revision that was looked at. */
  readonly to: number
}

interface Row extends StoredEvent {
  /** Rows of the page before it was cut to its bytes. */
  readonly total: number
}

/** The events of a view in `[from, before)`, newest first; of more bytes than a page has, the newest, and at least one. */
const readPage = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  { lane }: LogView,
  { mode, query }: LogQuery,
  from: number,
  before: number
) {
  const isSeen =
    lane === EDGE ? sql`(lane = ${lane} OR event_type IN ('CoreStarted', 'CoreStopped'))` : sql`lane = ${lane}`
  const isAsked = mode === "hash" ? sql`encode(hash, 'hex') LIKE ${`${query.toLowerCase()}%`}` : sql`true`
  const rows = yield* sql<Row>`SELECT rev, canonical, hash, total FROM (
      SELECT rev, canonical, hash, (count(*) OVER ())::int AS total,
        sum(octet_length(canonical)) OVER newest_first AS bytes, row_number() OVER newest_first AS place
      FROM choir_control.session_events
      WHERE session_id = ${session_id} AND rev >= ${from} AND rev < ${before} AND ${isSeen} AND ${isAsked}
      WINDOW newest_first AS (ORDER BY rev DESC)
    ) AS page WHERE bytes <= ${LOG_PAGE_BYTES_MAX} OR place = 1 ORDER BY rev DESC`
  const last = rows.at(-1)
  return { rows, to: last !== undefined && rows.length < last.total ? last.rev : from } satisfies Page
})

interface Found {
  readonly hit: LogHit
  /** For a tool's result: its call. */
  readonly call_id: CallId | undefined
}

/** The hit in a row. Its text was decoded when it was stored, which would take far longer than the look at it. */
const hitOf = (view: LogView, search: LogSearch, { canonical, hash }: StoredEvent): Found | undefined => {
  if (!search.mayMatch(canonical)) return undefined
  const event = JSON.parse(canonical) as ChoirEvent
  const hit = sees(view, event) ? search.hit(event, () => hex(hash)) : undefined
  const call_id = event.event_type === "ToolResultCommitted" ? event.payload.call_id : undefined
  return hit === undefined ? undefined : { hit, call_id }
}

/** Names the tools of hits that are results, from the outputs that proposed them. */
const withTools = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  found: ReadonlyArray<Found>
) {
  const revs = found.flatMap(({ call_id }) => (call_id === undefined ? [] : (outputRevOf(call_id) ?? [])))
  const calls =
    revs.length === 0
      ? []
      : yield* sql<{ readonly call_id: string; readonly name: string }>`
          SELECT call ->> 'call_id' AS call_id, call ->> 'name' AS name
          FROM choir_control.session_events, jsonb_array_elements(canonical::jsonb #> '{payload,tool_calls}') AS call
          WHERE session_id = ${session_id} AND rev = ANY(${revs}::int[]) AND event_type = 'ModelOutput'`
  const tools = new Map(calls.map(({ call_id, name }) => [call_id, name]))
  return found.map(({ call_id, hit }): LogHit => {
    const tool = call_id === undefined ? undefined : tools.get(call_id)
    return tool === undefined ? hit : { ...hit, tool }
  })
})

/** Looks until there are enough hits, the view's beginning is reached, or the limits of one request are. */
export const searchLog = Effect.fn("searchLog")(function* (
  sql: SqlClient.SqlClient,
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
    Effect.map(withTools(sql, session_id, found), (hits): LogAnswer =>
      next > view.from ? { hits, next_before_rev: next } : { hits }
    )
  let bytes = 0
  let next = start
  while (next > view.from && start - next < revs_max && bytes < LOG_SEARCH_BYTES_MAX) {
    const page = yield* readPage(sql, session_id, view, query, Math.max(view.from, next - page_revs), next)
    for (const row of page.rows) {
      bytes += row.canonical.length
      const hit = hitOf(view, search, row)
      if (hit !== undefined) found.push(hit)
      if (found.length === query.limit) return yield* answer(row.rev)
    }
    next = page.to
  }
  return yield* answer(next)
})
