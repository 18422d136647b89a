/** The rule for work in the background: somebody waits for its end, or its death is logged by name. */
import { isNode, lastName, type ParsedFile, type SyntaxNode, walk } from "../support/syntax.ts"

/** The helpers of src/shared/background.ts. */
const WATCHING = new Set(["logDeath", "restarted"])
/** What starts a fiber of work that it is given first, or that a pipe gives it. */
const FORKS = new Set(["forkChild", "forkScoped", "forkIn", "forkDetach", "runFork", "runCallback"])
/** The collections of fibers, whose `run` takes the work as its last argument but for options. */
const COLLECTIONS = new Set(["FiberSet", "FiberMap", "FiberHandle"])
/** Wrappers that leave the end of their first argument as it is. */
const AROUND = new Set(["ensuring", "annotateLogs", "provideContext", "tapDefect"])
/** What waits for a fiber. */
const WAITS = new Set(["join", "await", "joinAll", "awaitAll"])
/** Methods that return no promise, or one that never fails, as the end of a worker's thread. */
const NO_PROMISE = /^(?:set|delete|push|add|write|end|endUnsafe|destroy|kill|terminate|stop|\w+Sync)$/u

const argumentsOf = (node: SyntaxNode) =>
  node.type === "CallExpression" && Array.isArray(node["arguments"]) ? node["arguments"].filter(isNode) : []

const calleeOf = (node: SyntaxNode) =>
  node.type === "CallExpression" && isNode(node["callee"]) ? node["callee"] : undefined

const objectOf = (node: SyntaxNode | undefined) =>
  node?.type === "MemberExpression" && isNode(node["object"]) ? node["object"] : undefined

/** A call of a helper with its name: `logDeath("…")`. */
const isHelper = (node: SyntaxNode) => WATCHING.has(lastName(calleeOf(node)) ?? "")

/** Knows the names of a file: what stands behind a constant, and which fibers are waited for. */
const namesOf = (tree: SyntaxNode) => {
  const values = new Map<string, SyntaxNode>()
  const waited = new Set<string>()
  walk(tree, (node) => {
    if (node.type === "VariableDeclarator" && isNode(node["init"])) {
      const name = lastName(node["id"])
      if (name !== undefined) values.set(name, node["init"])
    }
    const callee = calleeOf(node)
    const name = lastName(callee)
    const of = lastName(objectOf(callee)) ?? ""
    if (name !== undefined && WAITS.has(name) && (of === "Fiber" || COLLECTIONS.has(of)))
      for (const fiber of argumentsOf(node)) waited.add(lastName(fiber) ?? "")
    if (name === "addObserver") waited.add(lastName(objectOf(callee)) ?? "")
  })
  return { values, waited }
}

type Names = ReturnType<typeof namesOf>

/** Whether the death of an effect is logged, as far as its outermost layers say. */
const isWatched = (node: SyntaxNode | undefined, names: Names, depth = 0): boolean => {
  if (node === undefined || depth > 4) return false
  if (node.type === "Identifier") return isWatched(names.values.get(lastName(node) ?? ""), names, depth + 1)
  const callee = calleeOf(node)
  if (callee === undefined) return false
  // An interruption does nothing that could fail.
  if (lastName(callee) === "interrupt" && lastName(objectOf(callee)) === "Fiber") return true
  if (isHelper(callee)) return true
  if (lastName(callee) === "pipe") return argumentsOf(node).some(isHelper)
  return AROUND.has(lastName(callee) ?? "") && isWatched(argumentsOf(node)[0], names, depth + 1)
}

/** The work that is forked, `among` the fibers of a collection; or the `pipe` in which it comes before the fork. */
type Forked =
  | { readonly work: SyntaxNode | undefined; readonly among?: string | undefined }
  | { readonly pipe: ReadonlyArray<SyntaxNode> }

/** What a node forks, if it does. */
const forkedBy = (
  node: SyntaxNode,
  above: ReadonlyArray<SyntaxNode>,
  runs: ReadonlySet<string>
): Forked | undefined => {
  const parent = above.at(-1)
  const inPipe = (at: SyntaxNode): Forked | undefined => {
    const outer = at === node ? parent : above.at(-2)
    return outer !== undefined && lastName(calleeOf(outer)) === "pipe" ? { pipe: argumentsOf(outer) } : undefined
  }
  if (node.type === "MemberExpression" && FORKS.has(lastName(node) ?? "") && lastName(objectOf(node)) === "Effect") {
    if (parent === undefined || calleeOf(parent) !== node) return inPipe(node)
    const [first] = argumentsOf(parent)
    const isLast = first === undefined || first.type === "ObjectExpression" || lastName(node) === "forkIn"
    const given = lastName(node) === "forkIn" ? argumentsOf(parent).length === 2 : !isLast
    return given ? { work: first } : inPipe(parent)
  }
  const callee = calleeOf(node)
  if (callee === undefined) return undefined
  const given = argumentsOf(node).filter(({ type }) => type !== "ObjectExpression")
  if (callee.type === "Identifier" && runs.has(String(callee["name"]))) return { work: given[0] }
  const ofCollection = lastName(callee) === "run" && COLLECTIONS.has(lastName(objectOf(callee)) ?? "")
  if (!ofCollection) return undefined
  return { work: given.at(-1), among: lastName(given[0]) }
}

/** The name that a fiber gets, and by which it may be waited for. */
const nameOfFiber = (above: ReadonlyArray<SyntaxNode>): string | undefined => {
  const own = above.findLast(
    ({ type }) => type === "VariableDeclarator" || type.endsWith("Function") || type.endsWith("FunctionExpression")
  )
  return own?.type === "VariableDeclarator" ? lastName(own["id"]) : undefined
}

/** The promise of a `void` whose failure nobody takes. */
const isLostPromise = (node: SyntaxNode): boolean => {
  const promise = node.type === "UnaryExpression" && node["operator"] === "void" ? node["argument"] : undefined
  if (!isNode(promise) || promise.type !== "CallExpression") return false
  const name = lastName(calleeOf(promise)) ?? ""
  if (name === "then") return argumentsOf(promise).length < 2
  return name !== "catch" && !NO_PROMISE.test(name)
}

/** The forks of a file that nobody waits for and whose death nobody would see, with their lines. */
export const unwatched = ({ name, text, tree }: ParsedFile): ReadonlyArray<string> => {
  const names = namesOf(tree)
  const runs = new Set(
    [...names.values].flatMap(([key, value]) =>
      lastName(calleeOf(isNode(value["argument"]) ? value["argument"] : value)) === "makeRuntime" ? [key] : []
    )
  )
  const found: Array<string> = []
  const report = (node: SyntaxNode) => {
    const line = text.slice(0, node.start).split("\n").length
    found.push(`${name}:${line}`)
  }
  walk(tree, (node, above) => {
    if (isLostPromise(node) && !runs.has(lastName(calleeOf(node["argument"] as SyntaxNode)) ?? "")) report(node)
    const forked = forkedBy(node, above, runs)
    if (forked === undefined || names.waited.has(nameOfFiber(above) ?? "")) return
    if ("among" in forked && names.waited.has(forked.among ?? "")) return
    const isSeen = "work" in forked ? isWatched(forked.work, names) : forked.pipe.some(isHelper)
    if (!isSeen) report(node)
  })
  return found
}
