/** The host tool `choir.memory.query`: a search of a session's stored events, newest first, in short pages. */
import { Effect, Result, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { Caller } from "#schema/AgentApi.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { type CallId, EDGE, type SessionId } from "#schema/Ids.ts"
import {
  EVENT_COLUMNS,
  EVENT_SIZE,
  LOG_PAGE_BYTES_MAX,
  LOG_PAGE_EVENTS_MAX
} from "#src/choird/sessions/storedEvents.ts"
import { useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { type EventRow, readRow, valueOf } from "#src/shared/events/eventRow.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import {
  LogAnswer,
  type LogHit,
  LogQuery,
  type LogSearch,
  logSearch,
  type LogView,
  outputRevOf,
  sees,
  viewOf
} from "#src/shared/session/search.ts"
import { failed, makeHostTool } from "./HostTool.ts"

/** Revisions and canonical bytes that choird searches for one request by words; older ones take another request. */
export const LOG_SEARCH_REVS_MAX = 5000
export const LOG_SEARCH_BYTES_MAX = 16 * 1024 * 1024
/** Revisions that choird searches for one request by hash, for which the events are not read. */
const LOG_SEARCH_HASHES_MAX = 100_000

interface Page {
  readonly rows: ReadonlyArray<Row>
  /** The oldest revision that was searched. */
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

/** The event of a row. It was decoded when it was stored; to decode it again would take far longer than the search. */
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

/** Searches until there are enough hits, or the view's beginning or a limit of one request is reached. */
const searchLog = Effect.fn("searchLog")(function* (
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

/** One search of a session's log in choird; its pages take milliseconds each. */
const LOG_SEARCH_TIMEOUT_MS = 10_000

const encode = Schema.encodeSync(LogAnswer)

/** The tool, which answers for the asking lane of the asking session: edge, or the job whose token came with the request. */
export const memoryQuery = Effect.gen(function* () {
  const onDatabase = yield* useDatabase
  const events = yield* EventStore

  const run = Effect.fn("memoryQuery.run")(function* (query: LogQuery, { job_id, session_id }: Caller) {
    // Its caller asks for a session that choird has open.
    const state = yield* Effect.catchTag(events.state(session_id), ["SessionUnknown", "NewerEvents"], Effect.die)
    const core = [...state.cores.values()].find((each) => each.job_id === job_id)
    const view = job_id !== undefined && core === undefined ? undefined : viewOf(state, core?.lane ?? EDGE)
    if (view === undefined) return failed("error", "the job is no longer running")
    const found = yield* onDatabase(searchLog(session_id, view, query, state.rev))
    return { status: "success", output: encode(found) } as const
  })

  return makeHostTool({
    name: "choir.memory.query",
    effect: "none",
    timeout_ms: LOG_SEARCH_TIMEOUT_MS,
    input: LogQuery,
    run
  })
})
