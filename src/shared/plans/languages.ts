/** The languages whose words for times are read, which are those that people of Choir write and chrono-node reads. */
import type { Language } from "./Language.ts"
import { Chinese, Japanese } from "./eastern.ts"
import { Dutch, English, German } from "./germanic.ts"
import { French, Italian, Portuguese, Spanish } from "./romance.ts"
import { Russian, Ukrainian } from "./slavic.ts"

/** The first is the one of a text that several languages read alike. */
const LANGUAGES: ReadonlyArray<Language> = [
  English,
  German,
  French,
  Spanish,
  Italian,
  Portuguese,
  Dutch,
  Russian,
  Ukrainian,
  Japanese,
  Chinese
]

/** The languages in whose letters a text has words; the first one reads digits alone. */
export const languagesOf = (text: string): ReadonlyArray<Language> => {
  const found = LANGUAGES.filter(({ script }) => script.test(text))
  return found.length > 0 ? found : [English]
}
