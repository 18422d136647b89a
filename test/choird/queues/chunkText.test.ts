import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { chunkText } from "#src/choird/queues/Outbox.ts"

const LETTERS = ["a", "b ", " ", "\n", "\n\n", "🙂", "é", "\t"]
const Text = Schema.Array(Schema.Literals(LETTERS)).pipe(Schema.annotate({}))
const Limit = Schema.Int.check(Schema.isBetween({ minimum: 2, maximum: 12 }))
const withoutSpace = (text: string) => text.replaceAll(/\s/gu, "")

describe("chunkText", () => {
  it.prop(
    "keeps everything but space, within the limit and without half a character (R43)",
    [Text, Limit],
    ([letters, limit]) => {
      const text = letters.join("")
      const parts = chunkText(text, limit)
      assert.strictEqual(withoutSpace(parts.join("")), withoutSpace(text))
      for (const part of parts) {
        assert.isAtMost(part.length, limit)
        assert.isTrue(part.isWellFormed())
        assert.notStrictEqual(part.trim(), "")
      }
    }
  )

  it.prop("leaves a text alone that fits", [Text, Limit], ([letters, limit]) => {
    const text = letters.join("").slice(0, limit).toWellFormed()
    assert.deepStrictEqual(chunkText(text, limit), text.trim() === "" ? [] : [text])
  })

  it("prefers the ends of paragraphs, then of lines, then of words", () => {
    assert.deepStrictEqual(chunkText("one two\n\nthree\nfour", 14), ["one two", "three\nfour"])
    assert.deepStrictEqual(chunkText("one two\nthree four", 14), ["one two", "three four"])
    assert.deepStrictEqual(chunkText("one two three", 10), ["one two", "three"])
    assert.deepStrictEqual(chunkText("onetwothree", 4), ["onet", "woth", "ree"])
    assert.deepStrictEqual(chunkText("a🙂🙂", 2), ["a", "🙂", "🙂"])
  })
})
