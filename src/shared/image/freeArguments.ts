/**
 * The arguments of a tool that are free text: a standing grant covers any text there, and of every other argument only the value that a
 * person saw. A manifest says so with `x-grant` on a property of its input schema. Pure.
 */
import type { Problem } from "#src/shared/config/configProblems.ts"
import { decidedBy } from "./argumentNames.ts"

/** The keyword in a property, for Choir alone: no model is shown it. */
const KEYWORD = "x-grant"
const VALUES = ["any", "fixed"]

/** The free arguments of a tool whose schema has no `x-grant`. */
export const USUAL_FREE: ReadonlyArray<string> = ["text", "body", "message", "content", "subject", "markdown"]

type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const propertiesOf = ({ properties }: Json): ReadonlyArray<readonly [string, unknown]> =>
  isObject(properties) ? Object.entries(properties) : []

/** The arguments that a tool's input schema declares free; those of `USUAL_FREE` where it declares nothing. */
export const freeArguments = (input_schema: Json): ReadonlyArray<string> => {
  const declared = propertiesOf(input_schema).flatMap(([name, property]) =>
    isObject(property) && Object.hasOwn(property, KEYWORD) ? [[name, property[KEYWORD]] as const] : []
  )
  return declared.length === 0 ? USUAL_FREE : declared.flatMap(([name, value]) => (value === "any" ? [name] : []))
}

const problemOf = (name: string, property: Json): string | undefined => {
  const value = property[KEYWORD]
  if (typeof value !== "string" || !VALUES.includes(value)) return `it must be one of ${VALUES.join(", ")}`
  if (value === "fixed") return undefined
  if (property["type"] !== "string") return 'only a property of "type": "string" can be free text'
  const decides = decidedBy(name)
  return decides === undefined
    ? undefined
    : `${JSON.stringify(name)} is the name of ${decides}, which a grant never leaves open: rename it, or leave ${KEYWORD} out`
}

/** Places below the properties, where the keyword would promise what no grant keeps. */
function* misplaced(value: unknown, path: string): Generator<Problem> {
  if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* misplaced(item, `${path}.${index}`)
  if (!isObject(value)) return
  for (const [key, inner] of Object.entries(value)) {
    const at = path === "" ? key : `${path}.${key}`
    if (key === KEYWORD) yield { path: at, reason: "it counts only for a property of the input itself: move it there" }
    else yield* misplaced(inner, at)
  }
}

/** The mistakes of `x-grant` in a tool's input schema, by path within it. The schema is not deeper than a manifest may be. */
export const grantProblems = (input_schema: Json): ReadonlyArray<Problem> => {
  const { properties, ...rest } = input_schema
  const own = propertiesOf({ properties }).flatMap(([name, property]): ReadonlyArray<Problem> => {
    if (!isObject(property)) return []
    const { [KEYWORD]: _, ...inner } = property
    const path = `properties.${name}`
    const reason = Object.hasOwn(property, KEYWORD) ? problemOf(name, property) : undefined
    return [...(reason === undefined ? [] : [{ path: `${path}.${KEYWORD}`, reason }]), ...misplaced(inner, path)]
  })
  return [...own, ...misplaced(rest, "")]
}

/** An input schema as a model is shown it. */
export const withoutGrantWords = (input_schema: Json): Json =>
  isObject(input_schema["properties"])
    ? {
        ...input_schema,
        properties: Object.fromEntries(
          propertiesOf(input_schema).map(([name, property]) => {
            if (!isObject(property)) return [name, property]
            const { [KEYWORD]: _, ...shown } = property
            return [name, shown]
          })
        )
      }
    : input_schema
