import { assert, describe, it } from "@effect/vitest"
import { BoundedMap } from "#src/shared/boundedMap.ts"

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

  it("holds no more than a weight of them, and the newest in any case", () => {
    const map = new BoundedMap<string, number>(MAX, { most: 10, of: (value) => value })
    const held = () => ["a", "b", "c", "d"].filter((key) => map.has(key))
    map.set("a", 5)
    map.set("b", 5)
    map.set("a", 4)
    assert.deepStrictEqual(held(), ["a", "b"])
    map.set("c", 3)
    assert.deepStrictEqual(held(), ["a", "c"])
    map.delete("a")
    map.set("d", 7)
    assert.deepStrictEqual(held(), ["c", "d"])
    map.set("b", 99)
    assert.deepStrictEqual(held(), ["b"])
    map.set("a", 1)
    assert.deepStrictEqual(held(), ["a"])
  })
})
