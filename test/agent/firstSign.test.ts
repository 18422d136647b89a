/**
 * How soon choird knows what a person waits to see: that edge works on the message, and the first words of the answer. By the clock of the test, so
 * that only the agent's own waits count; what channels do with it is in test/choird/telegram/firstSign.test.ts and OperatorChat.test.ts.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import type { Script } from "../support/testing/ScriptedModel.ts"
import { ofType, runAgent } from "../support/testing/TestAgent.ts"

/** The agent's part of the 300 ms within which a person sees a sign. */
const SIGN_MS_MAX = 25

/** Everything runs in memory, so that after so many turns of the clock all that was due is done. */
const settle = Effect.repeat(TestClock.adjust(0), { times: 50 })

/** An agent whose model is asked, says `words` a moment later, and then nothing more. */
const setUp = Effect.fnUntraced(function* (...words: ReadonlyArray<string>) {
  const plane = yield* makeMemoryControlPlane
  const [asked, begins] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const script: Script = (_, __, heard) =>
    Effect.gen(function* () {
      yield* Deferred.succeed(asked, undefined)
      yield* Deferred.await(begins)
      for (const text of words) yield* heard?.({ type: "text", text }) ?? Effect.void
      return yield* Effect.never
    })
  yield* Effect.forkScoped(runAgent({ plane, script }))
  yield* settle
  yield* plane.say("hello")
  yield* settle
  return { plane, asked, begin: Effect.andThen(Deferred.succeed(begins, undefined), settle) }
})

describe("a message that comes", () => {
  it.effect(`is known to choird as being worked on within ${SIGN_MS_MAX} ms, before its model has said a word`, () =>
    Effect.gen(function* () {
      const { asked, plane } = yield* setUp()
      assert.isTrue(yield* Deferred.isDone(asked), "the model is asked at once")
      yield* TestClock.adjust(SIGN_MS_MAX)
      yield* settle
      assert.lengthOf(ofType(plane.events, "UserMsg"), 1)
      assert.notStrictEqual(plane.state().edge.state, "EDGE_IDLE")
    })
  )

  it.effect("has the first words of its answer on their way in no time", () =>
    Effect.gen(function* () {
      const { begin, plane } = yield* setUp("It", " is")
      assert.deepStrictEqual(plane.drafts, [])
      yield* begin
      assert.isAbove(plane.drafts.length, 0)
      assert.match(plane.drafts[0]?.text ?? "", /^It/u)
    })
  )
})
