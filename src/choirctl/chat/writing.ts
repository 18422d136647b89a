/** An answer that is still being written, as a terminal shows it: its whole lines stay, and its last one grows in place. */
import { CliOutput } from "effect/cli"
import type { InboxId } from "#schema/Ids.ts"
import type { ChatEvent } from "#schema/ChatApi.ts"
import { safeText } from "#src/choirctl/terminal/text.ts"

/** Rows of the terminal that a growing line takes; of a longer one the end is shown. */
const GROWING_ROWS_MAX = 5
/** Columns of a terminal that does not say how many it has. */
const COLUMNS = 80

/** A draft as far as it came. */
export interface Writing {
  readonly in_reply_to: InboxId
  readonly text: string
  /** Characters of `text` in lines that are printed. */
  readonly printed: number
}

/** The rest of a draft, and the text to print for good, if any; an empty one is an empty line. */
interface Shown {
  readonly writing: Writing | undefined
  readonly lines: string | undefined
}

type Draft = Extract<ChatEvent, { readonly type: "draft" }>
type Message = Extract<ChatEvent, { readonly type: "message" }>

const withoutEnd = (text: string): string => text.replace(/\n$/u, "")

/** The line that still grows. */
export const growing = ({ printed, text }: Writing): string => safeText(text.slice(printed)).replaceAll("\t", "  ")

/** The part of a growing line that a terminal has room for, and its rows there. */
export const fitted = (line: string, columns = COLUMNS): { readonly text: string; readonly rows: number } => {
  const room = Math.max(1, columns) * GROWING_ROWS_MAX
  let text = line
  // A character takes two columns at most.
  if (CliOutput.displayWidth(text) > room) text = `…${text.slice(-Math.floor((room - 1) / 2)).toWellFormed()}`
  return { text, rows: text === "" ? 0 : Math.ceil(Math.max(1, CliOutput.displayWidth(text)) / Math.max(1, columns)) }
}

/** Words beside tool calls are followed by other words: they are printed as they stand. */
const leave = (writing: Writing | undefined): ReadonlyArray<string> => {
  const left = writing === undefined ? "" : safeText(writing.text.slice(writing.printed)).trimEnd()
  return left === "" ? [] : [left]
}

/** The next state of a draft. */
export const grow = (before: Writing | undefined, { in_reply_to, text }: Draft): Shown => {
  const grows = before !== undefined && before.in_reply_to === in_reply_to && text.startsWith(before.text)
  const from = grows ? before.printed : 0
  const to = text.lastIndexOf("\n") + 1
  const lines = [...(grows ? [] : leave(before)), ...(to > from ? [withoutEnd(safeText(text.slice(from, to)))] : [])]
  return {
    writing: { in_reply_to, text, printed: Math.max(from, to) },
    lines: lines.length === 0 ? undefined : lines.join("\n")
  }
}

/**
 * The part of an answer that is not printed yet; `undefined` where it is another text than was shown, and has to be printed whole. A long
 * answer comes in several messages, whose rest stays with `writing`.
 */
export const finish = (writing: Writing | undefined, { in_reply_to, kind, text }: Message): Shown | undefined => {
  if (writing === undefined || kind !== "reply" || in_reply_to !== writing.in_reply_to) return undefined
  const seen = writing.text.slice(0, writing.printed)
  if (seen === "") return undefined
  if (text.startsWith(seen)) {
    const rest = text.slice(seen.length)
    return { writing: undefined, lines: rest === "" ? undefined : safeText(rest) }
  }
  if (!seen.startsWith(text)) return undefined
  const rest = seen.slice(text.length).trimStart()
  return { writing: { ...writing, text: rest, printed: rest.length }, lines: undefined }
}
