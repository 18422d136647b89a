import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import {
  BODIES_BYTES_MAX,
  BODY_MS_MAX,
  makeInQueue,
  makeRequestQueue,
  makeRequestUse,
  REST_MS_MAX,
  REST_PER_SLOT,
  RESTS_FOR_MS,
  SESSION_BODIES_BYTES_MAX,
  SMALL_BODY_BYTES_MAX,
  SLOT_MS_MAX,
  SLOTS_MAX,
  WAIT_MS_MAX
} from "#src/choird/listeners/RequestQueue.ts"

/** A queue that writes down who begins. */
const makeWorld = () => {
  const queue = makeRequestQueue()
  const began: Array<string> = []
  const come = (name: string, use: ReturnType<typeof makeRequestUse>, now_ms: number, bytes = 0) =>
    queue.come(use, bytes, now_ms, () => void began.push(name))
  /** A session that sent a hundred requests a second for some time. */
  const busy = (now_ms: number) => ({ ...makeRequestUse(now_ms), used: 700 })
  return { queue, began, come, busy }
}

describe("slots", () => {
  it("begin a request of a session with few of them at once, however many others wait", () => {
    const { began, busy, come } = makeWorld()
    const hostile = Array.from({ length: 10 }, () => busy(0))
    for (const use of hostile) for (let n = 0; n < 6; n++) come("hostile", use, 0)
    assert.strictEqual(began.length, SLOTS_MAX)
    come("honest", makeRequestUse(0), 0)
    assert.strictEqual(began.at(-1), "honest")
  })

  it("go round the sessions, each with one request at a time", () => {
    const { began, busy, come, queue } = makeWorld()
    const before = Array.from({ length: SLOTS_MAX }, () => come("before", busy(0), 0))
    const uses = ["a", "b", "c"].map((name) => ({ name, use: busy(0) }))
    const all = uses.flatMap(({ name, use }) => [0, 1].map(() => come(name, use, 0)))
    for (const request of before) queue.go(request, 0)
    const done = new Set<(typeof all)[number]>()
    for (let step = 0; step < all.length; step++) {
      const running = all.find((request) => request.began_ms !== undefined && !done.has(request))
      if (running === undefined) break
      done.add(running)
      queue.go(running, 0)
    }
    assert.deepStrictEqual(began.slice(before.length), ["a", "b", "c", "a", "b", "c"])
  })

  it("prefer the session that has used less", () => {
    const { began, busy, come, queue } = makeWorld()
    const running = Array.from({ length: SLOTS_MAX }, () => come("first", busy(0), 0))
    come("much", { ...busy(0), used: 800 }, 0)
    come("less", { ...busy(0), used: 400 }, 0)
    for (const request of running.slice(0, 1)) queue.go(request, 0)
    assert.deepStrictEqual(began.slice(SLOTS_MAX), ["less"])
  })

  it("count the requests and their bytes, however long they take, and forget them", () => {
    const { began, come, queue } = makeWorld()
    const use = makeRequestUse(0)
    const many = Array.from({ length: 140 }, () => come("flood", use, 0))
    assert.strictEqual(began.length, many.length)
    for (const request of many) queue.go(request, SLOT_MS_MAX)
    for (let n = 0; n < 40; n++) come("flood", use, SLOT_MS_MAX)
    assert.isBelow(began.length, many.length + 20)
    queue.beginAll(60_000)
    assert.strictEqual(began.length, many.length + 40)

    const large = makeRequestUse(0)
    for (let n = 0; n < 40; n++) {
      const request = come("large", large, 0, SESSION_BODIES_BYTES_MAX)
      if (request.began_ms === undefined) break
      queue.go(request, 0)
    }
    assert.isAbove(large.used, 140)
  })

  it("read large bodies within one bound, one of a session at a time, and small ones at once", () => {
    const { began, come, queue } = makeWorld()
    const sessions = Array.from({ length: 12 }, () => makeRequestUse(0))
    const large = sessions.map((use) => come("large", use, 0, SESSION_BODIES_BYTES_MAX))
    assert.strictEqual(began.length, BODIES_BYTES_MAX / SESSION_BODIES_BYTES_MAX)
    for (const use of sessions) come("small", use, 0, SMALL_BODY_BYTES_MAX)
    assert.strictEqual(began.filter((name) => name === "small").length, sessions.length)
    const [first] = large
    if (first !== undefined) queue.go(first, 0)
    assert.strictEqual(began.filter((name) => name === "large").length, BODIES_BYTES_MAX / SESSION_BODIES_BYTES_MAX + 1)
  })

  it("keep no large body waiting for a slow tool whose input was large", () => {
    const { began, come, queue } = makeWorld()
    const use = makeRequestUse(0)
    const tool = come("tool", use, 0, SESSION_BODIES_BYTES_MAX)
    come("heartbeat", use, 0, SESSION_BODIES_BYTES_MAX)
    assert.strictEqual(queue.nextEnd_ms(0), BODY_MS_MAX)
    queue.beginAll(BODY_MS_MAX - 1)
    assert.deepStrictEqual(began, ["tool"])
    queue.beginAll(BODY_MS_MAX)
    assert.deepStrictEqual(began, ["tool", "heartbeat"])
    // The tool's end lets nothing go a second time.
    queue.go(tool, BODY_MS_MAX + 1)
    assert.strictEqual(use.bytes, SESSION_BODIES_BYTES_MAX)
  })

  it("are one at a time, each with a rest three times as long, while others have requests", () => {
    const alone = makeWorld()
    const running = Array.from({ length: SLOTS_MAX }, () => alone.come("a", alone.busy(0), 0))
    alone.come("next", alone.busy(0), 0)
    for (const request of running) alone.queue.go(request, 40)
    assert.strictEqual(alone.began.at(-1), "next")

    const { began, busy, come, queue } = makeWorld()
    come("calm", makeRequestUse(0), 0)
    const held = come("a", busy(0), 0)
    come("next", busy(0), 0)
    assert.deepStrictEqual(began, ["calm", "a"])
    come("calm", makeRequestUse(0), 30)
    queue.go(held, 40)
    const rested_ms = 40 + REST_PER_SLOT * 40
    assert.strictEqual(queue.nextEnd_ms(40), rested_ms)
    queue.beginAll(rested_ms - 1)
    assert.strictEqual(began.at(-1), "calm")
    queue.beginAll(rested_ms)
    assert.strictEqual(began.at(-1), "next")
    assert.isAbove(RESTS_FOR_MS, REST_MS_MAX)
  })

  it("keep nobody waiting for long, however many are before it", () => {
    const { began, busy, come, queue } = makeWorld()
    come("calm", makeRequestUse(0), 0)
    for (let n = 0; n < 30; n++) come("endless", busy(0), 0)
    come("late", busy(0), 1)
    for (let now_ms = 0; now_ms < WAIT_MS_MAX; now_ms += 100) come("calm", makeRequestUse(0), now_ms)
    const use = busy(WAIT_MS_MAX - 100)
    const last = come("last", use, WAIT_MS_MAX - 100)
    assert.strictEqual(use.waiting, 1)
    queue.beginAll(WAIT_MS_MAX + 1)
    assert.include(began, "late")
    assert.isUndefined(last.began_ms)
    queue.beginAll(2 * WAIT_MS_MAX - 100)
    assert.strictEqual(began.at(-1), "last")
    assert.strictEqual(use.waiting, 0)
  })

  it("are not checked again and again for a request that waits for room for its body alone", () => {
    const { come, queue } = makeWorld()
    const use = makeRequestUse(0)
    come("first", use, 0, SESSION_BODIES_BYTES_MAX)
    come("second", use, 0, SESSION_BODIES_BYTES_MAX)
    const came_ms = BODY_MS_MAX / 2
    come("third", use, came_ms, SESSION_BODIES_BYTES_MAX)
    queue.beginAll(BODY_MS_MAX)
    const due_ms = came_ms + WAIT_MS_MAX
    assert.strictEqual(queue.nextEnd_ms(BODY_MS_MAX), due_ms)
    queue.beginAll(due_ms)
    assert.strictEqual(queue.nextEnd_ms(due_ms), 2 * BODY_MS_MAX)
  })

  it("forget a request whose client is gone before it began", () => {
    const { began, busy, come, queue } = makeWorld()
    const running = Array.from({ length: SLOTS_MAX }, () => come("running", busy(0), 0))
    const gone = come("gone", busy(0), 0)
    queue.go(gone, 0)
    for (const request of running) queue.go(request, 0)
    assert.notInclude(began, "gone")
    come("next", busy(0), 0)
    assert.strictEqual(began.at(-1), "next")
  })
})

describe("work in the queue", () => {
  it.effect("waits no longer than others may hold their slots, although they never end", () =>
    Effect.gen(function* () {
      const inQueue = yield* makeInQueue
      const busy = () => ({ ...makeRequestUse(0), used: 700 })
      const endless = yield* Effect.forEach(Array.from({ length: SLOTS_MAX }), () =>
        Effect.forkChild(inQueue(busy(), 0)(Effect.never), { startImmediately: true })
      )
      const began = yield* Deferred.make<void>()
      const waiting = yield* Effect.forkChild(inQueue(busy(), 0)(Deferred.succeed(began, undefined)), {
        startImmediately: true
      })
      yield* TestClock.adjust(SLOT_MS_MAX - 1)
      assert.isFalse(yield* Deferred.isDone(began))
      yield* TestClock.adjust(1)
      assert.isTrue(yield* Fiber.join(waiting))
      yield* Effect.forEach(endless, Fiber.interrupt)
    })
  )
})
