import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { BODIES, VERBS } from "../../../support/agentSocket.ts"
import { head } from "../../../support/control.ts"
import { describeTransports } from "../../../support/everyTransport.ts"
import { refusalOf } from "../../../support/unixHttp.ts"

describeTransports("request ids (R28)", ({ openSession }) => {
  for (const verb of VERBS)
    it.effect(`${verb}: the same body gives the same reply, another body 409`, () =>
      Effect.gen(function* () {
        const { call, world } = yield* openSession
        const body =
          verb === "TERMINATE_SELF" ? { reason: "stop", final_rev: 0, final_hash: head(world).hash } : BODIES[verb]
        const first = yield* call(verb, { id: "one", body })
        const again = yield* call(verb, { id: "one", body })
        assert.strictEqual(again.status, first.status)
        // Each INIT_HELLO mints a token of its own (D12).
        if (verb !== "INIT_HELLO") assert.strictEqual(again.text, first.text)
        const other = yield* call(verb, { id: "one", body: `${JSON.stringify(body)} ` })
        assert.deepStrictEqual([other.status, refusalOf(other).type], [409, "REQUEST_ID_REUSED"])
        if (verb === "TERMINATE_SELF")
          assert.lengthOf(
            world.effects.filter((each) => each === "terminating stop"),
            1
          )
      })
    )

  it.effect("runs duplicates once that come while the first one runs, even if the first caller hangs up", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const body = { reason: "stop", final_rev: 0, final_hash: head(world).hash }
      const entered = yield* Deferred.make<void>()
      const left = yield* Deferred.make<void>()
      world.terminated = Effect.andThen(Deferred.succeed(entered, undefined), Deferred.await(left))
      const first = yield* Effect.forkChild(call("TERMINATE_SELF", { id: "one", body }), { startImmediately: true })
      yield* Deferred.await(entered)
      const others = yield* Effect.forEach([1, 2, 3], () =>
        Effect.forkChild(call("TERMINATE_SELF", { id: "one", body }), { startImmediately: true })
      )
      yield* Fiber.interrupt(first)
      // Another verb that goes through shows that the duplicates have arrived.
      yield* call("REPORT_STATUS")
      yield* Deferred.succeed(left, undefined)
      for (const other of others) assert.deepStrictEqual(JSON.parse((yield* Fiber.join(other)).text), { ack: true })
      assert.lengthOf(
        world.effects.filter((each) => each === "terminating stop"),
        1
      )
    })
  )

  it.effect("an id of one verb does not count for another", () =>
    Effect.gen(function* () {
      const { call } = yield* openSession
      yield* call("REPORT_STATUS", { id: "one" })
      assert.strictEqual((yield* call("HEARTBEAT", { id: "one" })).status, 409)
    })
  )

  it.effect("a fenced epoch spends no id of its successor", () =>
    Effect.gen(function* () {
      const { call } = yield* openSession
      yield* call("HEARTBEAT", { id: "one", token: "older", body: { ...BODIES.HEARTBEAT, timestamp: "other" } })
      assert.strictEqual((yield* call("HEARTBEAT", { id: "one" })).status, 200)
    })
  )
})
