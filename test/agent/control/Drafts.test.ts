import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { DRAFT_CHARS_MAX } from "#schema/AgentApi.ts"
import { InboxId, SecretName } from "#schema/Ids.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { DRAFT_INTERVAL_MS, Drafts } from "#src/agent/control/Drafts.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { makeMemoryControlPlane, SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { settingsOf } from "../../support/testing/TestAgent.ts"

const one = InboxId.make("1")
const SECRET = "correct-horse-battery"

/** The drafts of an agent, as its choird receives them. */
const setUp = Effect.gen(function* () {
  const plane = yield* makeMemoryControlPlane
  const base = Arbiter.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(EventLog.layer(SESSION), AgentSettings.layer(settingsOf(1)), SecretStore.layer, plane.layer(1))
    )
  )
  const context = yield* Layer.build(Drafts.layer.pipe(Layer.provideMerge(base)))
  const { clear, write } = yield* Effect.provide(Drafts, context)
  const secrets = yield* Effect.provide(SecretStore, context)
  yield* secrets.replaceAll(new Map([[SecretName.make("key"), Redacted.make(SECRET)]]))
  const settle = Effect.repeat(TestClock.adjust(0), { times: 5 })
  return {
    clear,
    write: (text: string) => Effect.andThen(write(one, text), settle),
    texts: () => plane.drafts.map(({ text }) => text)
  }
})

describe("drafts of edge's answer", () => {
  it.effect("are sent at once, and then the newest of each interval", () =>
    Effect.gen(function* () {
      const { texts, write } = yield* setUp
      for (const text of ["It", "It is", "It is so"]) yield* write(text)
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
      yield* write("It is so")
      yield* clear
      yield* TestClock.adjust(10 * DRAFT_INTERVAL_MS)
      assert.deepStrictEqual(texts(), ["It"])
    })
  )

  it.effect("show no secret and no beginning of one, wherever they end (R32)", () =>
    Effect.gen(function* () {
      const { texts, write } = yield* setUp
      const answer = `The key is ${SECRET}, as you know.`
      for (let end = 1; end <= answer.length; end++) {
        yield* write(answer.slice(0, end))
        yield* TestClock.adjust(DRAFT_INTERVAL_MS)
      }
      for (const text of texts()) assert.isTrue("The key is <redacted>, as you know.".startsWith(text), text)
      assert.strictEqual(texts().at(-1), "The key is <redacted>, as you know.")
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
