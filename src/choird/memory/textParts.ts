/** Long texts in parts of a limited size. Pure. */

/** The place before `end` where a text is best divided: after a line, else after a word, else between two characters. */
const placeToCut = (text: string, start: number, end: number): number => {
  const half = start + Math.floor((end - start) / 2)
  const line = text.lastIndexOf("\n", end - 1)
  if (line >= half) return line + 1
  for (let at = end; at > half; at -= 1) if (/\s/u.test(text.charAt(at - 1))) return at
  return isInPair(text, end) ? end - 1 : end
}

/** Whether the two halves of one character stand around an index. */
const isInPair = (text: string, at: number): boolean => {
  const unit = text.charCodeAt(at)
  return unit >= 0xdc00 && unit <= 0xdfff && at > 0
}

/** Parts of at most so many characters, in their order. Together they are the text without blanks where it was divided. */
export const splitText = (text: string, chars: number): ReadonlyArray<string> => {
  const parts: Array<string> = []
  let start = 0
  while (text.length - start > chars) {
    const end = placeToCut(text, start, start + chars)
    parts.push(text.slice(start, end))
    start = end
  }
  parts.push(text.slice(start))
  const said = parts.map((part) => part.trim()).filter((part) => part !== "")
  return said.length === 0 ? [""] : said
}

/** The end of a text, with a mark where something is left out before it. */
export const tailOf = (text: string, chars: number): string => {
  if (text.length <= chars) return text
  const start = text.length - chars
  const space = text.indexOf(" ", start)
  const from = space >= 0 && space < start + chars / 2 ? space + 1 : isInPair(text, start) ? start + 1 : start
  return `…${text.slice(from)}`
}
