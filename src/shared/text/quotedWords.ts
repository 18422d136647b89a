/** Words that a person replies to, before the person's own words: behind a label of choird's, each line with a mark. Pure. */
import { seenText } from "./seenText.ts"

const MARK = "> "
/** The labels of {@link ownWords}, by how they begin. */
export const REPLY_LABEL = "[A reply to "
export const LATE_LABEL = "[Sent at "
const LABELS = [REPLY_LABEL, LATE_LABEL]

/** A text in which every line has the mark of a quotation, so that none of them can pass for a label or for the person's own. */
export const quotedLines = (text: string): string =>
  seenText(text)
    .split("\n")
    .map((line) => `${MARK}${line}`)
    .join("\n")

/** A text without quoted lines and the labels of replies: what the person themselves said. */
export const ownWords = (text: string): string =>
  text
    .split("\n")
    .filter((line) => !line.startsWith(MARK) && !LABELS.some((label) => line.startsWith(label) && line.endsWith(":]")))
    .join("\n")
