/** Text whose lines were broken only to be sent (RFC 3676). Pure. */

interface Line {
  /** How many marks of a quote are in front of it. */
  readonly depth: number
  readonly text: string
}

const lineOf = (line: string): Line => {
  const depth = /^>*/u.exec(line)?.[0].length ?? 0
  const text = line.slice(depth)
  // A blank in front of a text keeps it from being taken for something else.
  return { depth, text: text.startsWith(" ") ? text.slice(1) : text }
}

/** Whether a line continues in the next one. The mark of a signature ends with a blank and does not. */
const isOpenLine = (text: string) => text.endsWith(" ") && text !== "-- "

/** The paragraphs of such a text, with the marks of quotes in front. @param delSp whether the blank at a break is not part of the text. */
export const flowedText = (flowed: string, delSp: boolean): string => {
  const paragraphs: Array<{ readonly depth: number; readonly parts: Array<string>; isOpen: boolean }> = []
  for (const line of flowed.split(/\r?\n/u)) {
    const { depth, text } = lineOf(line)
    const last = paragraphs.at(-1)
    const isOpen = isOpenLine(text)
    const words = isOpen && delSp ? text.slice(0, -1) : text
    // A quote of another depth is another's, even where the line before it was left open.
    if (last?.isOpen === true && last.depth === depth && text !== "-- ") {
      last.parts.push(words)
      last.isOpen = isOpen
    } else paragraphs.push({ depth, parts: [words], isOpen })
  }
  return paragraphs
    .map(
      ({ depth, parts }) => `${">".repeat(depth)}${depth === 0 || parts.join("") === "" ? "" : " "}${parts.join("")}`
    )
    .join("\n")
}
