/** The syntax trees of sources, for rules about code that a linter does not have. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parseAst } from "rolldown/parseAst"

/** A node of a tree in the terms of ESTree; its other fields are its children. */
export interface SyntaxNode {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

export const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

/** The children of a node, in the order of the source. */
export const childrenOf = (node: SyntaxNode): ReadonlyArray<SyntaxNode> =>
  Object.values(node)
    .flatMap((value) => (Array.isArray(value) ? value : [value]))
    .filter(isNode)

/** Visits a node and all below it, with the nodes above, the nearest last. */
export const walk = (
  node: SyntaxNode,
  visit: (node: SyntaxNode, above: ReadonlyArray<SyntaxNode>) => void,
  above: ReadonlyArray<SyntaxNode> = []
): void => {
  visit(node, above)
  const inner = [...above, node]
  for (const child of childrenOf(node)) walk(child, visit, inner)
}

/** The name of an identifier, or of the last member of a chain: `commit` of `this.arbiter.commit`. */
export const lastName = (node: unknown): string | undefined => {
  if (!isNode(node)) return undefined
  if (node.type === "Identifier" || node.type === "PrivateIdentifier") return String(node["name"])
  return node.type === "MemberExpression" ? lastName(node["property"]) : undefined
}

export interface ParsedFile {
  /** Its path below the folder. */
  readonly name: string
  readonly text: string
  readonly tree: SyntaxNode
}

export const parsed = (name: string, text: string): ParsedFile => ({
  name,
  text,
  tree: parseAst(text, { lang: "ts" }) as unknown as SyntaxNode
})

/** All sources below a folder. */
export const parsedFolder = (folder: string): ReadonlyArray<ParsedFile> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .toSorted()
    .map((name) => parsed(name, readFileSync(join(folder, name), "utf8")))
