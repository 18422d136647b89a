/** Where code looks at the time of day, which a person or a resumed machine sets, instead of at the clock for spans. */
import { isNode, lastName, type ParsedFile, parsedFolder, type SyntaxNode, walk } from "./syntax.ts"

const isDate = (node: unknown) => isNode(node) && node.type === "Identifier" && node["name"] === "Date"
const hasNoArguments = ({ arguments: given }: SyntaxNode) => Array.isArray(given) && given.length === 0

const looks = (node: SyntaxNode): boolean => {
  switch (node.type) {
    case "NewExpression":
      return isDate(node["callee"]) && hasNoArguments(node)
    case "CallExpression":
      return isDate(node["callee"])
    case "MemberExpression": {
      const name = lastName(node) ?? ""
      return (isDate(node["object"]) || lastName(node["object"]) === "DateTime") && name.startsWith("now")
    }
    case "Identifier":
      return /^currentTime(?:Millis|Nanos)/u.test(String(node["name"]))
    default:
      return false
  }
}

/** Reasons by file; a pair has the number of uses that have it. */
export type TimeOfDay = Readonly<Record<string, string | readonly [reason: string, uses: number]>>

export const looksIn = ({ tree }: ParsedFile): number => {
  let count = 0
  walk(tree, (node, above) => {
    // A shorthand of a pattern is one identifier as key and as value.
    const parent = above.at(-1)
    if (looks(node) && !(parent?.type === "Property" && parent["shorthand"] === true && parent["key"] === node))
      count += 1
  })
  return count
}

/** How often each file below a folder looks at the time of day. */
export const looksAtTimeOfDay = (folder: string): Readonly<Record<string, number>> =>
  Object.fromEntries(
    parsedFolder(folder)
      .map((file) => [file.name, looksIn(file)] as const)
      .filter(([, count]) => count > 0)
  )

export const allowed = (uses: TimeOfDay): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(uses).map(([name, use]) => [name, typeof use === "string" ? 1 : use[1]]))
