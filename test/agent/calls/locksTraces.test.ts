/**
 * Random histories of the lock table, and of the service around it, against a second model of the rules (R16). That
 * model knows no keys and no prefixes: a resource is the set of things in it, and after each change it looks at
 * everyone again.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Random, Result } from "effect"
import { TestClock } from "effect/testing"
import { EDGE, LaneId } from "#schema/Ids.ts"
import { LockRequest } from "#schema/Tool.ts"
import { LockBusy, LockManager } from "#src/agent/calls/LockManager.ts"
import {
  type Claim,
  EMPTY_TABLE,
  enqueue,
  type LockTable,
  makeClaim,
  makeLockset,
  release
} from "#src/agent/calls/locks.ts"
import type { InvalidLock } from "#src/shared/image/lockKey.ts"

const TABLE_TRACES = 100_000
const SERVICE_TRACES = 1000
const STEPS = 12
const LIVE_MAX = 6
const TICK_MS = 500

/** Spellings of a resource, and the things in it: d, d/x, d/x/p, d/y, e, the rest of the workspace, and two outside. */
const RESOURCES = [
  { spellings: ["workspace", "file:.", "file:/workspace"], things: 0b00111111, isFile: false },
  { spellings: ["file:d", "file:./d/", "file:d/x/.."], things: 0b00001111, isFile: true },
  { spellings: ["file:d/x", "file:d//x"], things: 0b00000110, isFile: true },
  { spellings: ["file:d/x/p", "file:/workspace/d/./x/p"], things: 0b00000100, isFile: true },
  { spellings: ["file:d/y"], things: 0b00001000, isFile: true },
  { spellings: ["file:e", "file:d/../e"], things: 0b00010000, isFile: true },
  { spellings: ["choirtmp", "file:.choirtmp/send/a"], things: 0b01000000, isFile: false },
  { spellings: ["browser_tab"], things: 0b10000000, isFile: false }
]
const WORKSPACE = RESOURCES[0]?.things ?? 0
const LANES = [EDGE, ...["a", "b", "c"].map((job) => LaneId.make(`core:${job}`))]

interface Wish {
  readonly lane: LaneId
  readonly locks: ReadonlyArray<LockRequest>
  readonly shared: number
  readonly exclusive: number
  readonly takesWorkspace: boolean
  /** What it has exclusively besides `workspace:X`. */
  readonly named: number
  readonly onlyReadsFiles: boolean
}

interface Entry {
  readonly id: number
  readonly wish: Wish
  readonly deadline: number
  held: boolean
  dirty: boolean
}

const readsDirty = (reader: Wish, core: Wish) =>
  reader.lane === EDGE && reader.onlyReadsFiles && core.lane !== EDGE && core.takesWorkspace
const overlap = (a: Wish, b: Wish) => ((a.exclusive & (b.exclusive | b.shared)) | (a.shared & b.exclusive)) !== 0
const excludes = (a: Wish, b: Wish) => {
  if (readsDirty(a, b)) return (a.shared & b.named) !== 0
  if (readsDirty(b, a)) return (b.shared & a.named) !== 0
  return overlap(a, b)
}

/** Everyone alive in order of arrival, held or not. */
class Reference {
  entries: ReadonlyArray<Entry> = []

  arrive(entry: Entry) {
    this.entries = [...this.entries, entry]
    this.settle()
  }

  leave(entry: Entry) {
    this.entries = this.entries.filter((other) => other !== entry)
    this.settle()
  }

  /** The waiters whose time is up; an earlier one's leaving may still grant a later one in time. */
  expire(now: number): ReadonlyArray<Entry> {
    const late: Array<Entry> = []
    for (const entry of this.entries.toSorted((a, b) => a.deadline - b.deadline)) {
      if (entry.held || entry.deadline > now) continue
      late.push(entry)
      this.leave(entry)
    }
    return late
  }

