import { assert, describe, it } from "@effect/vitest"
import { changed, changesOf } from "./changes.ts"

const TEXT = `/** Whether a < b === c. */
import { a } from "a"
export interface Shape {
  readonly size: number
}
export const f = (a: number, b: number) => {
  if (a < b) return 1
  yield* stop(a)
  return a + 1
}
`

describe("changes of one line", () => {
  it("leave comments, imports and types alone, and are the same each time", () => {
    const changes = changesOf("f.ts", TEXT)
    assert.deepStrictEqual(
      changes.map(({ after, line }) => [line, after.trim()]),
      [
        [7, "if (a <= b) return 1"],
        [7, ""],
        [8, ""],
        [9, "return a"]
      ]
    )
    assert.deepStrictEqual(changesOf("f.ts", TEXT), changes)
  })

  it("change that line alone", () => {
    const [first] = changesOf("f.ts", TEXT)
    assert.strictEqual(first === undefined ? "" : changed(TEXT, first), TEXT.replace("a < b) return", "a <= b) return"))
  })
})
