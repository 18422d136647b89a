/** The lines of a model's Markdown as blocks: code, tables, quotes, headings, items of lists, rules and plain lines. Pure. */
import { withoutEnd } from "#src/shared/text/withoutEnd.ts"

export type Block =
  | { readonly type: "code"; readonly text: string; readonly language?: string }
  | { readonly type: "table"; readonly lines: ReadonlyArray<string> }
  | { readonly type: "quote"; readonly text: string }
  | { readonly type: "heading"; readonly text: string; readonly size: number }
  /** `before` comes before the text of an item where a chat has no lists, `number` that of one in a numbered list. */
  | {
      readonly type: "item"
      readonly text: string
      readonly indent: number
      readonly before: string
      readonly number?: number
    }
  | { readonly type: "line"; readonly text: string }

// An agent wrote the line: a pattern in which two repetitions can share its blanks takes for ever on a long one.
const FENCE = /^ {0,3}(`{3,}|~{3,}(?!~))([^`]*)$/u
const LANGUAGE = /^[\w+#.-]{1,32}$/u
const HEADING = /^ {0,3}(#{1,6})\s(.*)$/u
const BULLET = /^(\s*)[-*+]\s+(.*)$/su
const NUMBERED = /^((\s*)(\d{1,9})[.)]\s+)(\S.*)$/su
const RULE_CELL = /^:?-+:?$/u
const isQuote = (line: string | undefined) => line !== undefined && /^ {0,3}>/u.test(line)

/** The cells of a line of a table. */
export const cellsOf = (line: string): ReadonlyArray<string> =>
  line
    .trim()
    .replace(/^\|/u, "")
    .replace(/\|$/u, "")
    .split("|")
    .map((cell) => cell.trim())

/** Whether a line is the rule below the head of a table, which has two columns at least. */
const isRule = (line: string): boolean => {
  const cells = cellsOf(line)
  return cells.length > 1 && cells.every((cell) => RULE_CELL.test(cell))
}

/** Whether a table begins at this line. */
const isTable = (lines: ReadonlyArray<string>, at: number) =>
  lines[at]?.includes("|") === true && isRule(lines[at + 1] ?? "")

/** The first line from `at` on that does not hold a condition. */
const lastOf = (lines: ReadonlyArray<string>, at: number, holds: (line: string) => boolean) => {
  let next = at
  while (next < lines.length && holds(lines[next] ?? "")) next += 1
  return next
}

const codeAt = (lines: ReadonlyArray<string>, at: number, fence: string, info: string): readonly [Block, number] => {
  const close = lastOf(lines, at + 1, (one) => !(one.trim().startsWith(fence) && /^\s*[`~]+\s*$/u.test(one)))
  const named = LANGUAGE.test(info)
  // What is more than the name of a language is kept as a line of the code.
  const text = [...(named || info === "" ? [] : [info]), ...lines.slice(at + 1, close)].join("\n")
  return [{ type: "code", text, ...(named ? { language: info } : {}) }, close + 1]
}

/** The block of one line, where it is not one of several lines. */
const lineBlock = (line: string): Block => {
  const [, marks = "", heading = ""] = HEADING.exec(line) ?? []
  // A heading may be closed by the marks that opened it.
  const words = withoutEnd(heading.trim(), "#").trimEnd()
  if (words !== "") return { type: "heading", text: words, size: marks.length }
  const [, indent = "", item] = BULLET.exec(line) ?? []
  if (item !== undefined && item !== "")
    return { type: "item", text: item, indent: indent.length, before: `${indent}• ` }
  const [, before = "", blanks = "", number, rest = ""] = NUMBERED.exec(line) ?? []
  if (number !== undefined) return { type: "item", text: rest, indent: blanks.length, before, number: Number(number) }
  return { type: "line", text: line }
}

/** The block that begins at a line, and the line after it. */
const blockAt = (lines: ReadonlyArray<string>, at: number): readonly [Block, number] => {
  const line = lines[at] ?? ""
  const [, fence, behind = ""] = FENCE.exec(line) ?? []
  if (fence !== undefined) return codeAt(lines, at, fence, behind.trim())
  if (isTable(lines, at)) {
    const end = lastOf(lines, at, (one) => one.includes("|"))
    return [{ type: "table", lines: lines.slice(at, end) }, end]
  }
  if (isQuote(line)) {
    const end = lastOf(lines, at, isQuote)
    const text = lines
      .slice(at, end)
      .map((one) => one.replace(/^ {0,3}> ?/u, ""))
      .join("\n")
    return [{ type: "quote", text }, end]
  }
  return [lineBlock(line), at + 1]
}

/** The blocks of a text, in order. Joined by line breaks, they are the text. */
export const blocksOf = (markdown: string): ReadonlyArray<Block> => {
  const lines = markdown.split("\n")
  const blocks: Array<Block> = []
  for (let at = 0; at < lines.length;) {
    const [block, next] = blockAt(lines, at)
    blocks.push(block)
    at = next
  }
  return blocks
}

/** Whether a text has a table, which only a rich message shows as one. */
export const hasTable = (markdown: string): boolean => blocksOf(markdown).some(({ type }) => type === "table")
