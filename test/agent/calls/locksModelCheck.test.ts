/**
 * Every state that the lock table can reach with four lanes, each with at most one claim of seven locksets over a
 * workspace and two of its files (R15). The rules that a state must keep are written down here a second time, over sets
 * of files.
 */
import { assert, it } from "@effect/vitest"
import { Result } from "effect"
import { EDGE, LaneId } from "#schema/Ids.ts"
import { LockRequest } from "#schema/Tool.ts"
import {
  type Claim,
  EMPTY_TABLE,
  enqueue,
  type LockTable,
  makeClaim,
  makeLockset,
  release
} from "#src/agent/calls/locks.ts"

const OWNERS = [EDGE, LaneId.make("core:a"), LaneId.make("core:b"), LaneId.make("core:c")]
const S = (resource: string) => LockRequest.make({ resource, mode: "S" })
const X = (resource: string) => LockRequest.make({ resource, mode: "X" })
const LOCKSETS = [
  [S("workspace")],
  [X("workspace")],
  [S("file:a")],
  [X("file:a")],
  [X("file:b")],
  [X("file:a"), X("file:b")],
  [S("file:a"), X("file:b")]
]

/** What a claim may read and change, as bits: 1 is file a, 2 is file b, 4 is any other. */
const bits = (locks: ReadonlyArray<LockRequest>, mode: LockRequest["mode"]) =>
  locks
    .filter((lock) => lock.mode === mode)
    .reduce((sum, { resource }) => sum | (resource === "workspace" ? 7 : resource === "file:a" ? 1 : 2), 0)

interface Known extends Claim {
  readonly owner: number
  readonly letter: string
  readonly reads: number
  readonly changes: number
}

const CLAIMS: ReadonlyArray<Known> = OWNERS.flatMap((lane, owner) =>
  LOCKSETS.map((locks, index) => ({
    ...makeClaim(lane, Result.getOrThrow(makeLockset(locks))),
    owner,
    letter: String.fromCodePoint(65 + owner * LOCKSETS.length + index),
    reads: bits(locks, "S"),
    changes: bits(locks, "X")
  }))
)

/** Edge reads files, the core has the whole workspace to itself (D26). */
const dirty = (reader: Known, core: Known) =>
  reader.owner === 0 && reader.changes === 0 && reader.reads !== 7 && core.owner !== 0 && core.changes === 7
const excludes = (a: Known, b: Known) =>
  ((a.changes & (b.changes | b.reads)) | (a.reads & b.changes)) !== 0 && !dirty(a, b) && !dirty(b, a)
const EXCLUDES = new Map(CLAIMS.map((a) => [a, new Set(CLAIMS.filter((b) => excludes(a, b)))]))

type State = LockTable<Known>
const letters = (claims: ReadonlyArray<Known>) => claims.map(({ letter }) => letter)
const nameOf = ({ held, waiting }: State) => `${letters(held).sort().join("")}|${letters(waiting).join("")}`

/** The claims that must go before a waiting one is granted. */
const ahead = ({ held, waiting }: State, claim: Known) =>
  [...held, ...waiting.slice(0, waiting.indexOf(claim))].filter((other) => EXCLUDES.get(claim)?.has(other))

const checkState = (state: State) => {
  const { held, waiting } = state
  for (const a of held) {
    for (const b of held) if (a !== b && EXCLUDES.get(a)?.has(b)) assert.fail(`conflict held in ${nameOf(state)}`)
  }
  for (const claim of waiting) {
    if (ahead(state, claim).length === 0) assert.fail(`${claim.letter} waits for nothing in ${nameOf(state)}`)
  }
  if (waiting.length > 0 && held.length === 0) assert.fail(`deadlock in ${nameOf(state)}`)
}

const fail = (before: State, after: State, why: string) => assert.fail(`${nameOf(before)} to ${nameOf(after)}: ${why}`)
const minus = (claims: ReadonlyArray<Known>, claim: Known) => claims.filter((other) => other !== claim)

/** Arrivals change nothing for those who are there, and get all of their locks or none. */
const checkArrival = (before: State, claim: Known, after: State, granted: ReadonlyArray<Known>) => {
  const isHeld = after.held.includes(claim)
  if (isHeld === after.waiting.includes(claim)) fail(before, after, "the claim is not in one place")
  if (isHeld !== (granted.length === 1 && granted[0] === claim)) fail(before, after, "a wrong grant is reported")
  const same = { held: minus(after.held, claim), waiting: minus(after.waiting, claim) }
  if (nameOf(same) !== nameOf(before)) fail(before, after, "an arrival moved another claim")
  for (const waiter of before.waiting) {
    if (isHeld && EXCLUDES.get(waiter)?.has(claim)) fail(before, after, "a newcomer overtook a waiter")
  }
}

/**
 * Departures move claims from waiting to held only. Nobody gets new claims ahead of it, and who waited for the one that
 * left has fewer. As arrivals add none, everyone is granted after finitely many releases: no starvation under fair
 * release.
 */
const checkDeparture = (before: State, gone: Known, after: State, granted: ReadonlyArray<Known>) => {
  const stayed = minus(before.waiting, gone)
  const expected = stayed.filter((claim) => !granted.includes(claim))
  if (letters(after.waiting).join("") !== letters(expected).join("")) fail(before, after, "the queue changed its order")
  const heldNow = nameOf({ held: [...minus(before.held, gone), ...granted], waiting: [] })
  if (nameOf({ held: after.held, waiting: [] }) !== heldNow) fail(before, after, "a wrong grant is reported")
  for (const waiter of after.waiting) {
    const now = ahead(after, waiter)
    const then = ahead(before, waiter)
    if (!now.every((claim) => then.includes(claim))) fail(before, after, "a waiter was overtaken")
    if (now.length !== then.length - (then.includes(gone) ? 1 : 0))
      fail(before, after, "a waiter lost or kept too much")
  }
}

it("keeps its promises in each of more than 50,000 states: no conflict, no deadlock, no starvation (R15)", () => {
  const seen = new Set([nameOf(EMPTY_TABLE)])
  const open: Array<State> = [EMPTY_TABLE]
  let transitions = 0
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    checkState(state)
    const live = [...state.held, ...state.waiting]
    const arrivals = CLAIMS.filter(({ owner }) => !live.some((claim) => claim.owner === owner))
    const changes = [
      ...arrivals.map((claim) => ({ check: checkArrival, claim, after: enqueue<Known>(state, claim) })),
      ...live.map((claim) => ({ check: checkDeparture, claim, after: release(state, claim) }))
    ]
    for (const { after, check, claim } of changes) {
      check(state, claim, after.table, after.granted)
      transitions++
      const name = nameOf(after.table)
      if (!seen.has(name)) {
        seen.add(name)
        open.push(after.table)
      }
    }
  }
  assert.isAtLeast(seen.size, 50_000)
})
