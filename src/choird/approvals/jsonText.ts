/** Edits of one place of a JSON text, which leave the rest as its owner wrote it. Pure. */
import { isDeepStrictEqual } from "node:util"
import { Result } from "effect"
import { applyEdits, modify } from "jsonc-parser"

type Path = ReadonlyArray<string>

const FORMAT = { insertSpaces: true, tabSize: 2, eol: "\n" } as const

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

/**
 * Sets the value at `path` of a JSON object; `undefined` removes it. If editing the text would not have exactly that effect, as in a
 * file with duplicate keys, the whole file is rewritten.
 */
export const editJson = (text: string, path: Path, value: unknown): string => {
  const wanted = edited(JSON.parse(text), path, value)
  const written = Result.try(() => {
    const made = applyEdits(text, modify(text, [...path], value, { formattingOptions: FORMAT }))
    return isDeepStrictEqual(JSON.parse(made), wanted) ? made : undefined
  })
  return Result.getOrElse(written, () => undefined) ?? `${JSON.stringify(wanted, undefined, 2)}\n`
}
