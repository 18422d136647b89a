/** The mistakes of a file that its schema refuses, each with its line, and with the key or the value that was probably meant. Pure. */
import { Schema } from "effect"
import { nearestWord } from "#src/shared/text/nearestWord.ts"
import { decoderText, EXCESS, MISSING, type PlacedProblem, placedProblems, predicateOf } from "./configProblems.ts"
import { keyLines } from "./jsonKeys.ts"

/** Keys of an object that a problem lists. */
const KEYS_LISTED_MAX = 12

type Keys = ReadonlyArray<string>

/** The part of a JSON Schema that tells the keys of objects. */
interface Node {
  readonly properties?: Readonly<Record<string, Node>>
  readonly patternProperties?: Readonly<Record<string, Node>>
  readonly additionalProperties?: Node | boolean
  readonly items?: Node | ReadonlyArray<Node>
  readonly anyOf?: ReadonlyArray<Node>
  readonly required?: Keys
}

/** The nodes that a value may follow. */
const choices = (node: Node): ReadonlyArray<Node> =>
  (node.anyOf ?? [node]).flatMap((one) => (one.anyOf ? choices(one) : [one]))

const below = (node: Node, key: string): ReadonlyArray<Node> => {
  const { additionalProperties, items, patternProperties = {}, properties = {} } = node
  const named = Object.hasOwn(properties, key) ? properties[key] : undefined
  const other = typeof additionalProperties === "object" ? [additionalProperties] : []
  const next = named === undefined ? [...Object.values(patternProperties), ...other, ...[items ?? []].flat()] : [named]
  return next.flatMap(choices)
}

const nodesAt = (root: Node, path: Keys): ReadonlyArray<Node> =>
  path.reduce<ReadonlyArray<Node>>((nodes, key) => nodes.flatMap((node) => below(node, key)), choices(root))

const valueAt = (value: unknown, path: Keys): unknown =>
  path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null ? (inner as Readonly<Record<string, unknown>>)[key] : undefined,
    value
  )

const NOT_A_NAME = "not a name: a-z, then up to 39 of a-z, 0-9 and -; control is reserved"

/** The words on a key that is not one of the object's. */
const unknownKey = (root: Node, path: Keys): string => {
  const nodes = nodesAt(root, path.slice(0, -1))
  const keys = nodes.flatMap(({ properties = {} }) => Object.keys(properties))
  if (keys.length === 0) return path.length > 1 ? NOT_A_NAME : "not a valid name"
  if (keys.includes(path.at(-1) ?? "")) return "does not go with the other keys here"
  const near = nearestWord(path.at(-1) ?? "", keys)
  if (near !== undefined) return `an unknown key; did you mean ${near}?`
  return keys.length > KEYS_LISTED_MAX
    ? "an unknown key"
    : `an unknown key; the keys are ${[...new Set(keys)].join(", ")}`
}

/** The words on a value whose quotation marks alone are wrong. They never quote it. */
const aboutValue = (reason: string, value: unknown): string => {
  if (reason === "must be a string" && (typeof value === "number" || typeof value === "boolean"))
    return `${reason}: put it in quotation marks`
  const isNumber = typeof value === "string" && /^-?\d{1,15}(?:\.\d{1,15})?$/u.test(value)
  return reason === "must be a number" && isNumber ? `${reason}, without quotation marks` : reason
}

/** Of an object that may have one of several sets of keys, and has none whole: these sets, where a decoder complains about each. */
const alternativesOf = (root: Node, problems: ReadonlyArray<PlacedProblem>, path: Keys): string | undefined => {
  const missing = problems.flatMap((each) =>
    each.reason === MISSING &&
    each.path.length === path.length + 1 &&
    path.every((key, index) => key === each.path[index])
      ? [each.path.at(-1) ?? ""]
      : []
  )
  const sets = nodesAt(root, path).flatMap(({ required }) => (required === undefined ? [] : [required]))
  if (missing.length === 0 || sets.length < 2 || sets.some((set) => missing.every((key) => set.includes(key))))
    return undefined
  return `must have ${sets.map((set) => (set.length > 1 ? set.join(" and ") : set.join(""))).join(", or ")}`
}

/**
 * A decoder's message about a file once more, as decoder texts with lines and fixes.
 *
 * @param text of the file; without it the problems have no lines
 */
export const mistakesOf = (
  schema: Schema.Top,
  value: unknown,
  message: string,
  text?: string
): ReadonlyArray<string> => {
  const root = Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" }).schema as Node
  const lineIn = text === undefined ? undefined : keyLines(text)
  const lineOf = (path: Keys) => (lineIn === undefined ? {} : { line: lineIn(path) })
  const problems = placedProblems([message])
  const known = new Map<string, string | undefined>()
  const alternativesAt = (path: Keys) => {
    const key = JSON.stringify(path)
    if (!known.has(key)) known.set(key, alternativesOf(root, problems, path))
    return known.get(key)
  }
  const texts = problems.map(({ path, reason }) => {
    const parent = path.slice(0, -1)
    const alternatives = reason === EXCESS || reason === MISSING ? alternativesAt(parent) : undefined
    const isOfAnother =
      reason === MISSING ||
      nodesAt(root, parent).some(({ properties = {} }) => Object.hasOwn(properties, path.at(-1) ?? ""))
    if (alternatives !== undefined && isOfAnother)
      return decoderText({ path: parent, reason: alternatives, ...lineOf(parent) })
    const words = reason === EXCESS ? unknownKey(root, path) : aboutValue(predicateOf(reason), valueAt(value, path))
    return decoderText({ path, reason: words, ...lineOf(path) })
  })
  return [...new Set(texts)]
}
