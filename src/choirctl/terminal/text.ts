/** Text for a terminal: JSON, text that is safe to print, colours, tables and spans of time. */
import { CliOutput } from "effect/cli"
import { DAY_MS } from "#src/shared/days.ts"

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** The two largest units that are not zero: `3d 4h`, `5m 2s`, `120ms`. */
export const span = (ms: number): string => {
  if (ms < SECOND_MS) return `${Math.max(0, Math.round(ms))}ms`
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)}s`
  const [large, small, names] =
    ms < HOUR_MS
      ? [MINUTE_MS, SECOND_MS, ["m", "s"]]
      : ms < DAY_MS
        ? [HOUR_MS, MINUTE_MS, ["h", "m"]]
        : [DAY_MS, HOUR_MS, ["d", "h"]]
  const rest = Math.floor((ms % large) / small)
  return `${Math.floor(ms / large)}${names[0]}${rest === 0 ? "" : ` ${rest}${names[1]}`}`
}

/** How long ago an ISO instant was; other text is shown as it is. */
export const ago = (instant: string | null, now_ms: number): string => {
  if (instant === null) return ""
  const then_ms = Date.parse(instant)
  if (Number.isNaN(then_ms)) return instant
  return now_ms - then_ms < SECOND_MS ? "just now" : `${span(now_ms - then_ms)} ago`
}

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const
export type Paint = keyof typeof CODES

export const paint = (color: boolean, style: Paint, text: string): string =>
  color ? `\u{1B}[${CODES[style]}m${text}\u{1B}[0m` : text

/** Whether a part of Choir works. */
export const working = (ok: boolean, color: boolean): string =>
  ok ? paint(color, "green", "ok") : paint(color, "red", "failed")

/**
 * Everything that a terminal obeys except line feed and tab, and what cannot be seen: marks of direction among them. Joiners stay, which
 * several scripts and composed emoji need.
 */
const OBEYED = /[\p{Cc}\u2028\u2029]|(?![\u200c\u200d])\p{Cf}/gu

/** The text without what could move the cursor, hide or fake output, or answer for the user. */
export const safeText = (text: string): string =>
  text
    .replaceAll("\r\n", "\n")
    .replaceAll(OBEYED, (character) => (character === "\n" || character === "\t" ? character : "\u{FFFD}"))

/** The same on one line. */
export const safeLine = (text: string): string => safeText(text).replaceAll(/\s+/gu, " ").trim()

/** C1 controls and DEL are legal in JSON text, and some terminals obey them. */
const CONTROLS = /[\u007f-\u009f]/gu

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** One line, or indented, that decodes to the value and holds no character that a terminal obeys. */
export const jsonText = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replaceAll(CONTROLS, escaped)

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
