import { assert, describe, it } from "@effect/vitest"
import { weakMemoize } from "#src/shared/weakMemoize.ts"

describe("weakMemoize", () => {
  it("makes a result once for an object, and again for other arguments or more of them", () => {
    let made = 0
    const label = weakMemoize((_: object, first: number, second?: number) => `${(made += 1)}: ${first} ${second}`)
    const key = {}
    assert.deepStrictEqual([label(key, 1), label(key, 1)], ["1: 1 undefined", "1: 1 undefined"])
    assert.deepStrictEqual([label(key, 1, 2), label(key, 3)], ["2: 1 2", "3: 3 undefined"])
    assert.strictEqual(label({}, 3), "4: 3 undefined")
  })
})
