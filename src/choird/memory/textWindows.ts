/** A long text as pieces that a model with a short window reads whole. Pure. */

/** Tokens of one piece: the local model reads 128 and ignores the rest. */
const WINDOW_TOKENS_MAX = 120
/** Pieces of one text that the local model reads; the rest of the text does not count. */
const WINDOWS_MAX = 8
/** Characters of a word that is counted whole; a longer one is divided. */
const WORD_CHARS_MAX = 60

export interface TextWindow {
  readonly text: string
  readonly tokens: number
}

const WORD = new RegExp(`\\S{1,${WORD_CHARS_MAX}}`, "gu")

/** Pieces of about the same size, divided between words. A text without words is one piece. */
export const textWindows = (text: string, count: (word: string) => number): ReadonlyArray<TextWindow> => {
  const words: Array<TextWindow> = []
  let total = 0
  for (const [word] of text.matchAll(WORD)) {
    const tokens = count(word)
    if (total + tokens > WINDOWS_MAX * WINDOW_TOKENS_MAX) break
    total += tokens
    words.push({ text: word, tokens })
  }
  const size = total / Math.ceil(total / WINDOW_TOKENS_MAX)
  const windows: Array<{ words: Array<string>; tokens: number }> = []
  for (const { text: word, tokens } of words) {
    const last = windows.at(-1)
    const fits = last !== undefined && last.tokens < size && last.tokens + tokens <= WINDOW_TOKENS_MAX
    if (last === undefined || !fits) windows.push({ words: [word], tokens })
    else {
      last.words.push(word)
      last.tokens += tokens
    }
  }
  // A text of blanks alone, which the model takes as one unknown token.
  if (windows.length === 0) return [{ text: " ", tokens: 1 }]
  return windows.map(({ tokens, words }) => ({ text: words.join(" "), tokens }))
}
