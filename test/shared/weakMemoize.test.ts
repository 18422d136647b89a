import { assert, describe, it } from "@effect/vitest"
import { weakMemoize, memoizeList, memoizeSum } from "#src/shared/weakMemoize.ts"

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

describe("memoizeList", () => {
  const items = Array.from({ length: 6 }, (_, value) => ({ value }))

  it("looks at an item once while lists grow, and again behind the first that differs", () => {
    const looked: Array<number> = []
    const values = memoizeList(({ value }: { value: number }) => {
      looked.push(value)
      return value
    })
    for (const length of [0, 1, 3, 5]) assert.deepStrictEqual([...values(items.slice(0, length))].length, length)
    assert.deepStrictEqual(looked, [0, 0, 1, 2, 3, 4])
    const other = { value: 9 }
    assert.deepStrictEqual(values([...items.slice(0, 3), other]), [0, 1, 2, 9])
    assert.deepStrictEqual(values(items.slice(0, 2)), [0, 1])
    assert.deepStrictEqual(values(items), [0, 1, 2, 3, 4, 5])
    assert.deepStrictEqual(looked.slice(6), [9, 2, 3, 4, 5])
  })

  it("keeps two lists apart that begin alike", () => {
    const sum = memoizeSum(({ value }: { value: number }) => value)
    const [first = { value: 0 }, ...rest] = items
    for (const item of rest) assert.strictEqual(sum([first, item, item]), 2 * item.value)
    for (const item of rest) assert.strictEqual(sum([first, item]), item.value)
  })
})
