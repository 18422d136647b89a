/**
 * The lock rules of an agent as plain data and functions (D25, D26, D27): what a lock reaches, which claims
 * exclude each other, and the one queue that decides who goes next. {@link LockManager} is the only place that acts on
 * it.
 *
 * Two claims exclude each other for as long as both live, whether they hold or wait. So an answer, once given,
 * stays: a claim that waits has only fewer claims ahead of it as time goes by, and none can overtake it.
 */
import { Result } from "effect"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { LockRequest } from "#schema/Tool.ts"
import {
  FILE_KEY,
  type InvalidLock,
  invalidLock,
  lockKey,
  LOCKSET_LOCKS_MAX,
  WORKSPACE_KEY
} from "#src/shared/image/lockKey.ts"

interface Lock {
  /** With its canonical key, as an event or a person sees it. */
  readonly request: LockRequest
  readonly key: string
  /** Its place in the workspace, "" for the root; `undefined` for what is outside. */
  readonly path: string | undefined
  readonly exclusive: boolean
}

/** The locks of one tool call under their canonical keys, each key once. */
type Lockset = ReadonlyArray<Lock>

/** Brings every key into its canonical form. Of two locks on one key the exclusive one stays. */
export const makeLockset = (requests: ReadonlyArray<LockRequest>): Result.Result<Lockset, InvalidLock> => {
  const locks: Array<Lock> = []
  for (const given of requests) {
    const { mode, resource } = given
    const found = lockKey(resource)
    if (Result.isFailure(found)) return Result.fail(found.failure)
    const key = found.success
    const request = key === resource ? given : LockRequest.make({ resource: key, mode })
    const path = key === WORKSPACE_KEY ? "" : key.startsWith(FILE_KEY) ? key.slice(FILE_KEY.length) : undefined
    const lock = { request, key, path, exclusive: mode === "X" }
    const same = locks.findIndex((other) => other.key === key)
    if (same === -1) locks.push(lock)
    else if (lock.exclusive) locks[same] = lock
    if (locks.length > LOCKSET_LOCKS_MAX) return invalidLock(key, "too_many")
  }
  return Result.succeed(locks)
}

/** One tool call's request for its locks. Claims are told apart by identity, a lane may have several. */
export interface Claim {
  readonly lane: LaneId
  readonly locks: Lockset
  /**
   * Whether edge only reads single files and folders, which a core's `workspace:X` neither stops nor waits for (D26).
   */
  readonly dirtyReader: boolean
}

export const makeClaim = (lane: LaneId, locks: Lockset): Claim => ({
  lane,
  locks,
  dirtyReader:
    lane === EDGE &&
    locks.length > 0 &&
    locks.every(({ exclusive, path }) => !exclusive && path !== undefined && path !== "")
})

const takesWorkspace = (lock: Lock): boolean => lock.exclusive && lock.path === ""

const SLASH = 47

/** Whether two keys name the same thing, or one a folder that the other is in. */
const meet = (x: Lock, y: Lock): boolean => {
  if (x.path === undefined || y.path === undefined) return x.key === y.key
  if (x.path.length === y.path.length) return x.path === y.path
  const [outer, inner] = x.path.length < y.path.length ? [x.path, y.path] : [y.path, x.path]
  return outer === "" || (inner.charCodeAt(outer.length) === SLASH && inner.startsWith(outer))
}

/**
 * The one pair of locks that would clash and does not (D26). It holds in both directions: the reader does not wait for
 * a core that holds or awaits `workspace:X`, nor such a core for the reader. Against all other locks a reader's are
 * like any.
 */
const forgiven = (reader: Claim, other: Claim, lock: Lock): boolean =>
  reader.dirtyReader && other.lane !== EDGE && takesWorkspace(lock)

const clash = (a: Claim, x: Lock, b: Claim, y: Lock): boolean =>
  (x.exclusive || y.exclusive) && meet(x, y) && !forgiven(a, b, y) && !forgiven(b, a, x)

/** Whether two claims may not be held at once. Symmetric, and the same for two claims of one lane. */
export const conflicts = (a: Claim, b: Claim): boolean => {
  for (const x of a.locks) {
    for (const y of b.locks) if (clash(a, x, b, y)) return true
  }
  return false
}

/** Every live claim of an agent. A claim is in one of the two lists with all of its locks, never with some. */
export interface LockTable<C extends Claim> {
  readonly held: ReadonlyArray<C>
  /** In order of arrival. */
  readonly waiting: ReadonlyArray<C>
}

export const EMPTY_TABLE: LockTable<never> = { held: [], waiting: [] }

/** A table after a change, and the claims that the change granted, in order of arrival. */
export interface Settled<C extends Claim> {
  readonly table: LockTable<C>
  readonly granted: ReadonlyArray<C>
}

const excluded = (claim: Claim, others: ReadonlyArray<Claim>): boolean => {
  for (const other of others) if (conflicts(claim, other)) return true
  return false
}

/** Grants the claim unless it conflicts with one that holds or waits (D25); then it waits behind all of them. */
export const enqueue = <C extends Claim>({ held, waiting }: LockTable<C>, claim: C): Settled<C> =>
  excluded(claim, held) || excluded(claim, waiting)
    ? { table: { held, waiting: [...waiting, claim] }, granted: [] }
    : { table: { held: [...held, claim], waiting }, granted: [claim] }

/**
 * Forgets a claim, whether it held or still waited, and grants what only it kept back. Only claims that conflict with
 * it can be affected. A claim that is not in the table changes nothing.
 */
export const release = <C extends Claim>(table: LockTable<C>, claim: C): Settled<C> => {
  const held = table.held.filter((other) => other !== claim)
  const waiting: Array<C> = []
  const granted: Array<C> = []
  for (const waiter of table.waiting) {
    if (waiter === claim) continue
    if (!conflicts(waiter, claim) || excluded(waiter, held) || excluded(waiter, waiting)) waiting.push(waiter)
    else {
      granted.push(waiter)
      held.push(waiter)
    }
  }
  return { table: { held, waiting }, granted }
}

/** The held claims that read files while a core may be changing them, because it holds `workspace:X` now (D26). */
export const dirtyReads = <C extends Claim>({ held }: LockTable<C>): ReadonlyArray<C> =>
  held.some(({ lane, locks }) => lane !== EDGE && locks.some(takesWorkspace))
    ? held.filter(({ dirtyReader }) => dirtyReader)
    : []

/** The resources of a waiting claim that are taken, and the lanes that hold them or wait ahead of it. Each once. */
export const obstacles = <C extends Claim>({ held, waiting }: LockTable<C>, claim: C) => {
  const place = waiting.indexOf(claim)
  const ahead = [...held, ...(place === -1 ? waiting : waiting.slice(0, place))].filter((c) => conflicts(claim, c))
  const taken = claim.locks.filter((x) => ahead.some((other) => other.locks.some((y) => clash(claim, x, other, y))))
  return { resources: taken.map(({ request }) => request.resource), lanes: [...new Set(ahead.map(({ lane }) => lane))] }
}
