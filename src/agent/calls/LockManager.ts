/** The locks of one agent process, in memory only: a crash forgets them with the work that they guarded. */
import { Context, Deferred, Effect, Layer, Result, Schema } from "effect"
import { LaneId } from "#schema/Ids.ts"
import type { LockRequest } from "#schema/Tool.ts"
import { logDeath } from "#src/shared/background.ts"
import type { InvalidLock } from "#src/shared/image/lockKey.ts"
import {
  type Claim,
  dirtyReads,
  EMPTY_TABLE,
  enqueue,
  type LockTable,
  makeClaim,
  makeLockset,
  obstacles,
  release,
  type Settled
} from "./locks.ts"

/** Locksets that wait at once in one agent; the next one is refused as busy. */
export const LOCK_WAITERS_MAX = 1024
/** The longest wait for locks that a caller may ask for, the longest timeout of a tool (E12). */
export const LOCK_WAIT_MS_MAX = 3_600_000

/** The locks did not come free in time. Nothing was taken and nothing ran. */
export class LockBusy extends Schema.TaggedError<LockBusy>()("LockBusy", {
  /** The requested resources that are taken. */
  resources: Schema.Array(Schema.String),
  /** The lanes that hold it or wait ahead for it. */
  holders: Schema.Array(LaneId),
  /** How long the call was ready to wait, in milliseconds; 0 also when the queue was full. */
  waited_ms: Schema.Natural
}) {
  override get message() {
    const holders = this.holders.join(", ")
    return `LOCK_BUSY: ${this.resources.join(", ")} in use by ${holders}; waited ${this.waited_ms} ms. Try again later`
  }
}

/** A lockset that is held, as its user sees it. */
export interface Grant {
  readonly lane: LaneId
  /** Under their canonical keys, for ToolCallCommitted. */
  readonly locks: ReadonlyArray<LockRequest>
  /**
   * Whether a core has held `workspace:X` at any moment of this grant so far, so that what was read may be half changed
   * (D26). It never turns back: ask when the locks are granted for ToolCallCommitted, and after the run for
   * ToolResultCommitted.
   */
  readonly dirty: Effect.Effect<boolean>
}

/** A claim as the operator sees it. */
interface ClaimView {
  readonly lane: LaneId
  readonly locks: ReadonlyArray<LockRequest>
}

interface Ticket extends Claim {
  readonly granted: Deferred.Deferred<void, LockBusy>
  dirty: boolean
}

const busy = (table: LockTable<Ticket>, ticket: Ticket, waited_ms: number) => {
  const { lanes, resources } = obstacles(table, ticket)
  return new LockBusy({ resources, holders: lanes, waited_ms })
}

/** Wakes the lanes whose locks were granted, one after the other. */
const makeWaking = () => {
  // A deferred resumes its fiber inside the call that completes it, and that fiber may let go of its locks at once.
  // Waking from one list keeps a long queue from running, one lane inside the other, on a single stack.
  const woken: Array<Ticket> = []
  let waking = false
  return (tickets: ReadonlyArray<Ticket>) => {
    woken.push(...tickets)
    if (waking) return
    waking = true
    for (let next = woken.shift(); next !== undefined; next = woken.shift())
      Deferred.doneUnsafe(next.granted, Effect.void)
    waking = false
  }
}

/**
 * Grants whole locksets or nothing, in one fair queue (D25). Not re-entrant: a lane conflicts with itself
 * too.
 */
