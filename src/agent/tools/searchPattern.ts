/** A search's pattern as it is meant: over line ends, and of letters with marks in either of their two spellings. Pure. */

/** A line's end as regular expressions and models write it. */
const NEWLINE = /\\n|\n/u
/** The parts of an expression: an escape, a class of characters, or one sign. */
const PARTS = /\\[^]|\[\^?\]?(?:\\[^]|[^\]\\])*\]|[^]/gu
/** Signs that mean more than themselves. */
const SIGNS = /[\\^$.|?*+()[\]{}]/u
/** A mark that a quantifier would take apart from its letter, once they are two characters. */
const COUNTED_MARK = /\p{M}[?*{]/u

const partsOf = (pattern: string): ReadonlyArray<string> => pattern.match(PARTS) ?? []

/** Whether a match may take more than one line. */
const reachesOverLines = (pattern: string): boolean => partsOf(pattern).some((part) => NEWLINE.test(part))

/** Whether it matches anything but itself. */
export const isExpression = (pattern: string): boolean => SIGNS.test(pattern)

/** Both spellings of letters with marks, of which files have either; a class of characters cannot hold a letter of two. */
const spellings = (pattern: string, isText: boolean): ReadonlyArray<string> => {
  const forms = [...new Set([pattern, pattern.normalize("NFC"), pattern.normalize("NFD")])]
  const isSafe = isText || (!pattern.includes("[") && !forms.some((form) => COUNTED_MARK.test(form)))
  return isSafe ? forms : [pattern]
}

/** The arguments of ripgrep for a pattern, or for the text that it is letter by letter. */
export const patternArguments = (pattern: string, isText = false): ReadonlyArray<string> => {
  // Models write a line's end as \n, which is CRLF in some files.
  const withEnds = isText
    ? pattern
    : partsOf(pattern)
        .map((part) => (part === "\n" || part === String.raw`\n` ? String.raw`\r?\n` : part))
        .join("")
  return [
    "--crlf",
    ...(isText ? ["--fixed-strings"] : ["--engine=auto"]),
    ...(reachesOverLines(pattern) ? ["--multiline"] : []),
    ...spellings(withEnds, isText).map((form) => `--regexp=${form}`)
  ]
}
