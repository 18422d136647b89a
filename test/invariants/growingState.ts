/** Collections that functions fill after they were made, and that nothing in their file makes smaller. */
import { isNode, lastName, type ParsedFile, type SyntaxNode, walk } from "../support/syntax.ts"

const GROWS = new Set(["add", "push", "set", "unshift"])
const SHRINKS = new Set(["clear", "delete", "pop", "shift", "splice"])

const isFunction = ({ type }: SyntaxNode) => type.includes("Function")

interface Collection {
  readonly name: string
  /** The function that makes it; none for one of the module. */
  readonly owner: SyntaxNode | undefined
}

const isMade = (init: SyntaxNode): boolean =>
  (init.type === "ArrayExpression" && Array.isArray(init["elements"]) && init["elements"].length === 0) ||
  (init.type === "NewExpression" && ["Map", "Set"].includes(lastName(init["callee"]) ?? ""))

const collectionsIn = ({ tree }: ParsedFile): ReadonlyArray<Collection> => {
  const found: Array<Collection> = []
  walk(tree, (node, above) => {
    if (node.type !== "VariableDeclarator" && node.type !== "PropertyDefinition") return
    const init = node["init"] ?? node["value"]
    const name = lastName(node["id"] ?? node["key"])
    if (name !== undefined && isNode(init) && isMade(init)) found.push({ name, owner: above.findLast(isFunction) })
  })
  return found
}

/** The functions around a call of a method of the collection, and the method. */
const callsOf = ({ name }: Collection, { tree }: ParsedFile) => {
  const found: Array<{ readonly method: string; readonly around: ReadonlyArray<SyntaxNode> }> = []
  walk(tree, (node, above) => {
    const callee = node["callee"]
    if (node.type === "CallExpression" && isNode(callee) && callee.type === "MemberExpression")
      if (lastName(callee["object"]) === name)
        found.push({ method: lastName(callee) ?? "", around: above.filter(isFunction) })
    // `waiting = []` or `waiting.length = 0`
    if (node.type === "AssignmentExpression" && isNode(node["left"])) {
      const { left } = node
      const isReset = lastName(left) === "length" && isNode(left) && lastName(left["object"]) === name
      if (isReset || lastName(left) === name) found.push({ method: "clear", around: [] })
    }
  })
  return found
}

/** Each such collection, as `file: name`. One that a function makes and fills itself ends with its call. */
export const growingState = (file: ParsedFile): ReadonlyArray<string> =>
  collectionsIn(file).flatMap((collection) => {
    const { name, owner } = collection
    const calls = callsOf(collection, file)
    const grows = calls.some(
      ({ around, method }) =>
        GROWS.has(method) &&
        (owner === undefined ? around.length > 0 : around.includes(owner) && around.at(-1) !== owner)
    )
    return grows && !calls.some(({ method }) => SHRINKS.has(method)) ? [`${file.name}: ${name}`] : []
  })
