/** The changes of one line that `npm run mutate` tries. */

/** A line of a file, from 1, and what takes its place. */
export interface Change {
  readonly file: string
  readonly line: number
  readonly before: string
  readonly after: string
}

const SWAPS: ReadonlyArray<readonly [from: RegExp, to: string]> = [
  [/ === /u, " !== "],
  [/ !== /u, " === "],
  [/ <= /u, " < "],
  [/ >= /u, " > "],
  [/ < /u, " <= "],
  [/ > /u, " >= "],
  [/ && /u, " || "],
  [/ \|\| /u, " && "],
  [/ \+ 1\b/u, ""],
  [/ - 1\b/u, ""],
  [/\btrue\b/u, "false"],
  [/\bfalse\b/u, "true"],
  [/\bMath\.max\(/u, "Math.min("],
  [/\bMath\.min\(/u, "Math.max("],
  [/\.some\(/u, ".every("],
  [/\.every\(/u, ".some("]
]

/** A line that says nothing at run time, or whose change would not parse. */
const isIdle = (line: string): boolean =>
  /^\s*(?:\/\/|\/?\*|import\b|export (?:type|interface)\b|type\b|interface\b|readonly\b|\} from\b|\| )/u.test(line) ||
  /\b(?:as|extends|implements) const?\b|=> [A-Z]\w*<|: [A-Z]\w*</u.test(line)

/** A statement that stands on a line of its own, so that the line may go. */
const isStatement = (line: string): boolean =>
  /^\s+(?:yield\* |if \(.*\) (?:return|continue|break)\b)/u.test(line) && !/[({[,=>&|?:+]$/u.test(line)

/** Whether a line begins a statement: the one before does not go on. */
const begins = (previous: string): boolean => !/[([,=>&|?:+]$/u.test(previous.trimEnd())

/** Every change of a file's text, in the order of its lines. */
export const changesOf = (file: string, text: string): ReadonlyArray<Change> => {
  const lines = text.split("\n")
  return lines.flatMap((before, index) => {
    if (isIdle(before)) return []
    const change = (after: string): Change => ({ file, line: index + 1, before, after })
    const swapped = SWAPS.flatMap(([from, to]) => (from.test(before) ? [change(before.replace(from, to))] : []))
    const isAlone =
      isStatement(before) && begins(lines[index - 1] ?? "") && !/^\s+[.&|?:+)]/u.test(lines[index + 1] ?? "")
    return isAlone ? [...swapped, change("")] : swapped
  })
}

/** A file's text with one of its lines changed. */
export const changed = (text: string, { after, line }: Change): string =>
  text
    .split("\n")
    .map((before, index) => (index === line - 1 ? after : before))
    .join("\n")
