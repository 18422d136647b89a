/** The start of a program that loads the rest of itself. Node keeps what it compiled for the next start, which then takes less time. */
import * as nodeModule from "node:module"
import { nodeProblem } from "./version.ts"
import { withoutWasmInlining } from "./wasmInlining.ts"

/**
 * Loads a program and runs it. A Node that Choir does not run on is reported before anything else is loaded, since it would stop at the first thing that it
 * lacks; and only what is loaded after this comes from Node's compile cache.
 *
 * @param name in front of the problem.
 */
export const startProgram = async (
  name: string,
  load: () => Promise<{ readonly main: (args: ReadonlyArray<string>) => void }>
): Promise<void> => {
  const problem = nodeProblem(process.versions.node)
  if (problem !== undefined) {
    process.stderr.write(`${name}: ${problem}\n`)
    process.exitCode = 78
    return
  }
  withoutWasmInlining()
  // A folder that was removed after somebody went there: whatever asks for it would fail with the name of a system call.
  try {
    process.cwd()
  } catch {
    process.chdir("/")
  }
  // Under a umask that takes its own rights from the owner, no program could read what it has just written.
  const mask = process.umask(0o077)
  process.umask(mask & 0o077)
  // A folder of the user's own: in the shared one for temporary files others could leave code for this process.
  const caches =
    process.env["XDG_CACHE_HOME"] ?? (process.env["HOME"] === undefined ? undefined : `${process.env["HOME"]}/.cache`)
  if (caches !== undefined) nodeModule.enableCompileCache(`${caches}/choir`)
  const { main } = await load()
  main(process.argv.slice(2))
}
