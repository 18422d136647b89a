/** What a provider's cache is worth over long work: the share of prompts that was sent before, the calls for memory, and the cost beside the ideal. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { costFigures, TRIGGER } from "../../support/idealCost.ts"
import { LONG_WORK, STEPS, TURNS } from "../../support/longWork.ts"
import { CACHED_TOKENS_STEP } from "../../support/providers/Meter.ts"

describe("the prompts of long work", () => {
  it.effect(
    `of a job of ${STEPS} steps were sent before for 97 %, with 2 % of calls for memory, near the least cost`,
    () =>
      Effect.gen(function* () {
        const { extra, largest, lowest, ratio, share } = costFigures(yield* LONG_WORK.job)
        assert.isAtLeast(share, 0.97)
        assert.isAtMost(extra, 0.02)
        assert.isAtLeast(lowest, 0.9)
        assert.isAtMost(largest, TRIGGER)
        assert.isAbove(largest, TRIGGER / 2, "the job is long enough to be compacted")
        assert.isAtMost(ratio, 1.1)
      })
  )

  it.effect(`of a chat of ${TURNS} turns were sent before for 97 %, near the least cost`, () =>
    Effect.gen(function* () {
      const { extra, lowest, ratio, share } = costFigures(yield* LONG_WORK.chat)
      assert.isAtLeast(share, 0.97)
      assert.isAtMost(extra, 0.02)
      assert.isAtLeast(lowest, 0.9)
      assert.isAtMost(ratio, 1.1)
    })
  )

  it.effect(
    `of a chat of ${TURNS} turns beside three jobs that report were sent before for 95 %, near the least cost`,
    () =>
      Effect.gen(function* () {
        const edge = yield* LONG_WORK.beside
        const { extra, lowest, ratio, share } = costFigures(edge)
        assert.isAtLeast(share, 0.95)
        assert.isAtMost(extra, 0.02)
        assert.isAtLeast(lowest, 0.9)
        assert.isAtMost(ratio, 1.1)
        const missed = edge.filter(({ cached }, index) => cached < (edge[index - 1]?.input ?? 0) - CACHED_TOKENS_STEP)
        assert.deepStrictEqual(missed, [], "what jobs do changes nothing that was sent before")
      })
  )

  it.effect("of a job whose compactions all fail were sent before for 95 %, and none is over the limit", () =>
    Effect.gen(function* () {
      const { extra, largest, lowest, ratio, share } = costFigures(yield* LONG_WORK.forgetful)
      assert.isAtLeast(share, 0.95)
      assert.isAtMost(extra, 0.04)
      assert.isAtLeast(lowest, 0.9)
      assert.isAtMost(largest, TRIGGER)
      assert.isAtMost(ratio, 1.1)
    })
  )
})
