/** Values that a schema may take and no column of a database can hold, in the places of others, drawn from a seed. */
import type { Schema } from "effect"
import { pick, type Random } from "./requests.ts"

const INSTANT = /^\d{4}-\d\d-\d\dT/u
const INSTANTS = [
  "2026-99-99T99:99:99.999Z",
  "2026-02-30T00:00:00.000Z",
  "2025-02-29T00:00:00.000Z",
  "0000-01-01T00:00:00.000Z",
  "2026-01-01T24:00:00.001Z",
  "2026-01-01T00:00:61.000Z",
  "9999-12-31T23:59:59.999Z",
  "0001-01-01T00:00:00.000Z"
]
const NUMBERS = [2 ** 31 - 1, 2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER, 1e300, -1, -(2 ** 53), 0.5, 0]
const TEXTS = ["\0", "a\0b", "\ud800", "infinity", "99999999999999999999", "x".repeat(5000), ""]

const isObject = (value: Schema.Json): value is Readonly<Record<string, Schema.Json>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The places of all texts and numbers of a value, as paths of keys. */
const placesOf = (value: Schema.Json): ReadonlyArray<ReadonlyArray<string>> =>
  Array.isArray(value) || isObject(value)
    ? Object.entries(value).flatMap(([key, inner]) => placesOf(inner as Schema.Json).map((place) => [key, ...place]))
    : typeof value === "string" || typeof value === "number"
      ? [[]]
      : []

const oddFor = (random: Random, value: Schema.Json): Schema.Json =>
  typeof value === "number"
    ? pick(random, NUMBERS)
    : pick(random, typeof value === "string" && INSTANT.test(value) ? INSTANTS : TEXTS)

const replaced = (value: Schema.Json, place: ReadonlyArray<string>, random: Random): Schema.Json => {
  const [key, ...rest] = place
  if (key === undefined) return oddFor(random, value)
  if (Array.isArray(value))
    return value.map((inner: Schema.Json, index) => (String(index) === key ? replaced(inner, rest, random) : inner))
  if (!isObject(value)) return value
  const inner = Object.entries(value)
  return Object.fromEntries(inner.map(([name, of]) => [name, name === key ? replaced(of, rest, random) : of]))
}

/** The value with an odd one in the place of one of its texts or numbers. */
export const withOdd = (random: Random, value: Schema.Json): Schema.Json =>
  replaced(value, pick(random, placesOf(value)), random)
