/** An agent that sends the largest bodies it may, on all of its connections, without a pause: each takes choird's one thread for a while. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { describeTransports } from "../support/everyTransport.ts"
import { AGENT_BYTES_BURST, AGENT_BYTES_PER_SECOND } from "#src/choird/listeners/OpenSession.ts"
import { REPLICATION_BYTES_MAX } from "#src/agent/control/Replication.ts"
import { BODY_BYTES_MAX } from "#src/shared/wire/http.ts"

const LARGEST = " ".repeat(BODY_BYTES_MAX)
const FULL = AGENT_BYTES_BURST / BODY_BYTES_MAX

describeTransports("an agent that sends the largest bodies without a pause", ({ openSession }) => {
  it.effect(
    "is told to wait after the burst that an outage leaves behind, and goes on at the rate of its session",
    () =>
      Effect.gen(function* () {
        const { call } = yield* openSession
        const status = Effect.map(call("HEARTBEAT", { body: LARGEST }), (answer) => answer.status)
        for (let body = 0; body < FULL; body++) assert.notStrictEqual(yield* status, 429)
        const late = yield* call("HEARTBEAT", { body: LARGEST })
        assert.deepStrictEqual([late.status, late.headers["retry-after"]], [429, "1"])
        yield* TestClock.adjust((1000 * BODY_BYTES_MAX) / AGENT_BYTES_PER_SECOND)
        assert.notStrictEqual(yield* status, 429)
        assert.strictEqual(yield* status, 429)
        assert.isAbove(AGENT_BYTES_BURST, REPLICATION_BYTES_MAX)
      })
  )

  it.effect("has one heartbeat decoded at a time, while its other requests are answered", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const entered = yield* Deferred.make<void>()
      const left = yield* Deferred.make<void>()
      world.appending = Effect.andThen(Deferred.succeed(entered, undefined), Deferred.await(left))
      const first = yield* Effect.forkChild(call("HEARTBEAT"), { startImmediately: true })
      yield* Deferred.await(entered)
      const others = yield* Effect.forEach([1, 2, 3], () =>
        Effect.forkChild(call("HEARTBEAT"), { startImmediately: true })
      )
      const heard = () => world.effects.filter((each) => each === "heard").length
      // Requests that go through show that the heartbeats have arrived.
      for (let other = 0; other < 5; other++) assert.strictEqual((yield* call("REPORT_STATUS")).status, 200)
      assert.strictEqual(heard(), 1)
      yield* Deferred.succeed(left, undefined)
      for (const each of [first, ...others]) assert.strictEqual((yield* Fiber.join(each)).status, 200)
      assert.strictEqual(heard(), 4)
    })
  )
})
