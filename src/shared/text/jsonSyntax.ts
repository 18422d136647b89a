/** The problem of a text that is not JSON, with its place. */

const BYTE_ORDER_MARK = "\u{feff}"

const endOf = (text: string): string => {
  const lines = text.trimEnd().split("\n")
  return `line ${lines.length} column ${(lines.at(-1) ?? "").length + 1}`
}

/** The parser's message with its place, without the piece of text that it quotes: that may be a secret. A text that breaks off ends at its place. */
export const syntaxProblem = (text: string, cause: unknown): string => {
  if (text.startsWith(BYTE_ORDER_MARK)) return "it begins with a byte order mark: save it as UTF-8 without one"
  if (text.trim() === "") return "it is empty, which is not valid JSON"
  return `it is not valid JSON (${/line \d+ column \d+/u.exec(String(cause))?.[0] ?? endOf(text)})`
}
