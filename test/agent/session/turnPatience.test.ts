/** A turn outlives a moment in which its provider fails: it asks again for a minute, and says so in one line. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { TURN_PATIENCE_MS_MAX } from "#src/agent/session/turnPatience.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { says, type Said, type Script } from "../../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent } from "../../support/testing/TestAgent.ts"

const SECOND = 1000
const passing = Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(SECOND), Effect.yieldNow)))
const unreachable: Said = { finish_reason: "error", error: { kind: "unreachable", message: "nobody answers." } }
const refusedKey: Said = {
  finish_reason: "error",
  error: { kind: "http", status: 401, message: "the provider answered 401" }
}

/** A model whose provider fails until so long after the first question. */
const downFor =
  (down_ms: number, failure: Said, asked: Array<number>): Script =>
  () =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      asked.push(now)
      return now - (asked[0] ?? now) < down_ms ? failure : says("here I am")
    })

const lines = (plane: MemoryControlPlane) =>
  ofType(plane.events, "AgentMessage").flatMap(({ payload }) =>
    payload.kind === "notice" ? [[payload.in_reply_to, payload.text]] : []
  )
const replies = (plane: MemoryControlPlane) =>
  ofType(plane.events, "AgentMessage").flatMap(({ payload }) => (payload.kind === "reply" ? [payload] : []))

const through = Effect.fnUntraced(function* (down_ms: number, failure: Said = unreachable) {
  yield* passing
  const plane = yield* makeMemoryControlPlane
  const asked: Array<number> = []
  yield* Effect.forkScoped(runAgent({ plane, script: downFor(down_ms, failure, asked) }))
  yield* plane.say("are you there?")
  yield* plane.until((_, state) => replies(plane).length === 1 && quiet(state))
  return { asked, plane }
})

const LINE = [
  "1" as string | undefined,
  "The model does not answer at the moment (nobody answers). I keep asking for a minute."
]

describe("a turn whose provider fails", () => {
  it.effect.each([
    ["3 s, and says nothing of it", 3 * SECOND, []],
    ["12 s, and says so in one line", 12 * SECOND, [LINE]],
    ["50 s, and says so in one line", 50 * SECOND, [LINE]]
  ] as ReadonlyArray<readonly [string, number, Array<typeof LINE>]>)("is answered after %s", ([, down_ms, told]) =>
    Effect.gen(function* () {
      const { plane } = yield* through(down_ms)
      assert.strictEqual(replies(plane)[0]?.text, "here I am")
      assert.deepStrictEqual(lines(plane), told)
      const failed = ofType(plane.events, "ModelOutput").filter(({ payload }) => payload.error !== undefined)
      assert.lengthOf(failed, 1, "one failure in the log, however many attempts")
    })
  )

  it.effect("says after a minute that it could not answer, and that nothing is lost", () =>
    Effect.gen(function* () {
      const { asked, plane } = yield* through(10 * TURN_PATIENCE_MS_MAX)
      assert.include(replies(plane)[0]?.text, "nobody answers. Nothing is lost")
      assert.strictEqual(replies(plane)[0]?.failed, "again")
      assert.isAtMost((asked.at(-1) ?? 0) - (asked[0] ?? 0), TURN_PATIENCE_MS_MAX + SECOND)
      assert.deepStrictEqual(lines(plane), [LINE])
    })
  )

  it.effect("says at once what only a person can fix", () =>
    Effect.gen(function* () {
      const { asked, plane } = yield* through(TURN_PATIENCE_MS_MAX, refusedKey)
      assert.lengthOf(asked, 1)
      assert.strictEqual(replies(plane)[0]?.failed, "final")
    })
  )

  it.effect("keeps no agent from stopping, and resumes where it was at the next start", () =>
    Effect.gen(function* () {
      yield* passing
      const plane = yield* makeMemoryControlPlane
      const asked: Array<number> = []
      const script = downFor(30 * SECOND, unreachable, asked)
      const first = yield* Effect.forkScoped(runAgent({ plane, script }))
      yield* plane.say("are you there?")
      yield* plane.until(() => lines(plane).length === 1)
      yield* plane.push({ type: "Stop", deadline_ms: 60_000 })
      const began = yield* Clock.currentTimeMillis
      assert.strictEqual(yield* Fiber.join(first), "stopped")
      assert.isBelow((yield* Clock.currentTimeMillis) - began, 10 * SECOND)
      yield* Effect.forkScoped(runAgent({ plane, script, epoch: 2 }))
      yield* plane.until((_, state) => replies(plane).length === 1 && quiet(state))
      assert.strictEqual(replies(plane)[0]?.text, "here I am")
    })
  )
})
