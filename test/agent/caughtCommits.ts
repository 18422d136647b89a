/** Where code of the agent catches the refusal of a commit. By names alone: what a service's method commits, its callers are not asked about. */
import { dirname, join } from "node:path"
import { isNode, lastName, type ParsedFile, type SyntaxNode, walk } from "../support/syntax.ts"

/** What takes a failure away from the code around it, or tries again. */
const CATCHES =
  /^(?:option|exit|result|ignore\w*|sandbox|catch\w*|orElse\w*|match\w*|timeoutOption|retry\w*|eventually|fork\w*)$/u
/** Calls whose further arguments are applied to the first, or to the object before the dot. */
const PIPES = new Set(["pipe", "fn", "fnUntraced"])

const effectMethod = (node: unknown): string | undefined =>
  isNode(node) && node.type === "MemberExpression" && lastName(node["object"]) === "Effect" ? lastName(node) : undefined

const listOf = (value: unknown): ReadonlyArray<SyntaxNode> => (Array.isArray(value) ? value.filter(isNode) : [])

/** The functions applied to what `inner`, a part of the call, gives. */
const applied = (call: SyntaxNode, inner: SyntaxNode | undefined): ReadonlyArray<SyntaxNode> => {
  const callee = call["callee"]
  const args = listOf(call["arguments"])
  const name = lastName(callee) ?? ""
  if (inner === callee) return PIPES.has(name) ? args : []
  const place = inner === undefined ? -1 : args.indexOf(inner)
  if (PIPES.has(name)) return args.slice(place + 1)
  return place === 0 && isNode(callee) ? [callee] : []
}

/** The catching functions around a node, up to the end of its declaration. */
const catchesAround = (above: ReadonlyArray<SyntaxNode>, node: SyntaxNode): ReadonlyArray<string> => {
  const chain = [...above, node]
  return chain.flatMap((call, index) =>
    call.type !== "CallExpression"
      ? []
      : applied(call, chain[index + 1]).flatMap((each) => {
          const name = effectMethod(each) ?? (each.type === "CallExpression" ? effectMethod(each["callee"]) : undefined)
          return name !== undefined && CATCHES.test(name) ? [name] : []
        })
  )
}

const keyOf = (file: string, name: string) => `${file}#${name}`

/** The names that a file imports from the same program, by their own files. */
const importsOf = ({ name, tree }: ParsedFile): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  for (const node of listOf(tree["body"])) {
    if (node.type !== "ImportDeclaration" || !isNode(node["source"])) continue
    const from = String(node["source"]["value"])
    const file = from.startsWith("#src/agent/") ? from.slice("#src/agent/".length) : join(dirname(name), from)
    for (const each of listOf(node["specifiers"]))
      found.set(lastName(each["local"]) ?? "", keyOf(file, lastName(each["imported"]) ?? ""))
  }
  return found
}

/** Whether an identifier is a use of its name, not the place where it is made or a member of something else. */
const isUse = (node: SyntaxNode, parent: SyntaxNode | undefined): boolean =>
  node.type === "Identifier" &&
  parent !== undefined &&
  !(parent.type === "MemberExpression" && parent["property"] === node) &&
  !(parent.type === "Property" && parent["key"] === node && parent["shorthand"] !== true) &&
  !(parent.type === "VariableDeclarator" && parent["id"] === node) &&
  parent.type !== "ImportSpecifier"

const isCommit = (node: SyntaxNode): boolean => node.type === "CallExpression" && lastName(node["callee"]) === "commit"

/** The declaration that a commit makes a committer: the innermost with a name. */
const ownerOf = (above: ReadonlyArray<SyntaxNode>): string | undefined =>
  lastName(
    above.findLast(({ id, type }) => type === "VariableDeclarator" && isNode(id) && id.type === "Identifier")?.["id"]
  )

/**
 * Each catch around a commit, or around the use of a declaration whose commit is not caught: `file: declaration: function`.
 * A declaration that catches is done with; its uses are not looked at.
 */
export const caughtCommits = (files: ReadonlyArray<ParsedFile>): ReadonlyArray<string> => {
  const committers = new Set<string>()
  const caught = new Set<string>()
  for (let before = -1; before < committers.size;) {
    before = committers.size
    for (const file of files) {
      const imports = importsOf(file)
      walk(file.tree, (node, above) => {
        const name = lastName(node) ?? ""
        const isOther =
          isUse(node, above.at(-1)) &&
          (committers.has(keyOf(file.name, name)) || committers.has(imports.get(name) ?? ""))
        if (!isCommit(node) && !isOther) return
        const owner = ownerOf(above)
        const around = catchesAround(above, node)
        for (const each of around) caught.add(`${file.name}: ${owner ?? ""}: ${each}`)
        if (around.length === 0 && owner !== undefined) committers.add(keyOf(file.name, owner))
      })
    }
  }
  return [...caught].toSorted()
}
