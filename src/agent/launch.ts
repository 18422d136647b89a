/** The entry that Node runs to start an agent: it loads only the loader of the program's compiled form. */
import { fileURLToPath } from "node:url"
import { loadProgram } from "#src/shared/program/compiledProgram.ts"

loadProgram(fileURLToPath(import.meta.url)).run()
