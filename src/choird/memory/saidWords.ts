/** Whether a fact says no more than a message: then it is as trustworthy as the one who wrote that, whatever the agent has read meanwhile. */
import { Effect } from "effect"
import { denies, isFunctionWord } from "./languages.ts"
import { type QueryWord, wordsOfQuery, wordsOfText } from "./textWords.ts"
import { stemsOf } from "./wordRows.ts"

/** The share of a fact's words that its message has to have. */
const SAID_MIN = 0.8
/** The one whom an agent writes of where a person says `I`. */
const WRITER = /\busers?\b|(?:be)?nutzers?(?:in)?(?!\p{L})|пользовател\p{L}*|用户|ユーザー|사용자|المستخدم/giu

/** The words that say something: of a signed name its parts. */
const contentOf = (fact: string): ReadonlyArray<QueryWord> =>
  wordsOfQuery(fact.replaceAll(WRITER, " ")).filter(({ whole, word }) => whole !== true && !isFunctionWord(word))

/** A text that denies something and one that does not are of two opinions, however alike their words are. */
export const isSaidIn = Effect.fnUntraced(function* (fact: string, message: string) {
  if (denies(fact) !== denies(message)) return false
  const content = contentOf(fact)
  const words = wordsOfText(message)
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
  return all > 0 && found / all >= SAID_MIN
})
