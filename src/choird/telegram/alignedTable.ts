/** A table of Markdown as lines of one width, for a message that shows it in a fixed font. Pure. */
import { cellsOf } from "./markdownBlocks.ts"

/** Columns and characters of a table that is aligned, and of a cell that others are padded to; a larger table stays as it is. */
const COLUMNS_MAX = 12
const TABLE_CHARS_MAX = 8192
const CELL_CHARS_MAX = 40

/** Marks mean nothing in a fixed font. */
const plain = (cell: string) => cell.replaceAll(/\*\*|`/gu, "")
const lengthOf = (cell: string) => Array.from(cell).length

/** @param lines the head, the rule below it and the rows. */
export const alignedTable = (lines: ReadonlyArray<string>): string => {
  const rows = lines.flatMap((line, index) => (index === 1 ? [] : [cellsOf(line).map(plain)]))
  const columns = Math.max(...rows.map(({ length }) => length))
  const untouched = lines.join("\n")
  if (columns > COLUMNS_MAX || untouched.length > TABLE_CHARS_MAX) return untouched
  const widths = Array.from({ length: columns }, (_, at) =>
    Math.min(CELL_CHARS_MAX, Math.max(...rows.map((row) => lengthOf(row[at] ?? ""))))
  )
  const lineOf = (cells: ReadonlyArray<string>) =>
    widths
      .map((width, at) => `${cells[at] ?? ""}${" ".repeat(Math.max(0, width - lengthOf(cells[at] ?? "")))}`)
      .join("  ")
      .trimEnd()
  const [head = [], ...body] = rows
  return [lineOf(head), lineOf(widths.map((width) => "─".repeat(width))), ...body.map(lineOf)].join("\n")
}
