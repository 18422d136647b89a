/** JSON on few lines, for a person who reads it on a phone: a list or an object that fits on one line stays on one. */

/** The longest line that a list or an object is written on. */
const LINE_CHARS_MAX = 100
const INDENT = "  "

const isNested = (value: unknown): value is object => typeof value === "object" && value !== null

const entriesOf = (value: object): ReadonlyArray<readonly [prefix: string, inner: unknown]> =>
  Array.isArray(value)
    ? value.map((inner) => ["", inner] as const)
    : Object.entries(value).map(([key, inner]) => [`${JSON.stringify(key)}: `, inner] as const)

const marksOf = (value: object): readonly [string, string] => (Array.isArray(value) ? ["[", "]"] : ["{", "}"])

const onOneLine = (value: unknown): string => {
  if (!isNested(value)) return JSON.stringify(value)
  const [open, close] = marksOf(value)
  return `${open}${entriesOf(value)
    .map(([prefix, inner]) => `${prefix}${onOneLine(inner)}`)
    .join(", ")}${close}`
}

const linesOf = (value: unknown, prefix: string, indent: string, end: string): ReadonlyArray<string> => {
  const line = `${indent}${prefix}${onOneLine(value)}${end}`
  if (!isNested(value) || line.length <= LINE_CHARS_MAX) return [line]
  const [open, close] = marksOf(value)
  const entries = entriesOf(value)
  return [
    `${indent}${prefix}${open}`,
    ...entries.flatMap(([inner, entry], index) =>
      linesOf(entry, inner, indent + INDENT, index < entries.length - 1 ? "," : "")
    ),
    `${indent}${close}${end}`
  ]
}

/**
 * The lines of a JSON text; undefined for one that is not written as JSON.stringify indents it by two blanks. Of such a text nothing is lost
 * but its line ends and blanks: no key is in it twice, and none has another place.
 */
export const compactJson = (text: string): ReadonlyArray<string> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return `${JSON.stringify(value, undefined, 2)}\n` === text ? linesOf(value, "", "", "") : undefined
  } catch {
    return undefined
  }
}
