/**
 * Folded states as rows, so that a restart of choird and of an agent folds only what came after the newest (docs/protocol.md, Snapshots). They
 * are a shortcut and never evidence: one that does not fit the log is passed over, and `session verify` reads none.
 */
import { Effect, Queue, Result } from "effect"
import { SqlClient } from "effect/sql"
import type { Snapshot } from "#schema/AgentApi.ts"
import type { SessionId } from "#schema/Ids.ts"
import { restarted } from "#src/shared/background.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { count } from "#src/choird/logs/metrics.ts"
import { genesis, hex } from "#src/shared/events/hashChain.ts"
import { decodeState, encodeState, FOLD_VERSION } from "#src/shared/session/snapshot.ts"
import { stateBytes } from "#src/shared/session/stateBytes.ts"
import { oldestNamed } from "#src/shared/session/namedRevs.ts"
import { type Replayed, readDigests } from "./storedEvents.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Canonical bytes of a page of the tail that INIT_HELLO answers, so that the whole reply stays below BODY_BYTES_MAX. */
export const TAIL_PAGE_BYTES_MAX = 896 * 1024
/** Events and time of a live session after which choird writes its state down again (R5). */
export const SNAPSHOT_EVENTS = 500
export const SNAPSHOT_MS = 60_000
/** The largest state that is stored and sent. The fold keeps every state within it, and a row that is larger is of no fold. */
export const SNAPSHOT_BYTES_MAX = 896 * 1024
/** States that wait to be written; beyond this the oldest are dropped, since a newer one follows. */
const SNAPSHOTS_QUEUED_MAX = 32
/** Sessions whose folded state choird keeps in memory; more agents than that never run at once on one host. */
export const SESSION_STATES_MAX = 128

/** A snapshot's row with the digest that the log has at its revision. */
export interface SnapshotRow {
  readonly rev: number
  readonly hash: Uint8Array
  readonly fold_version: number
  readonly snapshot: unknown
  readonly chained: Uint8Array | null
}

/** Where a replay may start instead of at the first event, or why it may not. */
export const usable = ({ chained, fold_version, hash, rev, snapshot }: SnapshotRow): Result.Result<Replayed, string> =>
  chained !== null && Buffer.from(hash).equals(chained)
    ? Result.map(decodeState(rev, fold_version, snapshot), (state) => ({ hash: Buffer.from(hash), state }))
    : Result.fail("the log has another event there")

/** The newest usable snapshot of a session up to a revision. */
export const newestSnapshot = Effect.fnUntraced(function* (session_id: SessionId, until: number) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<SnapshotRow>`SELECT s.rev, s.hash, s.fold_version, s.snapshot, e.hash AS chained
    FROM choir_control.session_snapshots AS s
    LEFT JOIN choir_control.session_events AS e ON e.session_id = s.session_id AND e.rev = s.rev
    WHERE s.session_id = ${session_id} AND s.rev <= ${until} ORDER BY s.rev DESC`
  for (const row of rows) {
    const found = usable(row)
    if (Result.isSuccess(found)) return found.success
    yield* Effect.logWarning(`the snapshot of session ${session_id} at ${row.rev} is not used: ${found.failure}`)
  }
  return undefined
})

/** The state that an agent starts from, and its size in bytes of JSON. */
export interface Offer {
  readonly snapshot: Snapshot
  readonly bytes: number
}

/** The newest snapshot as INIT_HELLO answers it, with the place that the tail follows; none where it would take too much of the reply. */
export const offerSnapshot = Effect.fnUntraced(function* (session_id: SessionId, until: number) {
  const newest = yield* newestSnapshot(session_id, until)
  if (newest === undefined) return undefined
  const { hash, state } = newest
  if (stateBytes(state) > SNAPSHOT_BYTES_MAX) return undefined
  const text = Result.getOrThrow(encodeState(state))
  const bytes = Buffer.byteLength(text)
  const rev = oldestNamed(state) - 1
  const before = rev === 0 ? genesis(session_id) : (yield* readDigests(session_id, [rev])).get(rev)
  if (before === undefined) return undefined
  const tail_after = { rev, hash: hex(before) }
  const snapshot = { rev: state.rev, hash: hex(hash), fold_version: FOLD_VERSION, state: JSON.parse(text), tail_after }
  return { snapshot, bytes } satisfies Offer
})

