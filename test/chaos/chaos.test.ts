import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chaos } from "../support/chaos.ts"
import { SIZE } from "../support/size.ts"

/** Of a kill of choird with all that follows on a busy machine. */
const KILL_MS_MAX = 60_000

describe("chaos", () => {
  for (const [requirement, target, name] of [
    ["R1", "agent", "the agent"],
    ["R2", "choird", "choird"],
    ["R3", "postgres", "Postgres"]
  ] as const) {
    it.live(
      `${requirement} loses nothing acknowledged and does nothing twice through ${SIZE.kills} kills of ${name}`,
      () =>
        Effect.gen(function* () {
          const { kills, messages, problems } = yield* chaos({
            target,
            database: "embedded",
            kills: SIZE.kills,
            seed: "ci"
          })
          assert.deepStrictEqual(problems, [])
          assert.strictEqual(kills, SIZE.kills)
          assert.isAbove(messages, kills)
        }),
      300_000 + SIZE.kills * KILL_MS_MAX
    )
  }
})