  private settle() {
    for (const [place, entry] of this.entries.entries()) {
      if (entry.held) continue
      entry.held = this.entries.every(
        (other, index) => index === place || !(other.held || index < place) || !excludes(entry.wish, other.wish)
      )
    }
    for (const { wish } of this.entries.filter(({ held }) => held)) {
      for (const entry of this.entries) if (entry.held && readsDirty(entry.wish, wish)) entry.dirty = true
    }
  }
}

type Dice = (sides: number) => number
const dice = Effect.map(
  Random.Random,
  (random): Dice =>
    (sides) =>
      Math.floor(random.nextDoubleUnsafe() * sides)
)
const pick = <A>(roll: Dice, from: ReadonlyArray<A>) => from[roll(from.length)] as A

const makeWish = (roll: Dice): Wish => {
  const locks = Array.from({ length: pick(roll, [0, 1, 1, 1, 1, 2, 2, 3]) }, () => ({
    resource: pick(roll, RESOURCES),
    exclusive: roll(2) === 0
  }))
  const things = (of: typeof locks) => of.reduce((sum, { resource }) => sum | resource.things, 0)
  const exclusive = locks.filter((lock) => lock.exclusive)
  return {
    lane: pick(roll, LANES),
    locks: locks.map(({ exclusive, resource }) =>
      LockRequest.make({ resource: pick(roll, resource.spellings), mode: exclusive ? "X" : "S" })
    ),
    shared: things(locks),
    exclusive: things(exclusive),
    takesWorkspace: exclusive.some(({ resource }) => resource.things === WORKSPACE),
    named: things(exclusive.filter(({ resource }) => resource.things !== WORKSPACE)),
    onlyReadsFiles: locks.length > 0 && locks.every(({ exclusive, resource }) => resource.isFile && !exclusive)
  }
}

const ids = (entries: ReadonlyArray<{ readonly id: number }>) => entries.map(({ id }) => id)
const sorted = (numbers: Iterable<number>) => [...numbers].sort((a, b) => a - b).join()

describe("the lock table", () => {
  it.effect("agrees with the second model in 100,000 traces (R16)", () =>
    Effect.gen(function* () {
      const roll = yield* dice
      const wishes = Array.from({ length: 400 }, () => {
        const wish = makeWish(roll)
        return { wish, claim: makeClaim(wish.lane, Result.getOrThrow(makeLockset(wish.locks))) }
      })
      for (let trace = 0; trace < TABLE_TRACES; trace++) {
        const reference = new Reference()
        let table: LockTable<Claim & { readonly id: number }> = EMPTY_TABLE
        for (let id = 0; id < STEPS; id++) {
          const { entries } = reference
          const waited = entries.filter(({ held }) => !held)
          const leaves = entries.length === LIVE_MAX || (entries.length > 0 && roll(5) < 2)
          const { claim, wish } = pick(roll, wishes)
          const change = leaves ? pick(roll, [...table.held, ...table.waiting]) : { ...claim, id }
          const settled = leaves ? release(table, change) : enqueue(table, change)
          const gone = entries.find((entry) => entry.id === change.id)
          if (gone === undefined) {
            const entry = { id, wish, deadline: 0, held: false, dirty: false }
            waited.push(entry)
            reference.arrive(entry)
          } else reference.leave(gone)
          table = settled.table
          const granted = waited.filter((entry) => entry.held && entry !== gone)
          const queue = reference.entries.filter(({ held }) => !held)
          const agrees =
            ids(settled.granted).join() === ids(granted).join() &&
            ids(table.waiting).join() === ids(queue).join() &&
            table.held.length + queue.length === reference.entries.length
          if (!agrees) assert.fail(`trace ${trace}, step ${id}`)
        }
      }
    }).pipe(Random.withSeed("lock table"))
  )
})

interface Call {
  readonly entry: Entry
  readonly fiber: Fiber.Fiber<boolean, "failed" | LockBusy | InvalidLock>
  readonly end: Deferred.Deferred<void, "failed">
}

const ENDINGS = ["succeed", "fail", "die", "interrupt"] as const

const endBy = (ending: (typeof ENDINGS)[number], { end, fiber }: Call): Effect.Effect<unknown> => {
  switch (ending) {
    case "succeed":
      return Deferred.succeed(end, undefined)
    case "fail":
      return Deferred.fail(end, "failed")
    case "die":
      return Deferred.die(end, "a defect")
    case "interrupt":
      return Fiber.interrupt(fiber)
  }
}