/** Stores a state, beside the newest one before it, and removes all others. */
const storeSnapshot = Effect.fnUntraced(function* (session_id: SessionId, { hash, state }: Replayed) {
  const sql = yield* SqlClient.SqlClient
  const { rev } = state
  const left = (outcome: "too_large" | "failed", reason: string) =>
    Effect.andThen(
      count("snapshots", { outcome }),
      Effect.logWarning(`no snapshot of session ${session_id} at ${rev}: ${reason}`)
    )
  // Nothing is written as JSON before it is known to be small: that takes the one thread that all agents share.
  const most = stateBytes(state)
  if (most > SNAPSHOT_BYTES_MAX) return yield* left("too_large", `its state has up to ${most} bytes`)
  const text = encodeState(state)
  if (Result.isFailure(text)) return yield* left("failed", text.failure)
  const stored = sql`WITH left_out AS (
      DELETE FROM choir_control.session_snapshots WHERE session_id = ${session_id} AND rev IS DISTINCT FROM
        (SELECT max(rev) FROM choir_control.session_snapshots WHERE session_id = ${session_id} AND rev < ${rev})
        AND rev <> ${rev}
    )
    INSERT INTO choir_control.session_snapshots (session_id, rev, hash, fold_version, snapshot)
    VALUES (${session_id}, ${rev}, ${hash}, ${FOLD_VERSION}, ${text.success}::jsonb)
    ON CONFLICT (session_id, rev) DO UPDATE
      SET hash = excluded.hash, fold_version = excluded.fold_version, snapshot = excluded.snapshot`
  const told = Effect.andThen(
    count("snapshots", { outcome: "stored" }),
    Effect.logDebug(`snapshot of session ${session_id} at ${rev}: ${Buffer.byteLength(text.success)} bytes`)
  )
  return yield* Effect.matchEffect(stored, {
    onFailure: ({ message }) => left("failed", message),
    onSuccess: () => told
  })
})

/** When a session's state was last written down, by this life of choird. */
interface Mark {
  readonly rev: number
  readonly at_ms: number
}

/** Whether a state is to be written: enough was added, or something was and it is a while since. */
export const isDue = (mark: Mark, rev: number, now_ms: number): boolean =>
  rev - mark.rev >= SNAPSHOT_EVENTS || (rev > mark.rev && now_ms - mark.at_ms >= SNAPSHOT_MS)

export interface Snapshots {
  /** Takes note of a committed state, which is written in the background when it is due. */
  readonly progressed: (session_id: SessionId, at: Replayed) => Effect.Effect<void>
}

/** Writes beside the appends, one at a time, until the scope closes. */
export const makeSnapshots = Effect.gen(function* () {
  const marks = new BoundedMap<SessionId, Mark>(SESSION_STATES_MAX)
  const waiting = yield* Queue.sliding<readonly [SessionId, Replayed]>(SNAPSHOTS_QUEUED_MAX)
  yield* Queue.take(waiting).pipe(
    Effect.flatMap(([session_id, at]) => storeSnapshot(session_id, at)),
    Effect.forever,
    restarted("the writing of snapshots"),
    Effect.forkScoped
  )
  const progressed = Effect.fnUntraced(function* (session_id: SessionId, at: Replayed) {
    const now_ms = yield* monotonicMs
    const last = marks.get(session_id)
    if (!isDue(last ?? { rev: 0, at_ms: now_ms }, at.state.rev, now_ms))
      return marks.set(session_id, last ?? { rev: 0, at_ms: now_ms })
    marks.set(session_id, { rev: at.state.rev, at_ms: now_ms })
    yield* Queue.offer(waiting, [session_id, at])
  })
  return { progressed } satisfies Snapshots
})
