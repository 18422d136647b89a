/** Where two JSON values differ, by path. */
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"

export interface Difference {
  readonly path: ReadonlyArray<string>
  readonly change: "added" | "changed" | "removed"
}

type Json = Readonly<Record<string, unknown>>

const isRecord = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const text = (value: unknown) => (value === undefined ? undefined : canonicalJson(value))

/** What is there on one side alone is one difference, however much it holds; lists are compared as a whole. */
export const differences = (
  before: unknown,
  after: unknown,
  path: ReadonlyArray<string> = []
): ReadonlyArray<Difference> => {
  if (!isRecord(before) || !isRecord(after)) return text(before) === text(after) ? [] : [{ path, change: "changed" }]
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].sort().flatMap((key) => {
    const at = [...path, key]
    if (!Object.hasOwn(after, key)) return [{ path: at, change: "removed" as const }]
    if (!Object.hasOwn(before, key)) return [{ path: at, change: "added" as const }]
    return differences(before[key], after[key], at)
  })
}
