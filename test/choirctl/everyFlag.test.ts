/** Whatever option or argument choirctl takes is read by something. */
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import {
  childrenOf,
  isNode,
  lastName,
  parsed,
  type ParsedFile,
  parsedFolder,
  type SyntaxNode,
  walk
} from "../support/syntax.ts"

const listOf = (value: unknown): ReadonlyArray<SyntaxNode> => (Array.isArray(value) ? value.filter(isNode) : [])

/** The keys of an object literal or a pattern, and what it spreads or leaves to a rest. */
const partsOf = (object: SyntaxNode) => {
  const properties = listOf(object["properties"])
  return {
    names: properties.flatMap(({ key, type }) => (type === "Property" ? [lastName(key) ?? ""] : [])),
    others: properties.flatMap(({ argument, type }) => (type !== "Property" && isNode(argument) ? [argument] : []))
  }
}

/** The first parameter of a handler: `(flags) => …`, or `Effect.fnUntraced(function* ({ id }) …)`. */
const parameterOf = (handler: SyntaxNode | undefined): SyntaxNode | undefined => {
  if (handler === undefined) return undefined
  if (handler.type.endsWith("FunctionExpression")) return listOf(handler["params"])[0]
  return handler.type === "CallExpression" ? parameterOf(listOf(handler["arguments"])[0]) : undefined
}

/** The object that a name or a call of a function stands for, by its declaration in one of the files. */
const objectOf = (node: SyntaxNode, files: ReadonlyArray<ParsedFile>): SyntaxNode | undefined => {
  if (node.type === "ObjectExpression") return node
  const name = node.type === "CallExpression" ? lastName(node["callee"]) : lastName(node)
  let found: SyntaxNode | undefined
  for (const { tree } of files)
    walk(tree, ({ id, init, type }) => {
      if (type !== "VariableDeclarator" || lastName(id) !== name || !isNode(init)) return
      const made = init.type === "ArrowFunctionExpression" && isNode(init["body"]) ? init["body"] : init
      found ??= [made, ...childrenOf(made)].find((each) => each.type === "ObjectExpression")
    })
  return found
}

const flagsOf = (node: SyntaxNode, files: ReadonlyArray<ParsedFile>): ReadonlyArray<string> => {
  const object = objectOf(node, files)
  if (object === undefined) return [`nobody knows the flags of ${lastName(node) ?? node.type}`]
  const { names, others } = partsOf(object)
  return [...names, ...others.flatMap((other) => flagsOf(other, files))]
}

/** The file itself and those that it imports: where a handler may hand its flags on to. */
const withImports = (file: ParsedFile, files: ReadonlyArray<ParsedFile>): ReadonlyArray<ParsedFile> => {
  const names = new Set<string>()
  walk(file.tree, ({ source, type }) => {
    if (!["ImportDeclaration", "ImportExpression"].includes(type) || !isNode(source)) return
    const from = String(source["value"])
    names.add(from.startsWith("#src/choirctl/") ? from.slice("#src/choirctl/".length) : join(dirname(file.name), from))
  })
  return [file, ...files.filter(({ name }) => name !== file.name && names.has(name))]
}

/** Whether a file takes a key out of an object, or names it as a text. */
const reads = ({ tree }: ParsedFile, key: string, but: SyntaxNode): boolean => {
  let isRead = false
  walk(tree, (node, above) => {
    if (node.start >= but.start && node.end <= but.end) return
    const parent = above.at(-1)
    const isPattern = parent?.type === "Property" && parent["key"] === node && above.at(-2)?.type === "ObjectPattern"
    const isMember = parent?.type === "MemberExpression" && parent["property"] === node
    if ((isPattern || isMember) && lastName(node) === key) isRead = true
    if (node.type === "Literal" && node["value"] === key && parent?.type === "ArrayExpression") isRead = true
  })
  return isRead
}

/** The flags and arguments of commands that nothing reads, as `file: flag`. A name that is taken and not used is the linter's to find. */
const unreadFlags = (files: ReadonlyArray<ParsedFile>) => {
  const unread: Array<string> = []
  let count = 0
  for (const file of files)
    walk(file.tree, (node) => {
      if (node.type !== "CallExpression" || lastName(node["callee"]) !== "make" || !isNode(node["callee"])) return
      const [, flags, handler] = listOf(node["arguments"])
      if (lastName(node["callee"]["object"]) !== "Command" || flags === undefined) return
      const parameter = parameterOf(handler)
      const taken = parameter?.type === "ObjectPattern" ? partsOf(parameter) : { names: [], others: [] }
      const isWhole = parameter?.type === "Identifier" || taken.others.length > 0
      for (const name of flagsOf(flags, withImports(file, files))) {
        count += 1
        if (taken.names.includes(name)) continue
        if (!isWhole || !withImports(file, files).some((each) => reads(each, name, flags)))
          unread.push(`${file.name}: ${name}`)
      }
    })
  return { count, unread }
}

/** Sent to choird as a whole, under the names of BINDINGS. */
const RESOURCES = ["core_llm", "email", "git_identity", "notion", "search", "voice_profile"].map(
  (kind) => `commands/agent.ts: ${kind}`
)

const FLAGS = 'const flags = { yes: Flag.Boolean("yes"), other: Flag.Boolean("other") }\n'

describe("an option of choirctl", () => {
  it("is read by the handler of its command, or by what that hands it on to", () => {
    const { count, unread } = unreadFlags(parsedFolder(join(packageFolder, "src/choirctl")))
    assert.deepStrictEqual([...new Set(unread)].toSorted(), RESOURCES)
    assert.isAbove(count, 200)
  })

  const CODE: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    ['Command.make("a", flags, ({ yes, other }) => use(yes, other))', []],
    ['Command.make("a", flags, ({ yes }) => use(yes))', ["a.ts: other"]],
    ['Command.make("a", flags, () => use())', ["a.ts: yes", "a.ts: other"]],
    ['Command.make("a", { ...flags, id }, Effect.fnUntraced(function* ({ yes, other }) {}))', ["a.ts: id"]],
    ['Command.make("a", flags, ({ yes, ...rest }) => use(rest))', ["a.ts: other"]],
    ['Command.make("a", flags, ({ yes, ...rest }) => use(rest.other))', []],
    ['Command.make("a", flags, (all) => use(all))\nconst use = ({ yes }) => yes', ["a.ts: other"]],
    ['Command.make("a", unknown, (all) => use(all))', ["a.ts: nobody knows the flags of unknown"]]
  ]
  for (const [code, unread] of CODE)
    it(`is ${unread.length === 0 ? "read" : "found unread"} in ${code}`, () => {
      assert.deepStrictEqual(unreadFlags([parsed("a.ts", FLAGS + code)]).unread, unread)
    })
})
