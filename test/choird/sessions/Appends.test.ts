import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { type Appended, APPENDS_BYTES_MAX, makeAppends } from "#src/choird/sessions/Appends.ts"
import { initialState } from "#src/shared/session/fold.ts"

const append = (rev: number): Appended => ({
  session_id: SessionId.make("0123456789abcdef"),
  agent_id: AgentId.make("ada"),
  events: [],
  state: { ...initialState, rev }
})

/** The revisions that a reader gets which stands still after the first, until all are published. */
const readSlowly = Effect.fnUntraced(function* (published: number, bytes: number) {
  const appends = yield* makeAppends
  const [began, goes] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const reader = yield* appends.stream.pipe(
    Stream.tap(() => Effect.andThen(Deferred.succeed(began, undefined), Deferred.await(goes))),
    Stream.map(({ state }) => state.rev),
    Stream.takeUntil((rev) => rev === published),
    Stream.runCollect,
    Effect.forkChild({ startImmediately: true })
  )
  yield* appends.publish(append(1), bytes)
  yield* Deferred.await(began)
  for (let rev = 2; rev <= published; rev++) yield* appends.publish(append(rev), bytes)
  yield* Deferred.succeed(goes, undefined)
  return yield* Fiber.join(reader)
})

const revs = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

describe("appends that wait for a slow reader", () => {
  it.effect("are all read where they are few", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* readSlowly(20, 1000), revs(1, 20))
    })
  )

  it.effect("are the newest of those that are too many, or too large together", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* readSlowly(300, 1000), [1, ...revs(300 - 256 + 1, 300)])
      assert.deepStrictEqual(yield* readSlowly(20, APPENDS_BYTES_MAX / 4), [1, ...revs(17, 20)])
    })
  )
})
