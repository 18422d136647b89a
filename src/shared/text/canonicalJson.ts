/** Canonical JSON (RFC 8785): one text for one value, so that equal values have equal digests. */
import canonicalize from "canonicalize"

/** How deep the values of a stored event may nest; Postgres and the recursive parsers beside it bear far more. */
export const EVENT_DEPTH_MAX = 200

export const canonicalJson = (value: unknown): string => {
  const sorted = inOrder(value, EVENT_DEPTH_MAX)
  const quick = sorted === ODD ? undefined : JSON.stringify(sorted)
  const text = quick === undefined || quick.includes(ESCAPED_SURROGATE) ? canonicalize(value) : quick
  if (text === undefined) throw new TypeError("not a JSON value")
  return text
}

/** A value that JSON.stringify would not write as RFC 8785 does: it is left to the library, which takes longer. */
const ODD = Symbol()
/** How JSON.stringify writes a lone surrogate, which the library refuses, and some texts with a backslash. */
const ESCAPED_SURROGATE = String.raw`\ud`

/** The value with the keys of each object in order, itself where they are; or ODD. */
const inOrder = (value: unknown, levels: number): unknown => {
  if (typeof value === "number") return Number.isFinite(value) ? value : ODD
  if (typeof value !== "object") return typeof value === "string" || typeof value === "boolean" ? value : ODD
  if (value === null) return value
  if (levels === 0) return ODD
  return Array.isArray(value) ? itemsInOrder(value, levels - 1) : keysInOrder(value, levels - 1)
}

const itemsInOrder = (items: ReadonlyArray<unknown>, levels: number): unknown => {
  let copy: Array<unknown> | undefined
  for (let index = 0; index < items.length; index++) {
    const item = items[index]
    const sorted = inOrder(item, levels)
    if (sorted === ODD) return ODD
    if (sorted !== item) (copy ??= [...items])[index] = sorted
  }
  return copy ?? items
}

const areInOrder = (keys: ReadonlyArray<string>): boolean => {
  for (let index = 1; index < keys.length; index++) if ((keys[index - 1] ?? "") > (keys[index] ?? "")) return false
  return true
}

/** An object puts keys that are numbers before all others, and takes a key `__proto__` for something else. */
const isUnsortable = (key: string): boolean => (key >= "0" && key < ":") || key === "__proto__"

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const keysInOrder = (value: object, levels: number): unknown => {
  if (!isPlain(value)) return ODD
  const keys = Object.keys(value)
  const isSorted = areInOrder(keys)
  let copy: Record<string, unknown> | undefined = isSorted ? undefined : {}
  for (const key of isSorted ? keys : keys.sort()) {
    const inner = (value as Readonly<Record<string, unknown>>)[key]
    const sorted = inOrder(inner, levels)
    if (sorted === ODD || (!isSorted && isUnsortable(key))) return ODD
    if (sorted !== inner) copy ??= { ...value }
    if (copy !== undefined) copy[key] = sorted
  }
  return copy ?? value
}

/**
 * Replaces NUL, which Postgres cannot store, and lone surrogates, which UTF-8 cannot hold, in every string of a JSON value.
 * Done once before commit, so that the chained text survives each of them unchanged.
 */
export const storableJson = <A>(value: A): A => storable(value) as A

/** Whether a JSON value nests deeper than this. It looks no further, so that a value of any depth is safe to ask about. */
export const isDeeperThan = (value: unknown, levels: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => isDeeperThan(inner, levels - 1)))

const storableText = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD")

/** The value itself where there is nothing to replace, as in nearly all of them. */
const storable = (value: unknown): unknown => {
  if (typeof value === "string") return storableText(value)
  if (value === null || typeof value !== "object") return value
  if (Array.isArray(value)) {
    const items: ReadonlyArray<unknown> = value
    const kept = items.map(storable)
    return kept.every((item, index) => item === items[index]) ? value : kept
  }
  const entries = Object.entries(value as Readonly<Record<string, unknown>>)
  const kept = entries.map(([key, inner]) => [storableText(key), storable(inner)] as const)
  const isKept = kept.every(([key, inner], index) => key === entries[index]?.[0] && inner === entries[index]?.[1])
  return isKept && isPlain(value) ? value : Object.fromEntries(kept)
}
