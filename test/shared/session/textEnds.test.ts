import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { firstChars, lastChars } from "#src/shared/session/textEnds.ts"

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

const heapOf = (make: () => unknown): number => {
  collect()
  const before = process.memoryUsage().heapUsed
  const held = make()
  collect()
  const bytes = process.memoryUsage().heapUsed - before
  assert.isDefined(held)
  return bytes
}

describe("the ends of a text", () => {
  it("are the first and the last characters, well-formed where a pair is cut", () => {
    assert.deepStrictEqual([firstChars("abc", 2), lastChars("abc", 2), firstChars("abc", 3)], ["ab", "bc", "abc"])
    assert.deepStrictEqual([lastChars("abc", 0), firstChars("🙂a", 1), lastChars("a🙂", 1)], ["", "\uFFFD", "\uFFFD"])
  })

  it("hold none of the text that they were cut from", () => {
    const long = (index: number): string => JSON.parse(`"${String(index).repeat(300_000)}"`)
    const made = () =>
      Array.from({ length: 40 }, (_, index) => [firstChars(long(index), 200), lastChars(long(index), 200)])
    assert.isBelow(heapOf(made), 4_000_000)
  })
})
