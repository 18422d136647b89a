import { assert, describe, it } from "@effect/vitest"
import { placeToCut } from "#src/shared/text/placeToCut.ts"

const cut = (text: string, start: number, end_max: number) => {
  const { end, next } = placeToCut(text, start, end_max)
  return [text.slice(start, end), text.slice(next)]
}

describe("placeToCut", () => {
  it("prefers the end of a paragraph to that of a line, and this one to that of a word", () => {
    assert.deepStrictEqual(cut("one two\n\nthree\nfour five", 0, 14), ["one two", "three\nfour five"])
    assert.deepStrictEqual(cut("one two\nthree four", 0, 14), ["one two", "three four"])
    assert.deepStrictEqual(cut("one two three", 0, 10), ["one two", "three"])
  })

  it("fills a part whose last word ends where the part has to", () => {
    assert.deepStrictEqual(cut("one two", 0, 3), ["one", "two"])
    assert.deepStrictEqual(cut("one two\n\nthree", 4, 7), ["two", "three"])
  })

  it("takes no separator in the first half, and no half of a character", () => {
    assert.deepStrictEqual(cut("a bcdefgh", 0, 6), ["a bcde", "fgh"])
    assert.deepStrictEqual(cut("a🙂🙂", 0, 2), ["a", "🙂🙂"])
    assert.deepStrictEqual(cut("a🙂🙂", 1, 3), ["🙂", "🙂"])
  })
})
