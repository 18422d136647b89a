/**
 * The size of a JSON Schema with its references unfolded, which bounds the work of building its check and of each value that is checked. A few
 * kilobytes can unfold to millions of parts. Pure.
 */

type Node = Readonly<Record<string, unknown>>

/** Parts of a schema, with those that a reference names in its place. */
const SCHEMA_PARTS_MAX = 4000
/** References and parts within each other; far more than a person writes. */
const SCHEMA_NESTED_MAX = 200

/** Keywords that hold values, and those that hold schemas only for others to name. */
const NO_PARTS = new Set(["$defs", "definitions", "const", "default", "enum", "examples"])
/** Keywords with a list of schemas for the same value. */
const ALTERNATIVES = ["allOf", "anyOf", "oneOf"]

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null

/** The part that a reference names; those of other documents are not followed. */
const named = (root: Node, reference: unknown): Node | undefined => {
  if (typeof reference !== "string" || !reference.startsWith("#")) return undefined
  let found: unknown = root
  for (const key of reference.slice(1).split("/").slice(1)) {
    const name = key.replaceAll("~1", "/").replaceAll("~0", "~")
    found = isNode(found) && Object.hasOwn(found, name) ? found[name] : undefined
  }
  return isNode(found) ? found : undefined
}

/** The parts right below one, each under its keyword. */
const below = (root: Node, node: Node): ReadonlyArray<readonly [string, Node]> => [
  ...Object.entries(node).flatMap(([key, value]) =>
    (NO_PARTS.has(key) && !Array.isArray(node)) || !isNode(value) ? [] : [[key, value] as const]
  ),
  ...[named(root, node["$ref"])].flatMap((target) => (target === undefined ? [] : [["$ref", target] as const]))
]

/** The values that a part lists, such as its required keys: each takes its share of the check. */
const listed = (node: Node): number => {
  const values: ReadonlyArray<unknown> = Array.isArray(node) ? node : Array.isArray(node["enum"]) ? node["enum"] : []
  return values.filter((value) => !isNode(value)).length
}

/** The unfolded size, at most one more than the limit. A part that contains itself counts once within itself. */
const unfolded = (root: Node): number => {
  const known = new Map<Node, number>()
  const open = new Set<Node>()
  const size = (node: Node): number => {
    const before = known.get(node)
    if (before !== undefined || open.has(node)) return before ?? 1
    if (open.size >= SCHEMA_NESTED_MAX) return SCHEMA_PARTS_MAX + 1
    open.add(node)
    let sum = 1 + listed(node)
    for (const [, part] of below(root, node)) {
      sum = Math.min(sum + size(part), SCHEMA_PARTS_MAX + 1)
      if (sum > SCHEMA_PARTS_MAX) break
    }
    open.delete(node)
    known.set(node, sum)
    return sum
  }
  return size(root)
}

const reaches = (root: Node, from: ReadonlyArray<Node>, target: Node): boolean => {
  const seen = new Set<Node>(from)
  for (const node of seen) {
    if (node === target) return true
    for (const [, part] of below(root, node)) seen.add(part)
  }
  return false
}

/** Ways in which a part checks one value, each with the type of value that it takes: its own keywords, and its alternatives. */
const waysOf = (
  root: Node,
  node: Node
): ReadonlyArray<{ readonly type: string; readonly parts: ReadonlyArray<Node> }> => {
  const typeOf = (one: Node) => {
    const { type } = named(root, one["$ref"]) ?? one
    return typeof type === "string" ? type : ""
  }
  const alternatives = ALTERNATIVES.flatMap((key) =>
    Array.isArray(node[key]) ? (node[key] as ReadonlyArray<unknown>) : []
  )
  const patterns = isNode(node["patternProperties"]) ? Object.values(node["patternProperties"]) : []
  const own = below(root, node).flatMap(([key, part]) =>
    ALTERNATIVES.includes(key) || key === "patternProperties" ? [] : [part]
  )
  return [
    { type: typeOf(node), parts: own },
    ...alternatives.filter(isNode).map((one) => ({ type: typeOf(one), parts: [one] })),
    ...patterns.filter(isNode).map((one) => ({ type: typeOf(node), parts: [one] }))
  ]
}

/** Whether a part contains itself in two ways that take the same values: each level of a value would double the work. */
const doubles = (root: Node): boolean => {
  const seen = new Set<Node>([root])
  for (const node of seen) {
    const ways = waysOf(root, node)
    if (ways.length > 1) {
      const types = ways.flatMap(({ parts, type }) => (reaches(root, parts, node) ? [type] : []))
      if (types.length > 1 && (types.includes("") || new Set(types).size < types.length)) return true
    }
    for (const [, part] of below(root, node)) seen.add(part)
  }
  return false
}

/** Why a schema would take too long to check; `undefined` where it would not. */
export const sizeProblem = (schema: Node): string | undefined => {
  if (unfolded(schema) > SCHEMA_PARTS_MAX)
    return `it has more than ${SCHEMA_PARTS_MAX} parts once its references are unfolded, or they lie too deep: make it smaller`
  return doubles(schema)
    ? "a part of it contains itself in two alternatives for the same values, which takes for ever to check: give the alternatives different types"
    : undefined
}
