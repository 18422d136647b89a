/** Places in STATE and in outputs: `field.key.0`, with `*` for every element of a list, and `${field.key}` within the params of a script. */
import { Schema } from "effect"
import { StatePath } from "#schema/SkillContract.ts"

/** The field in which a place lies. */
export const fieldOf = (path: string): string => path.split(".", 1)[0] ?? ""

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
