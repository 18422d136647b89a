import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { DRAFT_CHARS_MAX } from "#schema/AgentApi.ts"
import { InboxId } from "#schema/Ids.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { DRAFT_INTERVAL_MS, Drafts } from "#src/agent/model/Drafts.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { makeMemoryControlPlane, SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { settingsOf } from "../../support/testing/TestAgent.ts"

const one = InboxId.make("1")

/** The drafts of an agent, as its choird receives them. */
const setUp = Effect.gen(function* () {
  const plane = yield* makeMemoryControlPlane
  const base = Arbiter.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(EventLog.layer(SESSION), AgentSettings.layer(settingsOf(1)), plane.layer(1)))
  )
  const context = yield* Layer.build(Drafts.layer.pipe(Layer.provideMerge(base)))
  const { clear, follow } = yield* Effect.provide(Drafts, context)
  const heard = follow({ inbox_id: one })
  const settle = Effect.repeat(TestClock.adjust(0), { times: 5 })
  return {
    clear,
    begin: heard({ type: "begin", model: "m" }),
    write: (text: string) => Effect.andThen(heard({ type: "text", text }), settle),
    texts: () => plane.drafts.map(({ text }) => text)
  }
})

describe("drafts of edge's answer", () => {
  it.effect("are sent at once, and then the newest of each interval", () =>
    Effect.gen(function* () {
      const { texts, write } = yield* setUp
      for (const text of ["It", " is", " so"]) yield* write(text)
      assert.deepStrictEqual(texts(), ["It"])
      yield* TestClock.adjust(DRAFT_INTERVAL_MS)
      assert.deepStrictEqual(texts(), ["It", "It is so"])
      yield* TestClock.adjust(10 * DRAFT_INTERVAL_MS)
      assert.deepStrictEqual(texts(), ["It", "It is so"])
    })
  )

  it.effect("end where the answer itself is on its way", () =>
    Effect.gen(function* () {
      const { clear, texts, write } = yield* setUp
      yield* write("It")
      yield* write(" is so")
      yield* clear
      yield* TestClock.adjust(10 * DRAFT_INTERVAL_MS)
      assert.deepStrictEqual(texts(), ["It"])
    })
  )

  it.effect("are not sent any more where their words were taken back", () =>
    Effect.gen(function* () {
      const { begin, texts, write } = yield* setUp
      yield* write("I")
      yield* write(" think that the user is angry")
      yield* begin
      yield* TestClock.adjust(10 * DRAFT_INTERVAL_MS)
      assert.deepStrictEqual(texts(), ["I"])
    })
  )

  it.effect("begin again with the next attempt", () =>
    Effect.gen(function* () {
      const { begin, texts, write } = yield* setUp
      yield* write("Perhaps")
      yield* begin
      yield* write("No")
      yield* TestClock.adjust(DRAFT_INTERVAL_MS)
      assert.deepStrictEqual(texts(), ["Perhaps", "No"])
    })
  )

  it.effect("hold the beginning of a longer answer", () =>
    Effect.gen(function* () {
      const { texts, write } = yield* setUp
      yield* write("x".repeat(2 * DRAFT_CHARS_MAX))
      assert.deepStrictEqual(
        texts().map(({ length }) => length),
        [DRAFT_CHARS_MAX]
      )
    })
  )
})
