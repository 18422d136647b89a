/** A text with its writer's name before it, where several people talk to one agent. Pure. */

/** The beginning of a line that could pass for the label. */
const LABEL_LIKE = /^(?=\s*\[\s*Written (?:by|in)\b)/gimu

/** The text as it is where nobody needs to be named. No line of it passes for the label of somebody else. */
export const writtenBy = ({ text, writer }: { readonly text: string; readonly writer?: string | undefined }): string =>
  writer === undefined ? text : `[Written by ${writer}:]\n${text.replaceAll(LABEL_LIKE, "> ")}`
