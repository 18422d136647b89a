/** Assertions in their closed language against a STATE. Pure, and total: every assertion of every STATE has an outcome. */
import type { Schema } from "effect"
import type { Assertion, AssertionOp } from "#schema/SkillContract.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"

export interface AssertionOutcome {
  readonly ok: boolean
  /** The value that decided, cut. */
  readonly detail: string
}

export type SkillFields = Readonly<Record<string, Schema.Json>>

/** Characters of a value that an outcome repeats. */
const DETAIL_CHARS_MAX = 120

const isObject = (value: Schema.Json | undefined): value is SkillFields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const child = (value: Schema.Json | undefined, key: string): Schema.Json | undefined => {
  if (Array.isArray(value)) return /^\d{1,9}$/u.test(key) ? (value[Number(key)] as Schema.Json | undefined) : undefined
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

type Value = Schema.Json | undefined

const elements = (value: Value): ReadonlyArray<Value> =>
  Array.isArray(value) ? (value as ReadonlyArray<Schema.Json>) : [undefined]

/** The values at a place; `undefined` is one that is not there. */
const valuesAt = (state: SkillFields, path: string): ReadonlyArray<Value> => {
  let values: ReadonlyArray<Value> = [state]
  for (const key of path.split("."))
    values = values.flatMap((value) => (key === "*" ? elements(value) : [child(value, key)]))
  return values
}

/** A whole text against a glob, in time that grows with the product of both lengths at most. */
export const globMatches = (text: string, glob: string): boolean => {
  let [at, inGlob, star, mark] = [0, 0, -1, 0]
  while (at < text.length) {
    if (inGlob < glob.length && (glob[inGlob] === "?" || (glob[inGlob] !== "*" && glob[inGlob] === text[at]))) {
      at += 1
      inGlob += 1
    } else if (glob[inGlob] === "*") {
      star = inGlob
      mark = at
      inGlob += 1
    } else if (star >= 0) {
      inGlob = star + 1
      mark += 1
      at = mark
    } else return false
  }
  while (glob[inGlob] === "*") inGlob += 1
  return inGlob === glob.length
}

const isSame = (a: Schema.Json | undefined, b: Schema.Json | undefined) =>
  a !== undefined && b !== undefined && canonicalJson(a) === canonicalJson(b)

const isCounted = (length: number, value: Schema.Json | undefined): boolean => {
  if (typeof value === "number") return length === value
  const { max, min } = isObject(value) ? value : {}
  return (typeof min !== "number" || length >= min) && (typeof max !== "number" || length <= max)
}

const ORDER: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b
}

const holds = (op: AssertionOp, found: Schema.Json | undefined, value: Schema.Json | undefined): boolean => {
  switch (op) {
    case "==":
      return isSame(found, value)
    case "!=":
      return found !== undefined && !isSame(found, value)
    case "in":
      return Array.isArray(value) && value.some((one) => isSame(found, one as Schema.Json))
    case "matches":
      return typeof found === "string" && typeof value === "string" && globMatches(found, value)
    case "exists":
      return (found !== undefined) === (value !== false)
    case "count":
      return Array.isArray(found) && isCounted(found.length, value)
    default:
      return typeof found === "number" && typeof value === "number" && (ORDER[op]?.(found, value) ?? false)
  }
}

const shown = (value: Schema.Json | undefined): string =>
  value === undefined ? "it is not there" : canonicalJson(value).slice(0, DETAIL_CHARS_MAX).toWellFormed()

/** With `*` every element has to fit; a list without elements has none that does not. */
export const assertionOutcome = (
  { op, path, value }: Omit<Assertion, "statement">,
  state: SkillFields
): AssertionOutcome => {
  const values = valuesAt(state, path)
  const wrong = values.find((found) => !holds(op, found, value))
  const ok = values.every((found) => holds(op, found, value))
  return { ok, detail: ok ? `${values.length} checked` : shown(wrong) }
}
