import { assert, describe, it } from "@effect/vitest"
import { languageOf, mayBeEnglish } from "#src/choird/memory/languages.ts"
import { wordsIn } from "#src/choird/memory/ranking.ts"
import { wordsOfQuery, wordsOfText } from "#src/choird/memory/textWords.ts"

const textWords = (text: string) => wordsOfText(text).map(({ word }) => word)
const queryWords = (text: string) => wordsOfQuery(text).map(({ word }) => word)

describe("the words of a text", () => {
  it("are pairs of characters where no blanks are written, and each character", () => {
    assert.deepStrictEqual(textWords("牙医王明"), ["牙", "牙医", "医", "医王", "王", "王明", "明"])
    assert.includeMembers(textWords("หมอฟัน"), ["หม", "ฟั"])
  })

  it("keep emoji, and names with signs in them as they are", () => {
    assert.includeMembers(textWords("We call her P!nk 🦊, she writes C++, .NET and AC/DC (15%)."), [
      "p!nk",
      "🦊",
      "c++",
      ".net",
      "ac/dc",
      "15%"
    ])
    assert.deepStrictEqual(textWords("🦊🏽"), textWords("🦊"))
  })

  it("have a spelling without accents", () => {
    assert.deepStrictEqual(wordsOfText("José")[0]?.spellings, ["josé", "jose"])
  })

  it("have the spellings of keyboards without their letters", () => {
    const spellings = (word: string) => wordsOfText(word)[0]?.spellings
    assert.deepStrictEqual(spellings("Łukasz"), ["łukasz", "lukasz"])
    assert.deepStrictEqual(spellings("Schlüter"), ["schlüter", "schluter", "schlueter"])
    assert.deepStrictEqual(spellings("nøgle"), ["nøgle", "nogle", "noegle"])
    assert.deepStrictEqual(spellings("Straße"), ["straße", "strasse"])
    assert.deepStrictEqual(spellings("کتابی"), ["کتابی", "كتابي"])
    assert.deepStrictEqual(spellings("۳۹۰۷"), ["۳۹۰۷", "3907"])
    assert.deepStrictEqual(spellings("plain"), ["plain"])
  })

  it("have a spelling without what Hebrew writes in front of them, as long as a word is left", () => {
    const spellings = (word: string) => wordsOfText(word)[0]?.spellings
    assert.deepStrictEqual(spellings("הרופא"), ["הרופא", "רופא"])
    assert.deepStrictEqual(spellings("שהרופא"), ["שהרופא", "הרופא", "רופא"])
    assert.deepStrictEqual(spellings("הבית"), ["הבית", "בית"])
    assert.deepStrictEqual(spellings("בית"), ["בית"])
  })

  it("are stemmed in the language of the words around them, and in English where that cannot be told", () => {
    const [first] = wordsOfText("zahnärzte sind nicht teuer, und das ist gut")
    assert.deepStrictEqual(first?.stemmers, ["english_stem", "german_stem"])
    assert.deepStrictEqual(wordsOfText("Zahnarzt")[0]?.stemmers, ["english_stem"])
    assert.deepStrictEqual(wordsOfText("ключ")[0]?.stemmers, ["russian_stem"])
    assert.strictEqual(languageOf("the dog is in the garden with my brother and his wife"), undefined)
  })

  it("are compared by pairs of characters as by longer words of other scripts", () => {
    assert.deepStrictEqual([...wordsIn("an old 牙医")].sort(), ["old", "牙医"])
  })
})

describe("the words of a query", () => {
  it("do not exist where there is no word", () => {
    for (const text of ["", "!!!", "&", "… ?! —", "\0"]) assert.deepStrictEqual(queryWords(text), [])
  })

  it("leave out what only holds a sentence together, and count the pairs of one word as one", () => {
    assert.deepStrictEqual(queryWords("我的牙医叫什么名字？"), ["牙医", "名字"])
    const shares = wordsOfQuery("歯医者の予約はいつですか").map(({ share, word }) => [word, share])
    assert.deepStrictEqual(shares, [
      ["歯医", 0.5],
      ["医者", 0.5],
      ["予約", 1]
    ])
  })
})

describe("a model that knows English alone", () => {
  it("is asked for texts that may be English", () => {
    assert.isTrue(mayBeEnglish("Where does 王明 live in the old town?"))
    for (const text of ["Где ключ?", "我的牙医", "Wo ist mein Schlüssel?", "أين المفتاح"])
      assert.isFalse(mayBeEnglish(text))
  })
})
