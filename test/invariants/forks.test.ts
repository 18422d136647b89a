/** Nothing dies in silence: every fiber and promise in the background is waited for, or logs its death by name. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { parsed, parsedFolder, walk } from "../support/syntax.ts"
import { unwatched } from "./forks.ts"

it("every fork of the programs is waited for, or its death is logged", () => {
  const files = parsedFolder(join(import.meta.dirname, "../../src"))
  assert.isAbove(files.length, 500)
  let forks = 0
  for (const { tree } of files)
    walk(tree, (node) => {
      if (node.type === "Identifier" && /^(?:fork(?:Child|Scoped|In|Detach)|runFork)$/u.test(String(node["name"])))
        forks += 1
    })
  assert.isAbove(forks, 50)
  assert.deepStrictEqual(files.flatMap(unwatched), [])
})

const PLANTED: ReadonlyArray<readonly [text: string, why: string]> = [
  ["yield* Effect.forkScoped(loop)", "a fork by itself"],
  ["yield* loop.pipe(Effect.forever, Effect.forkScoped)", "a fork in a pipe"],
  ["yield* loop.pipe(Effect.forkScoped({ startImmediately: true }))", "a fork in a pipe, with options"],
  ["yield* loop.pipe(Effect.tapError(Effect.logError), Effect.forkIn(scope))", "one that logs failures and no defects"],
  ["const fiber = yield* Effect.forkChild(loop)", "a fiber that nobody waits for"],
  ["const work = Effect.forever(loop); yield* Effect.forkIn(work, scope)", "work under a name"],
  ["yield* FiberSet.run(fibers, loop)", "a set of fibers"],
  ["yield* FiberMap.run(fibers, key, loop, { onlyIfMissing: true })", "a map of fibers"],
  ["const run = yield* FiberSet.makeRuntime(); server.on('x', () => void run(loop))", "the runtime of a set"],
  ["Effect.runFork(loop)", "a fiber without a parent"],
  ["void page.close()", "a promise"],
  ["void page.close().then(() => undefined)", "a promise that is followed where it succeeds"]
]

const WATCHED = [
  'yield* Effect.forkScoped(logDeath("a loop")(loop))',
  'yield* loop.pipe(restarted("a loop"), Effect.forkScoped({ startImmediately: true }))',
  'yield* FiberSet.run(fibers, Effect.ensuring(logDeath("a loop")(loop), over))',
  'const work = logDeath("a loop")(loop); yield* FiberMap.run(fibers, key, work, { onlyIfMissing: true })',
  "const fiber = yield* Effect.forkChild(loop); yield* Fiber.join(fiber)",
  "const fiber = Effect.runFork(loop); fiber.addObserver(end)",
  "void page.close().catch(() => undefined)",
  "void rows.delete(row)"
]

it("a fork whose death nobody would see is found", () => {
  const found = (text: string) => unwatched(parsed("planted.ts", `const main = function* () { ${text} }`))
  for (const [text, why] of PLANTED) assert.lengthOf(found(text), 1, why)
  for (const text of WATCHED) assert.deepStrictEqual(found(text), [], text)
})
