/** Fields of the Bot API's objects, read one by one: a field of another kind is as absent, so that it never costs the whole message. Pure. */
import { Predicate } from "effect"

export type Fields = { readonly [key: string]: unknown }

export const fieldsOf = (value: unknown): Fields | undefined =>
  Predicate.isObject(value) && !Array.isArray(value) ? value : undefined

/** A text that is not empty. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

export const numberOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined

/** A whole number from 0 on. */
export const naturalOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined

/** The objects of a list. */
export const listOf = (value: unknown): ReadonlyArray<Fields> =>
  Array.isArray(value) ? value.map(fieldsOf).filter((one) => one !== undefined) : []

/** A time of the Bot API, in seconds; 0 is that of a message whose time nobody knows. */
export const timeOf = (value: unknown): number | undefined => {
  const seconds = naturalOf(value)
  return seconds === undefined || seconds === 0 || seconds > 8.64e12 ? undefined : seconds * 1000
}
