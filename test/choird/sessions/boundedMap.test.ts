import { assert, describe, it } from "@effect/vitest"
import { BoundedMap } from "#src/choird/sessions/boundedMap.ts"

const MAX = 3

describe("a bounded map", () => {
  it("holds the keys that were set last", () => {
    const map = new BoundedMap<string, number>(MAX)
    for (const [at, key] of ["a", "b", "c", "a", "d", "e"].entries()) map.set(key, at)
    assert.deepStrictEqual(
      ["a", "b", "c", "d", "e"].map((key) => map.get(key)),
      [3, undefined, undefined, 4, 5]
    )
    map.delete("d")
    assert.isFalse(map.has("d"))
    map.set("f", 6)
    assert.isTrue(map.has("a"))
  })
})
