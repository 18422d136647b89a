/** The program that runs commands apart, as a build has it beside the agent's. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { probeApart } from "#src/shared/program/callsApart.ts"
import { apartProgram } from "#src/shared/program/apartProgram.ts"

const folder = mkdtempSync("/tmp/choir-apart-")
process.once("exit", () => rmSync(folder, { recursive: true, force: true }))
// Another user may run it.
chmodSync(folder, 0o755)

/** Where this process finds it. */
export const APART_PROGRAM = join(folder, "choir-agent.apart")
writeFileSync(APART_PROGRAM, apartProgram() ?? "")
chmodSync(APART_PROGRAM, 0o755)

/** What this machine's kernel offers. */
export const APART = probeApart(APART_PROGRAM)