export class LockManager extends Context.Service<
  LockManager,
  {
    /**
     * Runs `use` under the locks, waiting at most `wait_ms` milliseconds for them (cut to an hour; 0 does not wait).
     * However `use` ends (success, failure, defect, interruption), all its locks are free, and the next claims in
     * the queue hold them, before anything else runs. An interruption or a timeout while it waits leaves no trace.
     *
     * Fails with `LockBusy` when the time is up or too many wait already, with `InvalidLock` when a key means nothing.
     */
    withLocks<A, E, R>(
      lane: LaneId,
      locks: ReadonlyArray<LockRequest>,
      options: { readonly wait_ms: number },
      use: (grant: Grant) => Effect.Effect<A, E, R>
    ): Effect.Effect<A, E | LockBusy | InvalidLock, R>
    /** The claims that hold their locks now, in the order in which they got them. */
    readonly held: Effect.Effect<ReadonlyArray<ClaimView>>
    /** The claims that wait, in order of arrival. */
    readonly waiting: Effect.Effect<ReadonlyArray<ClaimView>>
  }
>()("choir/agent/LockManager") {
  static readonly layer = Layer.sync(LockManager, () => {
    let table: LockTable<Ticket> = EMPTY_TABLE
    const wake = makeWaking()

    // The only place where the table changes. It is synchronous, and the new table is before the first waiter is
    // told, so that no fiber can see half a change.
    const apply = (settled: Settled<Ticket>) => {
      table = settled.table
      if (settled.granted.length === 0) return
      for (const reader of dirtyReads(table)) reader.dirty = true
      wake(settled.granted)
    }

    // A claim that waits is withdrawn. A grant that came in the very turn in which the time was up counts.
    const expire = (ticket: Ticket, wait_ms: number) => {
      if (table.waiting.includes(ticket)) Deferred.doneUnsafe(ticket.granted, Effect.fail(busy(table, ticket, wait_ms)))
    }

    // One timer that dies with the wait, where a race would cost two fibers.
    const granted = Effect.fnUntraced(function* (ticket: Ticket, wait_ms: number) {
      const timer = yield* Effect.sleep(wait_ms).pipe(
        Effect.andThen(Effect.sync(() => expire(ticket, wait_ms))),
        logDeath("the timer of a lock"),
        // At once, or the time would count from whenever the scheduler comes to it.
        Effect.forkChild({ startImmediately: true })
      )
      yield* Effect.onExit(Deferred.await(ticket.granted), () => Effect.sync(() => timer.interruptUnsafe()))
    })

    const withLocks: LockManager["Service"]["withLocks"] = <A, E, R>(
      lane: LaneId,
      locks: ReadonlyArray<LockRequest>,
      options: { readonly wait_ms: number },
      use: (grant: Grant) => Effect.Effect<A, E, R>
    ) =>
      Effect.uninterruptibleMask((restore): Effect.Effect<A, E | LockBusy | InvalidLock, R> => {
        const lockset = makeLockset(locks)
        if (Result.isFailure(lockset)) return Effect.fail(lockset.failure)
        const wait_ms = Math.min(Math.max(0, Math.trunc(options.wait_ms)), LOCK_WAIT_MS_MAX)
        const ticket = {
          ...makeClaim(lane, lockset.success),
          granted: Deferred.makeUnsafe<void, LockBusy>(),
          dirty: false
        }
        const settled = enqueue(table, ticket)
        const waits = settled.granted.length === 0
        if (waits && (wait_ms === 0 || table.waiting.length >= LOCK_WAITERS_MAX))
          return Effect.fail(busy(table, ticket, 0))
        apply(settled)
        const run = Effect.suspend(() =>
          use({
            lane,
            locks: ticket.locks.map(({ request }) => request),
            dirty: Effect.sync(() => ticket.dirty)
          })
        )
        return restore(waits ? Effect.andThen(granted(ticket, wait_ms), run) : run).pipe(
          Effect.ensuring(Effect.sync(() => apply(release(table, ticket))))
        )
      })

    return LockManager.of({
      withLocks,
      held: Effect.sync(() => views(table.held)),
      waiting: Effect.sync(() => views(table.waiting))
    })
  })
}

const views = (tickets: ReadonlyArray<Ticket>): ReadonlyArray<ClaimView> =>
  tickets.map(({ lane, locks }) => ({ lane, locks: locks.map(({ request }) => request) }))
