/** Absolute paths below a home that has moved, rewritten wherever a JSON document holds one as a whole string. Pure. */
import type { Schema } from "effect"

/** A home that moved. It may have had two names: the one its operator used, and its real path. */
export interface Move {
  readonly from: ReadonlyArray<string>
  readonly to: string
}

/** The path in its new place. Any other text, and any path outside the old home, stays as it is. */
const movedPath = (text: string, { from, to }: Move): string => {
  const old = from.find((home) => text === home || text.startsWith(`${home}/`))
  return old === undefined ? text : to + text.slice(old.length)
}

/** A document with its paths in their new place. Keys are names, never paths, and stay. */
export const withMovedPaths = (value: Schema.Json, move: Move): Schema.Json => {
  if (typeof value === "string") return movedPath(value, move)
  if (value === null || typeof value !== "object") return value
  if (Array.isArray(value)) return value.map((item: Schema.Json) => withMovedPaths(item, move))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withMovedPaths(item, move)]))
}
