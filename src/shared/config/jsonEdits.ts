/** Edits of one place of a JSON text, which leave the rest as its owner wrote it. Pure. */
import { isDeepStrictEqual } from "node:util"
import { Result } from "effect"
import { applyEdits, type FormattingOptions, format, modify } from "jsonc-parser"

type Path = ReadonlyArray<string>

/** A place and its value; `undefined` removes it. */
export type JsonEdit = readonly [path: Path, value: unknown]

/** Two blanks, or as the text itself is indented. */
const formatOf = (text: string): FormattingOptions => {
  const [, indent = "  "] = /^([\t ]+)"/mu.exec(text) ?? []
  return { insertSpaces: !indent.startsWith("\t"), tabSize: indent.length, eol: "\n" }
}

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value with one place changed; `undefined` removes it. */
const edited = (value: unknown, [key = "", ...rest]: Path, to: unknown): unknown => {
  const table = isTable(value) ? value : {}
  const inner = rest.length === 0 ? to : edited(table[key], rest, to)
  const others = Object.entries(table).filter(([name]) => name !== key || inner !== undefined)
  return Object.fromEntries(inner === undefined ? others : [...others, [key, inner]])
}

/** The value at a place, `undefined` if there is none. */
export const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, key) => (isTable(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined), value)

/** jsonc-parser would also change the layout of the lines beside a place. Here it does so only to an object that stands in one line. */
const edit = (text: string, path: Path, value: unknown): string => {
  const formattingOptions = formatOf(text)
  const [made] = modify(text, [...path], value, {})
  if (made === undefined) return text
  const { content, length, offset } = made
  const [before, after] = [text.slice(0, offset), text.slice(offset + length)]
  if (content === "") {
    const isEmpty = before.trimEnd().endsWith("{") && after.trimStart().startsWith("}")
    const [blanks = ""] = /^\s*/u.exec(text.slice(offset)) ?? []
    return isEmpty ? before.trimEnd() + after.trimStart() : before + blanks + after
  }
  if (content.startsWith(",") && /^[\t ]*\r?\n/u.test(after)) {
    const added = before + content + after
    return applyEdits(added, format(added, { offset, length: content.length }, formattingOptions))
  }
  return applyEdits(text, modify(text, [...path], value, { formattingOptions }))
}

/**
 * Sets the value at `path` of a JSON object; `undefined` removes it. If editing the text would not have exactly that effect, as in a
 * file with duplicate keys, the whole file is rewritten.
 */
export const editJson = (text: string, path: Path, value: unknown): string => {
  const wanted = edited(JSON.parse(text), path, value)
  const written = Result.try(() => {
    const made = edit(text, path, value)
    return isDeepStrictEqual(JSON.parse(made), wanted) ? made : undefined
  })
  return Result.getOrElse(written, () => undefined) ?? `${JSON.stringify(wanted, undefined, 2)}\n`
}

/** Several places, one after the other. */
export const editJsonAt = (text: string, edits: ReadonlyArray<JsonEdit>): string =>
  edits.reduce((file, [path, value]) => editJson(file, path, value), text)
