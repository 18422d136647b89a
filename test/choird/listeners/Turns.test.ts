import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import {
  BODIES_BYTES_MAX,
  BODY_MS_MAX,
  makeInTurns,
  makeTurns,
  makeTurnUse,
  REST_MS_MAX,
  REST_PER_TURN,
  RESTS_FOR_MS,
  SESSION_BODIES_BYTES_MAX,
  SMALL_BODY_BYTES_MAX,
  TURN_MS_MAX,
  TURNS_MAX,
  WAIT_MS_MAX
} from "#src/choird/listeners/Turns.ts"

/** Turns that write down who begins. */
const makeWorld = () => {
  const turns = makeTurns()
  const began: Array<string> = []
  const come = (name: string, use: ReturnType<typeof makeTurnUse>, now_ms: number, bytes = 0) =>
    turns.come(use, bytes, now_ms, () => void began.push(name))
  /** A session that sent a hundred requests a second for some time. */
  const busy = (now_ms: number) => ({ ...makeTurnUse(now_ms), used: 700 })
  return { turns, began, come, busy }
}

describe("turns", () => {
  it("begin a request of a session with few of them at once, however many others wait", () => {
    const { began, busy, come } = makeWorld()
    const hostile = Array.from({ length: 10 }, () => busy(0))
    for (const use of hostile) for (let n = 0; n < 6; n++) come("hostile", use, 0)
    assert.strictEqual(began.length, TURNS_MAX)
    come("honest", makeTurnUse(0), 0)
    assert.strictEqual(began.at(-1), "honest")
  })

  it("go round the sessions, each with one request at a time", () => {
    const { began, busy, come, turns } = makeWorld()
    const before = Array.from({ length: TURNS_MAX }, () => come("before", busy(0), 0))
    const uses = ["a", "b", "c"].map((name) => ({ name, use: busy(0) }))
    const all = uses.flatMap(({ name, use }) => [0, 1].map(() => come(name, use, 0)))
    for (const request of before) turns.go(request, 0)
    const done = new Set<(typeof all)[number]>()
    for (let step = 0; step < all.length; step++) {
      const running = all.find((request) => request.began_ms !== undefined && !done.has(request))
      if (running === undefined) break
      done.add(running)
      turns.go(running, 0)
    }
    assert.deepStrictEqual(began.slice(before.length), ["a", "b", "c", "a", "b", "c"])
  })

  it("prefer the session that has used less", () => {
    const { began, busy, come, turns } = makeWorld()
    const running = Array.from({ length: TURNS_MAX }, () => come("first", busy(0), 0))
    come("much", { ...busy(0), used: 800 }, 0)
    come("less", { ...busy(0), used: 400 }, 0)
    for (const request of running.slice(0, 1)) turns.go(request, 0)
    assert.deepStrictEqual(began.slice(TURNS_MAX), ["less"])
  })

  it("count the requests and their bytes, however long they take, and forget them", () => {
    const { began, come, turns } = makeWorld()
    const use = makeTurnUse(0)
    const many = Array.from({ length: 140 }, () => come("flood", use, 0))
    assert.strictEqual(began.length, many.length)
    for (const request of many) turns.go(request, TURN_MS_MAX)
    for (let n = 0; n < 40; n++) come("flood", use, TURN_MS_MAX)
    assert.isBelow(began.length, many.length + 20)
    turns.beginAll(60_000)
    assert.strictEqual(began.length, many.length + 40)

    const large = makeTurnUse(0)
    for (let n = 0; n < 40; n++) {
      const request = come("large", large, 0, SESSION_BODIES_BYTES_MAX)
      if (request.began_ms === undefined) break
      turns.go(request, 0)
    }
    assert.isAbove(large.used, 140)
  })

  it("read large bodies within one bound, one of a session at a time, and small ones at once", () => {
    const { began, come, turns } = makeWorld()
    const sessions = Array.from({ length: 12 }, () => makeTurnUse(0))
    const large = sessions.map((use) => come("large", use, 0, SESSION_BODIES_BYTES_MAX))
    assert.strictEqual(began.length, BODIES_BYTES_MAX / SESSION_BODIES_BYTES_MAX)
    for (const use of sessions) come("small", use, 0, SMALL_BODY_BYTES_MAX)
    assert.strictEqual(began.filter((name) => name === "small").length, sessions.length)
    const [first] = large
    if (first !== undefined) turns.go(first, 0)
    assert.strictEqual(began.filter((name) => name === "large").length, BODIES_BYTES_MAX / SESSION_BODIES_BYTES_MAX + 1)
  })

  it("keep no large body waiting for a slow tool whose input was large", () => {
    const { began, come, turns } = makeWorld()
    const use = makeTurnUse(0)
    const tool = come("tool", use, 0, SESSION_BODIES_BYTES_MAX)
    come("heartbeat", use, 0, SESSION_BODIES_BYTES_MAX)
    assert.strictEqual(turns.nextEnd_ms(0), BODY_MS_MAX)
    turns.beginAll(BODY_MS_MAX - 1)
    assert.deepStrictEqual(began, ["tool"])
    turns.beginAll(BODY_MS_MAX)
    assert.deepStrictEqual(began, ["tool", "heartbeat"])
    // The tool's end lets nothing go a second time.
    turns.go(tool, BODY_MS_MAX + 1)
    assert.strictEqual(use.bytes, SESSION_BODIES_BYTES_MAX)
  })

  it("are one at a time, each with a rest three times as long, while others have requests", () => {
    const alone = makeWorld()
    const running = Array.from({ length: TURNS_MAX }, () => alone.come("a", alone.busy(0), 0))
    alone.come("next", alone.busy(0), 0)
    for (const request of running) alone.turns.go(request, 40)
    assert.strictEqual(alone.began.at(-1), "next")

    const { began, busy, come, turns } = makeWorld()
    come("calm", makeTurnUse(0), 0)
    const held = come("a", busy(0), 0)
    come("next", busy(0), 0)
    assert.deepStrictEqual(began, ["calm", "a"])
    come("calm", makeTurnUse(0), 30)
    turns.go(held, 40)
    const rested_ms = 40 + REST_PER_TURN * 40
    assert.strictEqual(turns.nextEnd_ms(40), rested_ms)
    turns.beginAll(rested_ms - 1)
    assert.strictEqual(began.at(-1), "calm")
    turns.beginAll(rested_ms)
    assert.strictEqual(began.at(-1), "next")
    assert.isAbove(RESTS_FOR_MS, REST_MS_MAX)
  })

  it("keep nobody waiting for long, however many are before it", () => {
    const { began, busy, come, turns } = makeWorld()
    come("calm", makeTurnUse(0), 0)
    for (let n = 0; n < 30; n++) come("endless", busy(0), 0)
    come("late", busy(0), 1)
    for (let now_ms = 0; now_ms < WAIT_MS_MAX; now_ms += 100) come("calm", makeTurnUse(0), now_ms)
    const use = busy(WAIT_MS_MAX - 100)
    const last = come("last", use, WAIT_MS_MAX - 100)
    assert.strictEqual(use.waiting, 1)
    turns.beginAll(WAIT_MS_MAX + 1)
    assert.include(began, "late")
    assert.isUndefined(last.began_ms)
    turns.beginAll(2 * WAIT_MS_MAX - 100)
    assert.strictEqual(began.at(-1), "last")
    assert.strictEqual(use.waiting, 0)
  })

  it("are not checked again and again for a request that waits for room for its body alone", () => {
    const { come, turns } = makeWorld()
    const use = makeTurnUse(0)
    come("first", use, 0, SESSION_BODIES_BYTES_MAX)
    come("second", use, 0, SESSION_BODIES_BYTES_MAX)
    const came_ms = BODY_MS_MAX / 2
    come("third", use, came_ms, SESSION_BODIES_BYTES_MAX)
    turns.beginAll(BODY_MS_MAX)
    const due_ms = came_ms + WAIT_MS_MAX
    assert.strictEqual(turns.nextEnd_ms(BODY_MS_MAX), due_ms)
    turns.beginAll(due_ms)
    assert.strictEqual(turns.nextEnd_ms(due_ms), 2 * BODY_MS_MAX)
  })

  it("forget a request whose client is gone before it began", () => {
    const { began, busy, come, turns } = makeWorld()
    const running = Array.from({ length: TURNS_MAX }, () => come("running", busy(0), 0))
    const gone = come("gone", busy(0), 0)
    turns.go(gone, 0)
    for (const request of running) turns.go(request, 0)
    assert.notInclude(began, "gone")
    come("next", busy(0), 0)
    assert.strictEqual(began.at(-1), "next")
  })
})

describe("work in turns", () => {
  it.effect("waits no longer than others may hold theirs, although they never end", () =>
    Effect.gen(function* () {
      const inTurns = yield* makeInTurns
      const busy = () => ({ ...makeTurnUse(0), used: 700 })
      const endless = yield* Effect.forEach(Array.from({ length: TURNS_MAX }), () =>
        Effect.forkChild(inTurns(busy(), 0)(Effect.never), { startImmediately: true })
      )
      const began = yield* Deferred.make<void>()
      const waiting = yield* Effect.forkChild(inTurns(busy(), 0)(Deferred.succeed(began, undefined)), {
        startImmediately: true
      })
      yield* TestClock.adjust(TURN_MS_MAX - 1)
      assert.isFalse(yield* Deferred.isDone(began))
      yield* TestClock.adjust(1)
      assert.isTrue(yield* Fiber.join(waiting))
      yield* Effect.forEach(endless, Fiber.interrupt)
    })
  )
})
