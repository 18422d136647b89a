/** Whether a fact says no more than a message: then it is as trustworthy as the one who wrote that, whatever the agent has read meanwhile. */
import { Effect } from "effect"
import { denies, isFunctionWord } from "./languages.ts"
import { type QueryWord, type TextWord, wordsOfQuery, wordsOfText } from "./textWords.ts"
import { stemsOf } from "./wordRows.ts"

/** The share of a fact's words that its message has to have. */
const SAID_MIN = 0.8
/** Words of a fact that its message may lack, however long both are: more of them would be a sentence of somebody else's. */
const UNSAID_MAX = 2
/** Words of which one character may change whom or how much a fact is about: numbers, addresses, links, paths, handles. */
const EXACT = /[\p{N}@/#_+]|[\p{L}\p{N}][.:][\p{L}\p{N}]/u
/** Signs outside of words that a model may read as letters. */
const SIGNS = /[\p{So}\p{C}]/gu
/** The one whom an agent writes of where a person says `I`. */
const WRITER = /\busers?\b|(?:be)?nutzers?(?:in)?(?!\p{L})|пользовател\p{L}*|用户|ユーザー|사용자|المستخدم/giu

/** The words that say something: of a signed name its parts. */
const contentOf = (fact: string): ReadonlyArray<QueryWord> =>
  wordsOfQuery(fact.replaceAll(WRITER, " ")).filter(({ whole, word }) => whole !== true && !isFunctionWord(word))

/** Whether a fact has a number, an address or a sign that its message lacks. */
const namesMore = (fact: string, message: string, words: ReadonlyArray<TextWord>): boolean => {
  const said = new Set(words.map(({ word }) => word))
  if (wordsOfText(fact).some(({ word }) => EXACT.test(word) && !said.has(word))) return true
  return (fact.match(SIGNS) ?? []).some((sign) => !/\s/u.test(sign) && !message.includes(sign))
}

/**
 * A text that denies something and one that does not are of two opinions, however alike their words are. A few words may be others, as where `I`
 * becomes `the user`; numbers, addresses and signs are the person's to the letter.
 */
export const isSaidIn = Effect.fnUntraced(function* (fact: string, message: string) {
  if (denies(fact) !== denies(message)) return false
  const content = contentOf(fact)
  const words = wordsOfText(message)
  if (namesMore(fact, message, words)) return false
  const stems = yield* stemsOf([...content, ...words])
  const said = new Set(words.flatMap((word) => stems(word)))
  let all = 0
  let found = 0
  for (const word of content) {
    const forms = stems(word)
    if (forms.length === 0) continue
    all += word.share
    if (forms.some((form) => said.has(form))) found += word.share
  }
  return all > 0 && found / all >= SAID_MIN && all - found <= UNSAID_MAX
})
