/**
 * Tables as Markdown. Most tables of mails are layout: rows of theirs become lines and blocks of text, while a table of data keeps its cells apart.
 */
import type { HtmlElement } from "./htmlDocument.ts"

/** Characters of a cell from which on it is a part of a layout, unless the table has heads. */
const CELL_CHARS_MAX = 300
/** Characters of a cell that is in one line with others of a layout. */
const SHORT_CHARS_MAX = 120
/** Columns and rows over which one cell may reach. */
const SPAN_MAX = 50
const BLOCKS = "h1, h2, h3, h4, h5, h6, blockquote, pre, hr, article, section, form"

const isRow = (node: HtmlElement) => node.nodeName === "TR"
const isPart = (node: HtmlElement) => /^(?:THEAD|TBODY|TFOOT)$/u.test(node.nodeName)
const isCell = (node: HtmlElement) => /^(?:TD|TH)$/u.test(node.nodeName)

/** The rows of a table itself, and not of one within it. */
const rowsOf = (table: HtmlElement): ReadonlyArray<HtmlElement> =>
  Array.from(table.children).flatMap((child) =>
    isRow(child) ? [child] : isPart(child) ? Array.from(child.children).filter(isRow) : []
  )

const cellsOf = (row: HtmlElement): ReadonlyArray<HtmlElement> => Array.from(row.children).filter(isCell)

const isBlank = (cell: HtmlElement) => (cell.textContent ?? "").trim() === "" && cell.querySelector("img[alt]") === null

/** Whether a table holds data, and not the parts of a layout. */
export const isDataTable = (table: HtmlElement): boolean => {
  if (table.querySelector("table") !== null) return false
  const rows = rowsOf(table).map(cellsOf)
  const filled = rows.map((cells) => cells.filter((cell) => !isBlank(cell)).length)
  if (Math.max(0, ...filled) < 2) return false
  if (table.querySelector("th, caption") !== null) return true
  if (/^(?:presentation|none)$/u.test(table.getAttribute("role") ?? "")) return false
  if (filled.filter((count) => count > 0).length < 2) return false
  return rows
    .flat()
    .every((cell) => (cell.textContent ?? "").trim().length <= CELL_CHARS_MAX && cell.querySelector(BLOCKS) === null)
}

const spanOf = (cell: HtmlElement, name: "colspan" | "rowspan"): number => {
  const stated = Number.parseInt(cell.getAttribute(name) ?? "1", 10)
  return Number.isNaN(stated) ? 1 : Math.min(Math.max(stated, 1), SPAN_MAX)
}

/** The lines of a cell's Markdown in one, as tables of Markdown have them. */
const inCell = (markdown: string): string =>
  markdown
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("<br>")
    .replaceAll("|", String.raw`\|`)

/** A cell that reaches over rows stands in each of them, so that each can be read alone. */
const gridOf = (
  table: HtmlElement,
  markdownOf: (cell: HtmlElement) => string
): ReadonlyArray<ReadonlyArray<string>> => {
  const reaching = new Map<number, { readonly text: string; left: number }>()
  return rowsOf(table).map((row) => {
    const line: Array<string> = []
    const fill = () => {
      for (let above = reaching.get(line.length); above !== undefined; above = reaching.get(line.length)) {
        above.left -= 1
        if (above.left === 0) reaching.delete(line.length)
        line.push(above.text)
      }
    }
    for (const cell of cellsOf(row)) {
      fill()
      const [text, below] = [inCell(markdownOf(cell)), spanOf(cell, "rowspan") - 1]
      for (let column = 0; column < spanOf(cell, "colspan"); column++) {
        const shown = column === 0 ? text : ""
        if (below > 0) reaching.set(line.length, { text: shown, left: below })
        line.push(shown)
      }
    }
    fill()
    return line
  })
}

/** A table of data. @param markdownOf the Markdown of each of its cells. */
export const tableMarkdown = (table: HtmlElement, markdownOf: (cell: HtmlElement) => string): string => {
  const lines = gridOf(table, markdownOf).filter((line) => line.some((text) => text !== ""))
  const width = Math.max(0, ...lines.map((line) => line.length))
  // A column without words is room between others.
  const columns = Array.from({ length: width }, (_, column) => column).filter((column) =>
    lines.some((line) => (line[column] ?? "") !== "")
  )
  const [head, ...body] = lines.map((line) => `| ${columns.map((column) => line[column] ?? "").join(" | ")} |`)
  if (head === undefined) return ""
  return ["", "", head, `| ${columns.map(() => "---").join(" | ")} |`, ...body, "", ""].join("\n")
}

/** A row of a layout: short cells share a line, others follow below each other. */
export const layoutRow = (row: HtmlElement, markdownOf: (cell: HtmlElement) => string): string => {
  const texts = cellsOf(row)
    .map((cell) => markdownOf(cell).trim())
    .filter((text) => text !== "")
  const isLine = texts.length > 1 && texts.every((text) => text.length <= SHORT_CHARS_MAX && !text.includes("\n"))
  return isLine ? `\n${texts.join(" | ")}\n` : `\n\n${texts.join("\n\n")}\n\n`
}
