/** P10: locksets taken and given back, beside the usual mutex of promises. */
import { Mutex } from "async-mutex"
import { Context, Effect, Layer } from "effect"
import { coreLane, JobName } from "#schema/Ids.ts"
import { LockRequest } from "#schema/Tool.ts"
import { LockManager } from "#src/agent/calls/LockManager.ts"
import { atLeast, median, ratioAtLeast, type Row, spread } from "./Row.ts"

const ROUNDS = 15
const ALONE = 100_000
const WAITERS = 32
const TURNS_EACH = 1000
/** No claim waits that long: all of a round takes less. */
const WAIT_MS = 60_000

const lockset = ["a", "b", "c", "d"].map((name) => LockRequest.make({ resource: `file:src/${name}.ts`, mode: "X" }))
const one = [LockRequest.make({ resource: "file:src/a.ts", mode: "X" })]
const lanes = Array.from({ length: WAITERS }, (_, job) => coreLane(JobName.make(`job-${job}`)))

const perSecond = (count: number, started: number): number => (count * 1000) / (performance.now() - started)

const alone = Effect.fnUntraced(function* (manager: LockManager["Service"]) {
  const [lane] = lanes
  if (lane === undefined) return 0
  const started = performance.now()
  for (let turn = 0; turn < ALONE; turn++)
    yield* manager.withLocks(lane, lockset, { wait_ms: WAIT_MS }, () => Effect.void)
  return perSecond(ALONE, started)
})

/** The work of a holder on both sides: it waits for a settled promise, so that the others queue. */
const use = () => Promise.resolve()

const contended = Effect.fnUntraced(function* (manager: LockManager["Service"]) {
  const started = performance.now()
  yield* Effect.forEach(
    lanes,
    Effect.fnUntraced(function* (lane) {
      for (let turn = 0; turn < TURNS_EACH; turn++)
        yield* manager.withLocks(lane, one, { wait_ms: WAIT_MS }, () => Effect.promise(use))
    }),
    { concurrency: "unbounded", discard: true }
  )
  return perSecond(WAITERS * TURNS_EACH, started)
})

const mutex = Effect.promise(async () => {
  const lock = new Mutex()
  const started = performance.now()
  await Promise.all(
    lanes.map(async () => {
      for (let turn = 0; turn < TURNS_EACH; turn++) await lock.runExclusive(use)
    })
  )
  return perSecond(WAITERS * TURNS_EACH, started)
})

export const locks: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.gen(function* () {
  const manager = Context.get(yield* Layer.build(LockManager.layer), LockManager)
  const free: Array<number> = []
  const waited: Array<number> = []
  const floor: Array<number> = []
  for (let round = -3; round < ROUNDS; round++) {
    const figures = [yield* alone(manager), yield* contended(manager), yield* mutex] as const
    if (round < 0) continue
    free.push(figures[0])
    waited.push(figures[1])
    floor.push(figures[2])
  }
  yield* Effect.sync(() =>
    process.stderr.write(`P10: a second: alone ${spread(free)}, waiting ${spread(waited)}, mutex ${spread(floor)}\n`)
  )
  return [
    atLeast("P10", "lockset of 4, uncontended", median(free), "a second", 150_000),
    ratioAtLeast(
      "P10",
      `${WAITERS} waiters on one lock, of async-mutex`,
      median(waited),
      "a second",
      median(floor),
      0.25
    )
  ]
}).pipe(Effect.scoped)
