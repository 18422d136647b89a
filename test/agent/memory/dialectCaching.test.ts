/** What the caches of providers are worth over long work, over sockets and by each API. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { DialectName } from "#demo/dialects/Dialect.ts"
import { costFigures } from "../../support/idealCost.ts"
import { atSize, SIZE } from "../../support/size.ts"
import { workWithProvider } from "../../support/workWithProvider.ts"

/** Gemini and Mistral do not say what they had in a cache. */
const TRIED = atSize<DialectName>(
  ["responses", "anthropic", "deepseek"],
  ["openai", "openrouter", "kimi", "qwen-template"]
)

describe("the prompts of long work", () => {
  for (const dialect of TRIED)
    for (const [what, steps, messages] of [
      ["job", SIZE.cachedSteps, 1],
      ["chat", 0, SIZE.cachedTurns]
    ] as const)
      it.live(`of a ${what} are found in the cache of a provider that speaks ${dialect}`, () =>
        Effect.gen(function* () {
          const { extra, lowest, ratio, share } = costFigures(yield* workWithProvider(dialect, steps, messages))
          assert.isAtLeast(lowest, 0.9)
          assert.isAtMost(extra, 0.02)
          assert.isAtLeast(share, SIZE.cachedShare)
          assert.isAtMost(ratio, 1.1, "the cost beside the ideal")
        }).pipe(Effect.scoped)
      )
})
