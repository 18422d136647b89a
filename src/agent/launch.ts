/** The entry that Node runs to start an agent: it loads only the loader of the program's compiled form, on a Node without known holes. */
import { fileURLToPath } from "node:url"
import { loadProgram } from "#src/shared/program/compiledProgram.ts"
import { nodeProblem } from "#src/shared/program/version.ts"

const problem = nodeProblem(process.versions.node)
if (problem === undefined) loadProgram(fileURLToPath(import.meta.url)).run()
else {
  process.stderr.write(`choir-agent: ${problem}\n`)
  process.exitCode = 78
}
