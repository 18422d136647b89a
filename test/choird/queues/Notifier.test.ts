import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue, Stream } from "effect"
import { makeNotifier } from "#src/choird/queues/Notifier.ts"

const start = Effect.forkChild({ startImmediately: true })

describe("wakes", () => {
  it.effect("emits at once, and then for the own key only", () =>
    Effect.gen(function* () {
      const { wake, wakes } = yield* makeNotifier
      const seen = yield* Queue.bounded<string>(8)
      yield* wakes("a").pipe(
        Stream.runForEach(() => Queue.offer(seen, "a")),
        start
      )
      yield* wakes("b").pipe(
        Stream.runForEach(() => Queue.offer(seen, "b")),
        start
      )
      assert.deepStrictEqual(new Set([yield* Queue.take(seen), yield* Queue.take(seen)]), new Set(["a", "b"]))
      yield* wake("b")
      assert.strictEqual(yield* Queue.take(seen), "b")
      yield* wake("c")
      yield* wake("a")
      assert.strictEqual(yield* Queue.take(seen), "a")
    })
  )

  it.effect("tells a busy reader once of all that it missed", () =>
    Effect.gen(function* () {
      const { wake, wakes } = yield* makeNotifier
      const [busy, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      let looks = 0
      const reader = yield* wakes("a").pipe(
        Stream.mapEffect(() => {
          looks += 1
          return looks === 1 ? Effect.andThen(Deferred.succeed(busy, undefined), Deferred.await(go)) : Effect.void
        }),
        Stream.take(2),
        Stream.runDrain,
        start
      )
      yield* Deferred.await(busy)
      yield* Effect.repeat(wake("a"), { times: 99 })
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(reader)
      assert.strictEqual(looks, 2)
    })
  )
})
