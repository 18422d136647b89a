/** Long texts in parts of a limited size. Pure. */

import { cutAfter, placeToCut } from "#src/shared/text/placeToCut.ts"

/** Parts of at most so many characters, in their order. Together they are the text without blanks where it was divided. */
export const splitText = (text: string, chars: number): ReadonlyArray<string> => {
  const parts: Array<string> = []
  let start = 0
  while (text.length - start > chars) {
    const { end, next } = placeToCut(text, start, start + chars)
    parts.push(text.slice(start, end))
    start = next
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
  const from = space >= 0 && space < start + chars / 2 ? space + 1 : cutAfter(text, start)
  return `…${text.slice(from)}`
}
