/** An answer that is still being written, as a terminal shows it: its whole lines stay, and its last one grows in place. */
import { CliOutput } from "effect/cli"
import type { InboxId } from "#schema/Ids.ts"
import type { ChatEvent } from "#schema/ChatApi.ts"
import { reportLabel } from "#src/choirctl/render/chat.ts"
import { safeText } from "#src/choirctl/terminal/text.ts"
import { lastPart } from "#src/shared/text/placeToCut.ts"

/** Rows of the terminal that a growing line takes; of a longer one the end is shown. */
const GROWING_ROWS_MAX = 5
/** Columns of a terminal that does not say how many it has. */
const COLUMNS = 80

/** A draft as far as it came. */
export interface GrowingAnswer {
  readonly in_reply_to: InboxId
  readonly text: string
  /** Whether it is a report on a job, which begins with a word that says so. */
  readonly reporting: boolean
  /** Characters of `text` in lines that are printed. */
  readonly printed: number
}

/** The rest of a draft, and the text to print for good, if any; an empty one is an empty line. */
interface Shown {
  readonly writing: GrowingAnswer | undefined
  readonly lines: string | undefined
}

type Draft = Extract<ChatEvent, { readonly type: "draft" }>
type Message = Extract<ChatEvent, { readonly type: "message" }>

const withoutEnd = (text: string): string => text.replace(/\n$/u, "")

/** A part of a draft as it is shown. */
const shownPart = ({ printed, reporting, text }: GrowingAnswer, to: number | undefined, color: boolean): string => {
  const shown = safeText(text.slice(printed, to))
  return reporting && printed === 0 && shown.trim() !== "" ? `${reportLabel(color)}${shown}` : shown
}

/** The line that still grows. */
export const growing = (writing: GrowingAnswer, color: boolean): string =>
  shownPart(writing, undefined, color).replaceAll("\t", "  ")

/** The part of a growing line that a terminal has room for, and its rows there. */
export const fitted = (line: string, columns = COLUMNS): { readonly text: string; readonly rows: number } => {
  const room = Math.max(1, columns) * GROWING_ROWS_MAX
  let text = line
  // A character takes two columns at most.
  if (CliOutput.displayWidth(text) > room) text = `…${lastPart(text, Math.floor((room - 1) / 2))}`
  return { text, rows: text === "" ? 0 : Math.ceil(Math.max(1, CliOutput.displayWidth(text)) / Math.max(1, columns)) }
}

/** Words beside tool calls are followed by other words: they are printed as they stand. */
const leave = (writing: GrowingAnswer | undefined, color: boolean): ReadonlyArray<string> => {
  const left = writing === undefined ? "" : shownPart(writing, undefined, color).trimEnd()
  return left === "" ? [] : [left]
}

/** The next state of a draft. */
export const grow = (
  before: GrowingAnswer | undefined,
  { in_reply_to, reporting = false, text }: Draft,
  color: boolean
): Shown => {
  const isSame = before?.in_reply_to === in_reply_to && before.reporting === reporting
  const grows = isSame && text.startsWith(before.text)
  const now: GrowingAnswer = { in_reply_to, reporting, text, printed: grows ? before.printed : 0 }
  const to = text.lastIndexOf("\n") + 1
  const lines = [
    ...(grows ? [] : leave(before, color)),
    ...(to > now.printed ? [withoutEnd(shownPart(now, to, color))] : [])
  ]
  return {
    writing: { ...now, printed: Math.max(now.printed, to) },
    lines: lines.length === 0 ? undefined : lines.join("\n")
  }
}

/**
 * The part of an answer that is not printed yet; `undefined` where it is another text than was shown, and has to be printed whole. A long
 * answer comes in several messages, whose rest stays with `writing`.
 */
export const finish = (writing: GrowingAnswer | undefined, { in_reply_to, kind, text }: Message): Shown | undefined => {
  if (writing === undefined || in_reply_to !== writing.in_reply_to) return undefined
  if (kind !== (writing.reporting ? "report" : "reply")) return undefined
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
