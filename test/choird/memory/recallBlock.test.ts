/** The part of a long text that a note or a list of hits shows, in scripts that end sentences with other signs or with none. */
import { assert, describe, it } from "@effect/vitest"
import { excerpt } from "#src/choird/memory/recallBlock.ts"
import { wordsOfQuery } from "#src/choird/memory/textWords.ts"

const HEADER = "[4 March 2026, 09:00 UTC, talk with the user]"
const TOKENS = 75

/** A sentence that says what is looked for, between others that say nothing of it. */
const LONG: ReadonlyArray<readonly [script: string, query: string, filler: string, answer: string]> = [
  ["Thai, which has no sign for the end of a sentence", "กรุงเทพ", "วันนี้อากาศดีและเราไปเดินเล่น", "บ้านของฉันอยู่ในกรุงเทพ"],
  ["Hindi", "चाबी", "आज मौसम अच्छा है और हम घूमने गए।", "चाबी घड़ी के अंदर है।"],
  ["Burmese", "သော့", "ဒီနေ့ ရာသီဥတု ကောင်းတယ်။", "သော့ ကုလားထိုင်အောက်မှာ ရှိတယ်။"],
  ["Chinese", "钥匙", "今天天气很好，我们去散步了。", "钥匙挂在走廊的钟里面。"],
  ["Urdu", "چابی", "آج موسم اچھا ہے۔ ", "چابی گھڑی کے اندر ہے۔ "],
  ["English without a sign", "umbrella", "and then we walked a little further ", "the umbrella is in the shed "]
]

const termsOf = (query: string) => wordsOfQuery(query).map(({ word }) => ({ lexemes: [word] }))

describe("the excerpt of a long text", () => {
  for (const [script, query, filler, answer] of LONG)
    it(`has the words looked for, in ${script}`, () => {
      const words = `${filler.repeat(30)}${answer}${filler.repeat(30)}`
      for (const text of [`${HEADER}\nuser: ${words}`, words]) {
        const shown = excerpt(text, termsOf(query), TOKENS)
        assert.include(shown, answer.trim().slice(0, 12))
        assert.isAtMost(shown.length, 8 * TOKENS)
      }
    })

  it("keeps the header of what was said", () => {
    const shown = excerpt(`${HEADER}\nuser: ${"Nothing of it. ".repeat(80)}The key is here.`, termsOf("key"), TOKENS)
    assert.isTrue(shown.startsWith(`${HEADER}\n`))
    assert.include(shown, "The key is here.")
  })

  it("never ends within what a reader sees as one character", () => {
    const family = "👩‍👩‍👧‍👦"
    const shown = excerpt(family.repeat(200), [{ lexemes: ["nothing"] }], TOKENS)
    assert.match(shown, new RegExp(`^(?:${family}|…|\\n)+$`, "u"))
  })
})
