/** The program that runs commands without a network, as a build has it beside the agent's. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { offlineProgram } from "#src/shared/program/offlineProgram.ts"

const folder = mkdtempSync("/tmp/choir-offline-")
process.once("exit", () => rmSync(folder, { recursive: true, force: true }))

/** Where this process finds it. */
export const OFFLINE_PROGRAM = join(folder, "choir-agent.offline")
writeFileSync(OFFLINE_PROGRAM, offlineProgram() ?? "")
chmodSync(OFFLINE_PROGRAM, 0o755)
