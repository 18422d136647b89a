/** The reading side of a session's log: its head, its events as they are printed, and the proof of them. */
import { Effect, Option, Result, Stream } from "effect"
import type { SqlClient } from "effect/sql"
import type { JobName, SessionId } from "#schema/Ids.ts"
import type { LogLine, Verification } from "#schema/SessionsApi.ts"
import {
  eventOf,
  type EventRow,
  ForgottenPayloads,
  type NoEvent,
  opaqueOf,
  readRow
} from "#src/shared/events/eventRow.ts"
import { genesis, hex } from "#src/shared/events/hashChain.ts"
import { newerEvents, newerFrom } from "./newerEvents.ts"
import { chainLog, type Log, readPage, replayLog, replayStart } from "./storedEvents.ts"
import type { CoreReport } from "#schema/Core.ts"
import { reported } from "#src/shared/session/reported.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import type { EventStore } from "./EventStore.ts"

/** What running jobs said of themselves last, read from the log: the state names the event, and the event has the words. */
export const newestReports = Effect.fnUntraced(function* (
  events: EventStore["Service"],
  session_id: SessionId,
  { cores }: SessionState
) {
  const revs = [...cores.values()].flatMap(({ report_rev }) => (report_rev === 0 ? [] : [report_rev]))
  const found = yield* events.named(session_id, revs)
  const byRev = new Map(found.map((event) => [event.rev, reported(event)]))
  return new Map<JobName, CoreReport>(
    [...cores.values()].flatMap(({ job_name, report_rev }) => {
      const report = byRev.get(report_rev)
      return report === undefined ? [] : [[job_name, report] as const]
    })
  )
})

/** What a session's own row says of its newest event. */
export interface Head {
  readonly last_rev: number
  readonly hash: Buffer
  /** The greatest revision that is stored; equal to `last_rev` unless somebody changed the tables. */
  readonly newest_rev: number
}

export const headHash = (session_id: SessionId, head_hash: Uint8Array | null): Buffer =>
  head_hash === null ? genesis(session_id) : Buffer.from(head_hash)

interface HeadRow {
  readonly last_rev: number
  readonly head_hash: Uint8Array | null
  readonly newest_rev: number | null
}

/** Undefined for a session that there is not. */
export const readHead = (sql: SqlClient.SqlClient, session_id: SessionId) =>
  Effect.map(
    sql<HeadRow>`SELECT last_rev, head_hash,
        (SELECT max(rev) FROM choir_control.session_events WHERE session_id = ${session_id}) AS newest_rev
      FROM choir_control.sessions WHERE session_id = ${session_id}`,
    ([row]): Head | undefined =>
      row === undefined
        ? undefined
        : { last_rev: row.last_rev, hash: headHash(session_id, row.head_hash), newest_rev: row.newest_rev ?? 0 }
  )

/** An event that was checked when it was stored. Where somebody changed it since, `verify` tells more. */
export const storedEvent = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  row: EventRow
) {
  const event = Result.flatMap(
    Result.mapError(readRow(row), (reason): NoEvent => ({ reason })),
    eventOf
  )
  if (Result.isSuccess(event)) return event.success
  const { newer, reason } = event.failure
  if (newer === undefined) return yield* Effect.die(new Error(`stored event ${row.rev}: ${reason}`))
  const first = yield* Effect.orDie(newerEvents(sql, session_id))
  return yield* first ?? (yield* Effect.orDie(newerFrom(sql, session_id, newer)))
})

const lineOf = (row: EventRow): Effect.Effect<LogLine> => {
  const hash = hex(row.hash)
  const read = Result.mapError(readRow(row), (reason): NoEvent => ({ reason }))
  const event = Result.flatMap(read, eventOf)
  if (Result.isSuccess(event)) return Effect.succeed({ event: event.success, hash })
  const { newer, reason } = event.failure
  const opaque = newer === undefined ? undefined : Option.getOrUndefined(Option.map(Result.getSuccess(read), opaqueOf))
  return opaque === undefined
    ? Effect.die(new Error(`stored event ${row.rev}: ${reason}`))
    : Effect.succeed({ opaque, hash })
}

/** The events of a log that nobody adds to, from a revision on. */
export const printedLog = <E>(log: Log<E>, from: number): Stream.Stream<LogLine, E> =>
  Stream.mapEffect(log.rows(from), lineOf)

/** Events from a revision on, page after page; at each wake what came since. */
export const printedEvents = (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  from: number,
  wakes: Stream.Stream<void>
): Stream.Stream<LogLine> =>
  Stream.suspend(() => {
    let next = from
    const pages = Stream.paginate(undefined, () =>
      Effect.gen(function* () {
        const rows = yield* Effect.orDie(readPage(sql, session_id, next))
        const page = yield* Effect.forEach(rows, lineOf)
        next += page.length
        return [page, page.length === 0 ? Option.none() : Option.some(undefined)] as const
      })
    )
    return Stream.flatMap(wakes, () => pages)
  })

/** Recomputes chain and fold from the stored text, and compares the end with the session's row (R12). */
export const verifyLog = Effect.fnUntraced(function* <E>(
  session_id: SessionId,
  head: Pick<Head, "last_rev" | "hash">,
  log: Log<E>
) {
  const payloads = new ForgottenPayloads()
  const { at, problem } = yield* replayLog(log, replayStart(session_id), payloads)
  const newer = problem?.newer
  const chained =
    newer === undefined
      ? { rev: at.state.rev, hash: at.hash, problem }
      : yield* chainLog(log, { rev: at.state.rev, hash: at.hash }, payloads)
  const proved = {
    events: chained.rev,
    head: hex(chained.hash),
    ...(payloads.count === 0 ? {} : { forgotten: payloads.count }),
    ...(newer === undefined ? {} : { newer })
  }
  if (chained.problem !== undefined) {
    const { reason, rev } = chained.problem
    return { ok: false, ...proved, problem: { rev, reason } } satisfies Verification
  }
  if (head.last_rev === chained.rev && head.hash.equals(chained.hash))
    return { ok: true, ...proved } satisfies Verification
  const reason = `the session's own row ends at ${head.last_rev} with ${hex(head.hash)}`
  return { ok: false, ...proved, problem: { rev: chained.rev, reason } } satisfies Verification
})
