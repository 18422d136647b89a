/** The bindings of a start are made in one place, so that no way to start an agent forgets one of its DMs. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { isNode, lastName, type ParsedFile, parsed, parsedFolder, walk } from "../support/syntax.ts"

/** What makes bindings from names, and who may call it. */
const MAKERS = new Set(["bindingsOf", "bindingsAsBefore", "restartBindings"])
const MAY_MAKE = new Set(["agents/bindings.ts", "agents/startBindings.ts"])
/** Starts with what a person names, who is shown what is missing; everybody else starts an agent as it was before. */
const MAY_NAME = new Set(["api/operator/OperatorAgents.ts"])

/** The calls by which a file makes bindings by itself, or starts an agent with bindings of its own making. */
const ownStarts = ({ name, tree }: ParsedFile): ReadonlyArray<string> => {
  const found: Array<string> = []
  walk(tree, (node) => {
    if (node.type !== "CallExpression") return
    const { callee } = node
    const called = lastName(callee)
    if (called === undefined || !isNode(callee)) return
    const isStart =
      called === "start" && callee.type === "MemberExpression" && lastName(callee["object"]) === "lifecycle"
    if (MAKERS.has(called) && !MAY_MAKE.has(name)) found.push(`${name}: ${called}`)
    if (isStart && !MAY_NAME.has(name)) found.push(`${name}: lifecycle.start`)
  })
  return found
}

it("an agent is started with bindings of the one place that knows them all", () => {
  const files = parsedFolder(join(import.meta.dirname, "../../src/choird"))
  assert.isAbove(files.length, 200)
  assert.deepStrictEqual(files.flatMap(ownStarts), [])
})

it("a start with bindings made elsewhere is found", () => {
  const file = parsed(
    "proposals/AgentSteps.ts",
    `const update = (lifecycle: any, bindings: any) => {
      bindingsOf(1 as any)
      return lifecycle.start("choir", { ...bindings, dm: bindings.dm })
    }`
  )
  assert.deepStrictEqual(ownStarts(file), [
    "proposals/AgentSteps.ts: bindingsOf",
    "proposals/AgentSteps.ts: lifecycle.start"
  ])
})