/** One random history through the service. Answers with what happened in it. */
const serviceTrace = Effect.fnUntraced(function* (roll: Dice) {
  const { held, waiting, withLocks } = yield* LockManager
  const reference = new Reference()
  const running = new Set<number>()
  const calls = new Map<Entry, Call>()
  const happened: Array<string> = []
  let now = 0

  const expectBusy = Effect.fnUntraced(function* (entry: Entry) {
    happened.push("timeout")
    const exit = yield* Fiber.await(calls.get(entry)!.fiber)
    assert.instanceOf(Exit.isFailure(exit) ? Cause.squash(exit.cause) : exit, LockBusy)
  })

  const arrive = Effect.fnUntraced(function* (id: number) {
    const wait_ms = roll(5) * TICK_MS
    const wish = makeWish(roll)
    const end = yield* Deferred.make<void, "failed">()
    const fiber = yield* withLocks(wish.lane, wish.locks, { wait_ms }, ({ dirty }) =>
      Effect.sync(() => running.add(id)).pipe(
        Effect.andThen(Deferred.await(end)),
        Effect.andThen(dirty),
        Effect.ensuring(Effect.sync(() => running.delete(id)))
      )
    ).pipe(Effect.forkChild({ startImmediately: true }))
    const entry = { id, wish, deadline: now + wait_ms, held: false, dirty: false }
    calls.set(entry, { entry, fiber, end })
    reference.arrive(entry)
    if (entry.held || wait_ms > 0) return
    reference.leave(entry)
    yield* expectBusy(entry)
  })

  const leave = Effect.fnUntraced(function* (entry: Entry) {
    const call = calls.get(entry)!
    const ending = entry.held ? pick(roll, ENDINGS) : "interrupt"
    happened.push(entry.held ? ending : "cancel")
    reference.leave(entry)
    yield* endBy(ending, call)
    const exit = yield* Fiber.await(call.fiber)
    assert.strictEqual(Exit.isSuccess(exit), ending === "succeed")
    if (Exit.isSuccess(exit)) assert.strictEqual(exit.value, entry.dirty)
    if (entry.dirty) happened.push("dirty")
  })

  const check = Effect.fnUntraced(function* () {
    const expected = reference.entries.filter((entry) => entry.held)
    const queue = reference.entries.filter((entry) => !entry.held)
    assert.strictEqual(sorted(running), sorted(ids(expected)))
    assert.strictEqual((yield* held).length, expected.length)
    assert.deepStrictEqual(
      (yield* waiting).map(({ lane }) => lane),
      queue.map(({ wish }) => wish.lane)
    )
  })

  for (let id = 0; id < STEPS; id++) {
    const { entries } = reference
    const action = roll(6)
    if (action === 0) {
      now += TICK_MS
      yield* TestClock.adjust(TICK_MS)
      yield* Effect.forEach(reference.expire(now), expectBusy)
    } else if (entries.length === LIVE_MAX || (entries.length > 0 && action < 3)) yield* leave(pick(roll, entries))
    else yield* arrive(id)
    yield* check()
  }
  while (reference.entries.length > 0) {
    yield* leave(pick(roll, reference.entries))
    yield* check()
  }
  return happened
})

describe("LockManager", () => {
  it.effect("agrees with the second model in 1,000 traces with failures, defects, cancels and timeouts (R16)", () =>
    Effect.gen(function* () {
      const roll = yield* dice
      const seen = new Map<string, number>()
      for (let trace = 0; trace < SERVICE_TRACES; trace++)
        for (const what of yield* serviceTrace(roll)) seen.set(what, (seen.get(what) ?? 0) + 1)
      for (const what of [...ENDINGS, "timeout", "cancel", "dirty"]) assert.isAbove(seen.get(what) ?? 0, 20, what)
    }).pipe(Effect.provide(LockManager.layer), Random.withSeed("lock manager"))
  )
})
