/** Characters that nobody sees: control, format and bidirectional ones, line separators, and what renders as nothing. */
export const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]/gu

/** A text of several lines without them. */
export const withoutUnseen = (text: string): string =>
  text.replaceAll(UNSEEN, (character) => (character === "\n" || character === "\t" ? character : ""))

/** Marks above or below a letter beyond those that any language stacks; a tower of them covers the lines beside it. */
export const STACKED = /(?<=[\p{Mn}\p{Me}]{6})[\p{Mn}\p{Me}]/gu
