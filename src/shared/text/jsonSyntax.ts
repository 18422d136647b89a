/** The problem of a text that is not JSON, with its place. */
import { parse, type ParseError } from "jsonc-parser"

const BYTE_ORDER_MARK = "\u{feff}"
/** The first bytes of a file of UTF-16 as text of UTF-8: its mark, or the zeros beside its letters. */
const UTF_16 = /^(?:\u{fffd}\u{fffd}|.?\0)/u
const LFS_POINTER = "version https://git-lfs.github.com/spec/"

/** A text that was saved in a way that no reader of JSON, and no system that runs programs, understands; undefined for any other. */
export const encodingProblem = (text: string): string | undefined => {
  if (text.startsWith(BYTE_ORDER_MARK)) return "it begins with a byte order mark: save it as UTF-8 without one"
  if (UTF_16.test(text)) return "it is UTF-16: save it as UTF-8"
  return text.startsWith(LFS_POINTER)
    ? "it is a pointer of Git LFS, which is not fetched: commit the file itself (git lfs untrack)"
    : undefined
}

/** The line and the column at which a text ceases to be JSON. */
const placeIn = (text: string): { readonly line: number; readonly column: number } => {
  const errors: Array<ParseError> = []
  parse(text, errors, { disallowComments: true, allowTrailingComma: false })
  const before = text.slice(0, errors[0]?.offset ?? text.trimEnd().length).split("\n")
  return { line: before.length, column: (before.at(-1) ?? "").length + 1 }
}

/** The problem with its place, without the piece of text that a parser quotes: that may be a secret. */
export const syntaxProblem = (text: string): string => {
  const encoding = encodingProblem(text)
  if (encoding !== undefined) return encoding
  if (text.trim() === "") return "it is empty, which is not valid JSON"
  const { column, line } = placeIn(text)
  return `it is not valid JSON (line ${line} column ${column})`
}
