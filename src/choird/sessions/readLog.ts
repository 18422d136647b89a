/** The reading side of a session's log: its head, its events as they are printed, and the proof of them. */
import { Effect, Option, Result, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { Snapshot } from "#schema/AgentApi.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { SessionId } from "#schema/Ids.ts"
import type { LogLine } from "#schema/SessionsApi.ts"
import type { Verification } from "#schema/SessionsApi.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { useDatabase } from "#src/choird/database/DatabaseAway.ts"
import {
  eventOf,
  type EventRow,
  ForgottenPayloads,
  type NoEvent,
  opaqueOf,
  readRow
} from "#src/shared/events/eventRow.ts"
import { genesis, hex } from "#src/shared/events/hashChain.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"
import { archivedLog, archiveOf, archivePath } from "./archivedLog.ts"
import { revsOfWords, wordsOf } from "./jobSummaries.ts"
import { newerEvents, newerFrom } from "./newerEvents.ts"
import { SessionStates } from "./SessionStates.ts"
import { offerSnapshot, TAIL_PAGE_BYTES_MAX } from "./snapshots.ts"
import { chainLog, type Log, readNamed, readPage, replayLog, replayStart, storedLog } from "./storedEvents.ts"
import type { SessionState } from "#src/shared/session/State.ts"

/** The newest event of a session, as the session's own row has it. */
export interface Head {
  readonly last_rev: number
  readonly hash: Buffer
  /** The greatest revision that is stored; equal to `last_rev` unless the tables were changed by hand. */
  readonly newest_rev: number
  /** Whether its events are in a file and no longer in the table. */
  readonly is_archived: boolean
}

export const headHash = (session_id: SessionId, head_hash: Uint8Array | null): Buffer =>
  head_hash === null ? genesis(session_id) : Buffer.from(head_hash)

interface HeadRow {
  readonly last_rev: number
  readonly head_hash: Uint8Array | null
  readonly newest_rev: number | null
  readonly is_archived: boolean
}

export class SessionUnknown extends Schema.TaggedError<SessionUnknown>()("SessionUnknown", { session_id: SessionId }) {
  override get message() {
    return `there is no session ${this.session_id}`
  }
  get hint() {
    return "choirctl session list"
  }
}

export const readHead = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<HeadRow>`SELECT last_rev, head_hash, archive IS NOT NULL AS is_archived,
      (SELECT max(rev) FROM choir_control.session_events WHERE session_id = ${session_id}) AS newest_rev
    FROM choir_control.sessions WHERE session_id = ${session_id}`
  if (row === undefined) return yield* new SessionUnknown({ session_id })
  const { head_hash, is_archived, last_rev, newest_rev } = row
  return { last_rev, hash: headHash(session_id, head_hash), newest_rev: newest_rev ?? 0, is_archived } satisfies Head
})

/** The log of an archived session, whose events are in a file; undefined for one whose events are in the table. */
const fileLog = Effect.fnUntraced(function* (
  session_id: SessionId,
  { is_archived, last_rev }: Pick<Head, "is_archived" | "last_rev">
) {
  if (!is_archived) return undefined
  const { home } = yield* ConfigStore
  const archive = yield* archiveOf(session_id)
  return archive === undefined ? undefined : archivedLog(archivePath(home, archive), last_rev)
})

/** The state at the head of a session, proved from its log as far as that holds. */
export const proveState = Effect.fnUntraced(function* (session_id: SessionId) {
  const head = yield* readHead(session_id)
  const log = yield* fileLog(session_id, head)
  if (log !== undefined) return yield* Effect.orDie(replayLog(log, replayStart(session_id)))
  return yield* (yield* SessionStates).at(session_id, head.last_rev, head.hash)
})

/** The state at the head of a session. A log that only a later Choir knows is refused, and a broken one is a defect. */
export const readState = Effect.fnUntraced(function* (session_id: SessionId) {
  const { at, problem } = yield* proveState(session_id)
  if (problem === undefined) return at.state
  if (problem.newer !== undefined) return yield* yield* newerFrom(session_id, problem.newer)
  return yield* Effect.die(new Error(`the log of ${session_id} is broken at ${problem.rev}: ${problem.reason}`))
})

/** An event that was checked when it was stored. `verify` says more about one that was changed since. */
const storedEvent = Effect.fnUntraced(function* (session_id: SessionId, row: EventRow) {
  const event = Result.flatMap(
    Result.mapError(readRow(row), (reason): NoEvent => ({ reason })),
    eventOf
  )
  if (Result.isSuccess(event)) return event.success
  const { newer, reason } = event.failure
  if (newer === undefined) return yield* Effect.die(new Error(`stored event ${row.rev}: ${reason}`))
  const first = yield* newerEvents(session_id)
  return yield* first ?? (yield* newerFrom(session_id, newer))
})

