/** What Node is given to start an agent: it loads no more than the way to the program's compiled form. */
import { fileURLToPath } from "node:url"
import { loadProgram } from "#src/shared/program/compiledProgram.ts"

loadProgram(fileURLToPath(import.meta.url)).run()
