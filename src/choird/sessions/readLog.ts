/** The reading side of a session's log: its head, its events as they are printed, and the proof of them. */
import { Effect, Option, Result, Stream } from "effect"
import type { SqlClient } from "effect/sql"
import type { ChoirEvent } from "#schema/Event.ts"
import type { SessionId } from "#schema/Ids.ts"
import type { PrintedEvent, Verification } from "#schema/OperatorApi.ts"
import { eventOf, type EventRow, type NoEvent, readRow } from "#src/shared/eventRow.ts"
import { genesis, hex } from "#src/shared/hashChain.ts"
import { readPage, replayStart, replayStored } from "./storedEvents.ts"

/** What a session's own row says of its newest event. */
interface Head {
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
export const storedEvent = (row: EventRow): Effect.Effect<ChoirEvent> =>
  Result.match(Result.flatMap(Result.mapError(readRow(row), (reason): NoEvent => ({ reason })), eventOf), {
    onSuccess: Effect.succeed,
    onFailure: ({ reason }) => Effect.die(new Error(`stored event ${row.rev}: ${reason}`))
  })

/** Events from a revision on, page after page; at each wake what came since. */
export const printedEvents = (
  sql: SqlClient.SqlClient,
  session_id: SessionId,
  from: number,
  wakes: Stream.Stream<void>
): Stream.Stream<PrintedEvent> =>
  Stream.suspend(() => {
    let next = from
    const pages = Stream.paginate(undefined, () =>
      Effect.gen(function* () {
        const rows = yield* Effect.orDie(readPage(sql, session_id, next))
        const page = yield* Effect.forEach(rows, (row) =>
          Effect.map(storedEvent(row), (event) => ({ event, hash: hex(row.hash) }))
        )
        next += page.length
        return [page, page.length === 0 ? Option.none() : Option.some(undefined)] as const
      })
    )
    return Stream.flatMap(wakes, () => pages)
  })

/** Recomputes chain and fold from the stored text, and compares the end with the session's row (R12). */
export const verifyLog = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, session_id: SessionId, head: Head) {
  const { at, forgotten, problem } = yield* replayStored(sql, session_id, replayStart(session_id), head.newest_rev)
  const proved = { events: at.state.rev, head: hex(at.hash), ...(forgotten === 0 ? {} : { forgotten }) }
  if (problem !== undefined) return { ok: false, ...proved, problem } satisfies Verification
  if (head.last_rev === at.state.rev && head.hash.equals(at.hash)) return { ok: true, ...proved } satisfies Verification
  const reason = `the session's own row ends at ${head.last_rev} with ${hex(head.hash)}`
  return { ok: false, ...proved, problem: { rev: at.state.rev, reason } } satisfies Verification
})