/** The words of each running job, which are in the log. */
export const readJobWords = Effect.fnUntraced(
  function* (session_id: SessionId, state: SessionState) {
    const revs = revsOfWords(state)
    const rows = revs.length === 0 ? [] : yield* readNamed(session_id, revs)
    return wordsOf(state, yield* Effect.forEach(rows, (row) => storedEvent(session_id, row)))
  },
  Effect.catchTag("NewerEvents", Effect.die)
)

/** A page of stored events, whether more follow, and on the first one the snapshot that the tail belongs to. */
export interface Tail {
  readonly events: ReadonlyArray<ChoirEvent>
  readonly more: boolean
  readonly snapshot?: Snapshot
}

/** Events from a revision up to the head, as many as fit into `bytes_max`. */
export const tailPage = Effect.fnUntraced(function* (
  session_id: SessionId,
  from: number,
  last_rev: number,
  bytes_max = TAIL_PAGE_BYTES_MAX
) {
  if (from > last_rev) return { events: [], more: false } satisfies Tail
  const rows = yield* readPage(session_id, Math.max(1, from), bytes_max)
  const events = yield* Effect.forEach(rows, (row) => storedEvent(session_id, row))
  return { events, more: (events.at(-1)?.rev ?? last_rev) < last_rev } satisfies Tail
})

/** The snapshot that a new epoch starts from, if there is one, and the first page of the tail. */
export const firstTail = Effect.fnUntraced(function* (session_id: SessionId) {
  const { last_rev } = yield* readHead(session_id)
  const offer = last_rev === 0 ? undefined : yield* offerSnapshot(session_id, last_rev)
  if (offer === undefined) return yield* tailPage(session_id, 1, last_rev)
  const { bytes, snapshot } = offer
  const from = snapshot.tail_after.rev + 1
  const room = TAIL_PAGE_BYTES_MAX - bytes
  // A page holds at least one event, however large it is: beside a large state it is left to the next request.
  if (room < EVENT_BYTES_MAX) return { snapshot, events: [], more: from <= last_rev } satisfies Tail
  const page = yield* tailPage(session_id, from, last_rev, room)
  return { snapshot, ...page } satisfies Tail
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

/** The events of a complete log, from a revision on. */
const printedLog = <E>(log: Log<E>, from: number): Stream.Stream<LogLine, E> => Stream.mapEffect(log.rows(from), lineOf)

/** Events from a revision on, page after page, and at each wake those that came since. */
const printedEvents = Effect.fnUntraced(function* (session_id: SessionId, from: number, wakes: Stream.Stream<void>) {
  const onDatabase = yield* useDatabase
  let next = from
  const page = Effect.gen(function* () {
    const rows = yield* readPage(session_id, next)
    const lines = yield* Effect.forEach(rows, lineOf)
    next += lines.length
    return [lines, lines.length === 0 ? Option.none() : Option.some(undefined)] as const
  })
  return Stream.flatMap(wakes, () => Stream.paginate(undefined, () => onDatabase(page)))
})

/** Any number may come from an operator. Nothing lies after the end but what is appended later. */
const firstRev = (options: { readonly from?: number; readonly last?: number }, last_rev: number): number => {
  const wanted = Math.max(1, options.from ?? 1, options.last === undefined ? 1 : last_rev + 1 - options.last)
  return Math.min(Math.trunc(wanted), last_rev + 1)
}

/** The stored events of a session in order, and at each wake those that came since. */
export const readEvents = Effect.fnUntraced(function* (
  session_id: SessionId,
  options: { readonly from?: number; readonly last?: number },
  wakes: Stream.Stream<void>
) {
  const head = yield* readHead(session_id)
  const log = yield* fileLog(session_id, head)
  const from = firstRev(options, head.last_rev)
  return log === undefined ? yield* printedEvents(session_id, from, wakes) : Stream.orDie(printedLog(log, from))
})

/** Recomputes chain and fold from the stored text, and compares the end with the session's row (R12). */
export const verifyLog = Effect.fnUntraced(function* <E, R>(
  session_id: SessionId,
  head: Pick<Head, "last_rev" | "hash">,
  log: Log<E, R>
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
  const reason = `the database says that the log ends at revision ${head.last_rev} with the hash ${hex(head.hash)}`
  return { ok: false, ...proved, problem: { rev: chained.rev, reason } } satisfies Verification
})

/** Verifies a session, wherever its events are. */
export const verifySession = Effect.fnUntraced(function* (session_id: SessionId) {
  const head = yield* readHead(session_id)
  const log = yield* fileLog(session_id, head)
  if (log !== undefined) return yield* verifyLog(session_id, head, log)
  return yield* verifyLog(session_id, head, storedLog(session_id, head.newest_rev))
})
