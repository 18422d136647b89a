import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { configChaos } from "../support/configChaos.ts"
import { SIZE } from "../support/size.ts"

/** Of a kill of choird with all that follows on a busy machine. */
const KILL_MS_MAX = 60_000

describe("chaos of configurations", () => {
  it.live(
    `R56 runs a whole configuration under a number that only grows through ${SIZE.configKills} kills of choird during load, apply and rollback`,
    () =>
      Effect.gen(function* () {
        const { applied, kills, problems, seen } = yield* configChaos({ kills: SIZE.configKills, seed: "ci" })
        assert.deepStrictEqual(problems, [])
        assert.strictEqual(kills, SIZE.configKills)
        assert.isAbove(applied, 0)
        assert.isAbove(seen, kills)
      }),
    300_000 + SIZE.configKills * KILL_MS_MAX
  )
})
