/** The assertions of skills: a closed language over STATE and outputs, evaluated without any code of the skill. */
import type { Schema } from "effect"
import type { Asserted } from "#schema/Event.ts"
import type { Assertion, AssertionOp, Expectation } from "#schema/SkillContract.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { PLACES_MAX, type StateValues, valuesAt } from "./statePath.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** Characters of a value that the outcome of an assertion shows. */
const SHOWN_CHARS_MAX = 160
/** Steps of one comparison with a glob: characters of the text times those of the glob. */
const GLOB_STEPS_MAX = 4_000_000

type Json = Schema.Json

const shown = (value: Json | undefined): string => {
  const text = value === undefined ? "nothing" : JSON.stringify(value)
  return text.length <= SHOWN_CHARS_MAX ? text : `${firstPart(text, SHOWN_CHARS_MAX)}…`
}

const isSame = (one: Json, other: Json | undefined): boolean =>
  other !== undefined && canonicalJson(one) === canonicalJson(other)

/** Whether a whole text fits a glob, in which `*` is any characters and `?` one. It goes back to the newest `*` only. */
export const fitsGlob = (text: string, glob: string): boolean => {
  let at = 0
  let of = 0
  let star = -1
  let mark = 0
  while (at < text.length) {
    if (of < glob.length && glob[of] === "*") {
      star = of
      mark = at
      of += 1
    } else if (of < glob.length && (glob[of] === "?" || glob[of] === text[at])) {
      of += 1
      at += 1
    } else if (star >= 0) {
      of = star + 1
      mark += 1
      at = mark
    } else return false
  }
  while (glob[of] === "*") of += 1
  return of === glob.length
}

const matches = (found: Json, glob: Json | undefined): string | undefined => {
  if (typeof found !== "string" || typeof glob !== "string") return `${shown(found)} is not a text`
  if (found.length * glob.length > GLOB_STEPS_MAX) return `a text of ${found.length} characters is too long to compare`
  return fitsGlob(found, glob) ? undefined : `${shown(found)} does not fit`
}

const counted = (found: Json, wanted: Json | undefined): string | undefined => {
  if (!Array.isArray(found)) return `${shown(found)} is not a list`
  const { length } = found
  const range = typeof wanted === "object" && wanted !== null && !Array.isArray(wanted) ? (wanted as StateValues) : {}
  const { max, min } = typeof wanted === "number" ? { max: wanted, min: wanted } : range
  const fits = (typeof min !== "number" || length >= min) && (typeof max !== "number" || length <= max)
  return fits ? undefined : `it has ${length}`
}

const compared = (op: "<" | "<=" | ">" | ">=", found: Json, wanted: Json | undefined): string | undefined => {
  if (typeof found !== "number" || typeof wanted !== "number") return `${shown(found)} is not a number`
  const fits = { "<": found < wanted, "<=": found <= wanted, ">": found > wanted, ">=": found >= wanted }[op]
  return fits ? undefined : `it is ${found}`
}

/** Why a value is not as it should be; `undefined` when it is. */
const misfit = (op: AssertionOp, found: Json | undefined, wanted: Json | undefined): string | undefined => {
  if (op === "exists") return (found !== undefined) === (wanted !== false) ? undefined : `there is ${shown(found)}`
  if (found === undefined) return "it is not there"
  switch (op) {
    case "==":
      return isSame(found, wanted) ? undefined : `it is ${shown(found)}`
    case "!=":
      return isSame(found, wanted) ? `it is ${shown(found)}` : undefined
    case "in":
      return Array.isArray(wanted) && (wanted as ReadonlyArray<Json>).some((each) => isSame(found, each))
        ? undefined
        : `it is ${shown(found)}`
    case "matches":
      return matches(found, wanted)
    case "count":
      return counted(found, wanted)
    default:
      return compared(op, found, wanted)
  }
}

type Check = Pick<Assertion, "op" | "path"> & { readonly value?: Json }

const problemOf = ({ op, path, value }: Check, at: Json): string | undefined => {
  const found = valuesAt(at, path)
  if (found.length > PLACES_MAX) return `${path} has more than ${PLACES_MAX} elements`
  for (const each of found) {
    const problem = misfit(op, each, value)
    if (problem !== undefined) return `${path}: ${problem}`
  }
  return undefined
}

/** Each assertion with its outcome. */
export const asserted = (assertions: ReadonlyArray<Assertion>, state: StateValues): ReadonlyArray<Asserted> =>
  assertions.map((assertion) => {
    const problem = problemOf(assertion, state)
    return { statement: assertion.statement, ok: problem === undefined, detail: problem ?? "" }
  })

/** Why an output is not as it was expected; `undefined` when it is. */
export const unexpected = (expectation: Expectation, output: Json): string | undefined => problemOf(expectation, output)
