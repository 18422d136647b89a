/** JSON values of nobody knows what shape, looked at a key at a time. */
import { Predicate } from "effect"

export type Keys = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is Keys => Predicate.isObject(value) && !Array.isArray(value)

export const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])
