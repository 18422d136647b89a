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

  it("forgets a key that was set again in its place as early as before, and one that was used later", () => {
    const map = new BoundedMap<string, number>(MAX)
    for (const key of ["a", "b", "c"]) map.set(key, 1)
    map.setInPlace("a", 2)
    assert.deepStrictEqual([...map.values()], [2, 1, 1])
    map.setInPlace("d", 3)
    assert.isFalse(map.has("a"))
    assert.strictEqual(map.use("b"), 1)
    assert.isUndefined(map.use("a"))
    map.set("e", 4)
    assert.deepStrictEqual([map.has("b"), map.has("c")], [true, false])
    assert.deepStrictEqual([map.delete("b"), map.delete("b")], [true, false])
  })

  it("counts the new weight of a key that was set again in its place", () => {
    const map = new BoundedMap<string, number>(MAX, { most: 10, of: (value) => value })
    map.set("a", 9)
    map.setInPlace("a", 4)
    map.set("b", 6)
    assert.deepStrictEqual([...map.values()], [4, 6])
    map.setInPlace("b", 7)
    assert.deepStrictEqual([...map.values()], [7])
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
