import { assert, describe, it } from "@effect/vitest"
import { markedText, splitMarked } from "#src/choird/telegram/markedText.ts"
import { chunkText } from "#src/choird/queues/Outbox.ts"
import { CHARACTER_UNITS_MAX, firstPart, lastPart, placeToCut, shortened } from "#src/shared/text/placeToCut.ts"
import { seeded } from "../../support/seeded.ts"

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

/** Characters of several units as readers see them: families, flags, tones of skin, keycaps, letters with marks, syllables of Korean and Hindi. */
const CHARACTERS = [
  "👩‍👩‍👧‍👦",
  "🇩🇪",
  "🇫🇷",
  "👍🏽",
  "1️⃣",
  "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
  "e\u0301",
  "n\u0303\u0302",
  "각",
  "क्षि",
  "ก็",
  "\n",
  "🙂",
  "x",
  "漢",
  " "
]

/** The places between the characters of a text, by the whole text. */
const boundaries = (text: string): ReadonlySet<number> =>
  new Set([...new Intl.Segmenter("en").segment(text)].map(({ index }) => index).concat(text.length))

const isWhole = (text: string, part: string, at: number, all: ReadonlySet<number>) =>
  text.slice(at, at + part.length) === part && all.has(at) && all.has(at + part.length)

describe("a text that is cut", () => {
  it("never ends or begins within a character, in 600 random texts and at every length", () => {
    for (let seed = 1; seed <= 600; seed += 1) {
      const below = seeded(seed)
      const text = Array.from({ length: 40 }, () => CHARACTERS[below(CHARACTERS.length)] ?? "").join("")
      const all = boundaries(text)
      const units = 16 + below(40)
      const [first, last] = [firstPart(text, units), lastPart(text, units)]
      assert.isTrue(isWhole(text, first, 0, all), `first ${units} of ${JSON.stringify(text)}`)
      assert.isTrue(isWhole(text, last, text.length - last.length, all), `last ${units} of ${JSON.stringify(text)}`)
      assert.isAtMost(Math.max(first.length, last.length, shortened(text, units).length), units)
      let at = 0
      for (const part of splitMarked({ text, entities: [] }, units)) {
        assert.isTrue(isWhole(text, part.text, at, all), `${units} of ${JSON.stringify(text)}`)
        assert.isAtMost(part.text.length, units)
        at += part.text.length
      }
      assert.strictEqual(at, text.length)
      for (const part of chunkText(text, units)) {
        assert.isAtMost(part.length, units)
        assert.isTrue(
          [...all].some((from) => isWhole(text, part, from, all)),
          JSON.stringify(part)
        )
      }
    }
  })

  it("keeps a flag whole in a row of a thousand", () => {
    const text = "🇩🇪🇫🇷".repeat(500)
    for (const units of [61, 62, 63, 64, 1999, 3002]) {
      assert.strictEqual(firstPart(text, units).length % 4, 0)
      assert.strictEqual(lastPart(text, units).length % 4, 0)
    }
  })

  it("is cut within a tower of marks, which would fit into no part", () => {
    const tower = `a${"\u0301".repeat(9000)}`
    const parts = splitMarked(markedText(tower), 4096)
    assert.deepStrictEqual(
      parts.map(({ text }) => text.length),
      [4096, 4096, 809]
    )
    assert.strictEqual(firstPart(tower, 4096).length, 4096)
    assert.isBelow(CHARACTER_UNITS_MAX, 4096)
  })
})
