import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chaos } from "../support/chaos.ts"

const MINUTES_MAX = 5 * 60_000

describe("chaos", () => {
  for (const [requirement, target] of [
    ["R1", "agent"],
    ["R2", "choird"]
  ] as const) {
    it.live(
      `${requirement} loses nothing acknowledged and does nothing twice through 30 kills of the ${target}`,
      () =>
        Effect.gen(function* () {
          const { kills, messages, problems } = yield* chaos({ target, kills: 30, seed: "ci" })
          assert.deepStrictEqual(problems, [])
          assert.strictEqual(kills, 30)
          assert.isAbove(messages, 30)
        }),
      MINUTES_MAX
    )
  }
})
