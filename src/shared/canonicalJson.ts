/** Canonical JSON (RFC 8785): one text for one value, so that equal values have equal digests. */
import canonicalize from "canonicalize"

export const canonicalJson = (value: unknown): string => {
  const text = canonicalize(value)
  if (text === undefined) throw new TypeError("not a JSON value")
  return text
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

const storable = (value: unknown): unknown => {
  if (typeof value === "string") return value.toWellFormed().replaceAll("\0", "\uFFFD")
  if (Array.isArray(value)) return value.map(storable)
  if (value === null || typeof value !== "object") return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [storable(key), storable(inner)]))
}
