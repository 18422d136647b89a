/**
 * The words by which texts are found again, in any language. A script that writes blanks gives words, which the database's stemmers shorten;
 * one that writes none (Chinese, Japanese, Thai) gives each pair of characters, which needs no dictionary that may change. Emoji and the
 * whole of a name with signs in it, such as `C++`, are words too. Pure.
 */
import { storableJson } from "#src/shared/text/canonicalJson.ts"
import { spellingsOf } from "./spellings.ts"
import { isFunctionWord, languageOf, stemmersOf } from "./languages.ts"

/** One word of a text, and the dictionaries of the database that make its stems; none for what is looked for as it is. */
export interface TextWord {
  readonly word: string
  /** Itself and its other spellings, such as one without accents. */
  readonly spellings: ReadonlyArray<string>
  readonly stemmers: ReadonlyArray<string>
}

/** A word of a query, which a document may have in one of several forms. */
export interface QueryWord extends TextWord {
  /** How much it counts: the pairs of characters of one word count as one word together. */
  readonly share: number
  /** A name with signs in it, whose parts are words of the query too. */
  readonly whole?: true
}

/** UTF-16 units of one word; longer ones are compared by their beginning. */
const WORD_UNITS_MAX = 64

const UNSPACED = String.raw`[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc\u3005]`
const EMOJI = String.raw`\p{RI}\p{RI}|(?![\p{N}#*])\p{Emoji}(?:\u200d\p{Emoji})*`
const PARTS = new RegExp(
  String.raw`(?<run>${UNSPACED}+)|(?<emoji>${EMOJI})|(?:(?!${UNSPACED})[\p{L}\p{N}\p{M}])+`,
  "gu"
)
const HAS_UNSPACED = new RegExp(UNSPACED, "u")
/** Signs that do not change which emoji it is: colour of the skin, and the form in which it is drawn. */
const EMOJI_FORMS = /[\u{1f3fb}-\u{1f3ff}]|\ufe0e|\ufe0f/gu
/** Signs around a word that are the sentence's. */
const BEFORE = /^[\p{Ps}\p{Pi}\p{Pf}"'`*_~<>:;,!?¿¡、。]+/u
const AFTER = /[\p{Pe}\p{Pi}\p{Pf}"'`*_~<>:;,.!?…؟،؛。、！？]+$/u
const IS_SIGNED = /[^\p{L}\p{N}\p{M}]/u
const HAS_WORD = /[\p{L}\p{N}]/u

/** One form for letters that are written in several ways, in lower case. */
const folded = (text: string): string =>
  storableJson(text).normalize("NFKC").toLowerCase().replaceAll(EMOJI_FORMS, "").replaceAll("\\", "/")

const cut = (word: string): string =>
  word.length <= WORD_UNITS_MAX ? word : word.slice(0, WORD_UNITS_MAX).toWellFormed()

const exact = (word: string): TextWord => ({ word: cut(word), spellings: [cut(word)], stemmers: [] })

/** A word between blanks or signs. */
const spaced = (text: string, language: string | undefined): TextWord => {
  const word = cut(text)
  return { word, spellings: spellingsOf(word), stemmers: stemmersOf(word, language) }
}

/** The characters of a run without blanks, and each two of them that stand side by side. */
const pairsOf = (run: string): ReadonlyArray<string> => {
  const characters = Array.from(run)
  return characters.flatMap((character, place) => {
    const next = characters[place + 1]
    return next === undefined ? [character] : [character, character + next]
  })
}

/** Whether a word is two characters of a script without blanks, which say as much as a longer word of another script. */
export const isPair = (word: string): boolean => HAS_UNSPACED.test(word) && Array.from(word).length === 2

/** Names with signs in them, as they are: `c++`, `.net`, `ac/dc`, `15%`. */
const signedIn = (text: string): ReadonlyArray<string> =>
  text.split(/\s+/u).flatMap((part) => {
    const core = part.replace(BEFORE, "").replace(AFTER, "")
    return core.length <= WORD_UNITS_MAX && IS_SIGNED.test(core) && HAS_WORD.test(core) && !HAS_UNSPACED.test(core)
      ? [core]
      : []
  })

/** Every word of a document, in their order. */
export const wordsOfText = (text: string): ReadonlyArray<TextWord> => {
  const plain = folded(text)
  const language = languageOf(plain)
  const words = [...plain.matchAll(PARTS)].flatMap(({ 0: part, groups }): ReadonlyArray<TextWord> => {
    if (groups?.["run"] !== undefined) return pairsOf(part).map(exact)
    return [groups?.["emoji"] === undefined ? spaced(part, language) : exact(part)]
  })
  return [...words, ...signedIn(plain).map(exact)]
}

// Made when it is needed.
let segmenter: Intl.Segmenter | undefined

/** The words of a run without blanks as a dictionary divides it, without those that only hold a sentence together. */
const segmentsOf = (run: string): ReadonlyArray<string> => {
  segmenter ??= new Intl.Segmenter("zh", { granularity: "word" })
  return [...segmenter.segment(run)].map(({ segment }) => segment)
}

/** A word of a script without blanks: itself if it is one or two characters, or its pairs, which count as much together. */
const segmentWords = (segment: string): ReadonlyArray<QueryWord> => {
  const characters = Array.from(segment)
  const pairs = characters.slice(1).map((next, place) => `${characters[place]}${next}`)
  const words = pairs.length === 0 ? [segment] : pairs
  return words.map((word) => ({ ...exact(word), share: 1 / words.length }))
}

/** The words of a query that tell what it is about. The small words that the database's dictionaries know are still among them. */
export const wordsOfQuery = (text: string): ReadonlyArray<QueryWord> => {
  const plain = folded(text)
  const language = languageOf(plain)
  const words = [...plain.matchAll(PARTS)].flatMap(({ 0: part, groups }): ReadonlyArray<QueryWord> => {
    if (groups?.["run"] !== undefined)
      return segmentsOf(part)
        .filter((one) => !isFunctionWord(one))
        .flatMap(segmentWords)
    if (groups?.["emoji"] !== undefined) return [{ ...exact(part), share: 1 }]
    return isFunctionWord(part) ? [] : [{ ...spaced(part, language), share: 1 }]
  })
  const names = signedIn(plain).map((name): QueryWord => ({ ...exact(name), share: 1, whole: true }))
  return [...new Map([...words, ...names].reverse().map((word) => [word.word, word])).values()].reverse()
}
