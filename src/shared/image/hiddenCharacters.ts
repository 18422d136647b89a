/** Characters that nobody sees, in texts and in the values that a file's escapes make. Pure. */

/**
 * Characters that nobody sees, among them the ones that can hide or reverse text. What has one is refused, so fewer count than for UNSEEN, which only
 * changes how a text is shown. Left alone are one variation selector that shows a sign as an emoji or as text, a joiner between parts of an emoji, and
 * characters that are newer than Node's Unicode.
 */
const HIDDEN =
  /(?!(?<=\p{Emoji})[\u{FE0E}\u{FE0F}])(?!(?<=[\p{Extended_Pictographic}\u{FE0F}\p{Emoji_Modifier}])\u{200D})[\p{Cf}\p{Cc}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]/u
const LINE = /\n/u

/** The first character of a text that nobody sees, by its line. */
export const hiddenProblem = (text: string): string | undefined => {
  for (const [index, line] of text.split(LINE).entries()) {
    const found = HIDDEN.exec(line.replaceAll("\t", " "))
    const code = found?.[0].codePointAt(0)
    if (code !== undefined)
      return `line ${index + 1} has a character that cannot be seen, U+${code.toString(16).toUpperCase().padStart(4, "0")}: remove it`
  }
  return undefined
}

/** Places that are named. */
const PLACES_MAX = 5
const PLACE_CHARS_MAX = 200

/** Every text of a value with its place, keys among them. */
function* textsIn(value: unknown, at: string): Generator<readonly [at: string, text: string]> {
  if (typeof value === "string") yield [at, value]
  if (typeof value !== "object" || value === null) return
  for (const [key, each] of Object.entries(value)) {
    if (!Array.isArray(value)) yield [`a key of ${at === "" ? "it" : at}`, key]
    yield* textsIn(each, Array.isArray(value) ? `${at}[${key}]` : `${at}["${key}"]`)
  }
}

/** The texts of a decoded value that hold such a character, by their places. `leave` are texts that are already known. */
export const hiddenValues = (value: unknown, leave: ReadonlySet<string> = new Set()): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (const [at, text] of textsIn(value, "")) {
    const problem = leave.has(text) ? undefined : hiddenProblem(text)
    if (problem !== undefined)
      found.push(`${at.replaceAll(/[^\x20-\x7E]/gu, "?").slice(0, PLACE_CHARS_MAX)}: ${problem}`)
    if (found.length === PLACES_MAX) break
  }
  return found
}
