/** Places in STATE and in outputs: `field.key.0`, with `*` for every element of a list, and `${field.key}` within the params of a script. */
import { Result, Schema } from "effect"
import { StatePath } from "#schema/SkillContract.ts"

/** Values of STATE fields by their names. */
export type StateValues = Readonly<Record<string, Schema.Json>>

/** The field in which a place lies. */
export const fieldOf = (path: string): string => path.split(".", 1)[0] ?? ""

/** The parts of a path; `.` is the whole value. */
const partsOf = (path: string): ReadonlyArray<string> => (path === "." ? [] : path.split("."))

const member = (value: Schema.Json | undefined, key: string): Schema.Json | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  if (Array.isArray(value)) return /^(?:0|[1-9]\d{0,9})$/u.test(key) ? (value[Number(key)] as Schema.Json) : undefined
  return Object.hasOwn(value, key) ? (value as StateValues)[key] : undefined
}

/** Values that one path may lead to. */
export const PLACES_MAX = 1000

/** The values at a path: one, or with `*` one for each element. What is not there is `undefined`. More than PLACES_MAX are cut after one more. */
export const valuesAt = (value: Schema.Json, path: string): ReadonlyArray<Schema.Json | undefined> => {
  let found: ReadonlyArray<Schema.Json | undefined> = [value]
  for (const part of partsOf(path))
    found = found
      .flatMap((each): ReadonlyArray<Schema.Json | undefined> => {
        if (part !== "*") return [member(each, part)]
        return Array.isArray(each) ? (each as ReadonlyArray<Schema.Json>).slice(0, PLACES_MAX + 1) : [undefined]
      })
      .slice(0, PLACES_MAX + 1)
  return found
}

const PLACE = /\$\{([^}]*)\}/gu
const isPath = Schema.is(StatePath)

/** A `${…}` of a text; `path` is absent where it names no place of STATE. */
export interface Place {
  readonly text: string
  readonly path: string | undefined
}

const placeOf = (text: string, inner: string): Place => ({
  text,
  path: isPath(inner) && !inner.split(".").includes("*") ? inner : undefined
})

/** Every `${…}` in the texts of a value, keys left out. */
export const placesIn = (value: Schema.Json): ReadonlyArray<Place> => {
  if (typeof value === "string") return [...value.matchAll(PLACE)].map(([text, inner = ""]) => placeOf(text, inner))
  if (typeof value !== "object" || value === null) return []
  return Object.values(value).flatMap(placesIn)
}

const textOf = (value: Schema.Json): string => (typeof value === "string" ? value : JSON.stringify(value))

const filledText = (text: string, state: StateValues): Result.Result<Schema.Json, string> => {
  const missing = placesIn(text).find(({ path }) => path === undefined || valuesAt(state, path)[0] === undefined)
  if (missing !== undefined) return Result.fail(`STATE has no value for ${missing.text}`)
  const at = (inner: string): Schema.Json => valuesAt(state, inner)[0] ?? null
  const [whole] = text.matchAll(PLACE)
  if (whole?.[0] === text) return Result.succeed(at(whole[1] ?? ""))
  return Result.succeed(text.replaceAll(PLACE, (_, inner: string) => textOf(at(inner))))
}

/** A value with the values of STATE in place of its `${…}`; fails with the first one that has none. */
export const filled = (value: Schema.Json, state: StateValues): Result.Result<Schema.Json, string> => {
  if (typeof value === "string") return filledText(value, state)
  if (typeof value !== "object" || value === null) return Result.succeed(value)
  if (Array.isArray(value)) return Result.all((value as ReadonlyArray<Schema.Json>).map((each) => filled(each, state)))
  return Result.all(
    Object.fromEntries(Object.entries(value as StateValues).map(([key, each]) => [key, filled(each, state)]))
  )
}
