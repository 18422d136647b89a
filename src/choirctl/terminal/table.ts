/** Aligned columns. */
import { CliOutput } from "effect/cli"
import { paint, type Paint } from "./paint.ts"
import { safeLine } from "./safeText.ts"

/** A cell is text, with the colour it has on a terminal. */
export type Cell = string | { readonly text: string; readonly style: Paint }

const GAP = "  "

const textOf = (cell: Cell) => safeLine(typeof cell === "string" ? cell : cell.text) || "-"

/** A line of titles and one for each row, without blanks at their ends. Empty cells show as `-`. */
export const table = (
  titles: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<Cell>>,
  color: boolean
): string => {
  const texts = rows.map((row) => row.map(textOf))
  const widths = titles.map((title, index) =>
    Math.max(title.length, ...texts.map((row) => CliOutput.displayWidth(row[index] ?? "")))
  )
  const line = (cells: ReadonlyArray<string>, styles: ReadonlyArray<Paint | undefined>) =>
    cells
      .map((text, index) => {
        const style = styles[index]
        const last = index === cells.length - 1
        const space = last ? "" : " ".repeat((widths[index] ?? 0) - CliOutput.displayWidth(text))
        return `${style === undefined ? text : paint(color, style, text)}${space}`
      })
      .join(GAP)
  return [
    line(
      titles,
      titles.map(() => "bold")
    ),
    ...rows.map((row, index) =>
      line(
        texts[index] ?? [],
        row.map((cell) => (typeof cell === "string" ? undefined : cell.style))
      )
    )
  ].join("\n")
}

/** Names and values below each other, for one thing with many sides. */
export const fields = (rows: ReadonlyArray<readonly [name: string, value: string]>): string => {
  const width = Math.max(0, ...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${name.padEnd(width)}${GAP}${value}`).join("\n")
}
