/** Whether this host's kernel keeps the commands of agents apart from each other. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type { CallsApart } from "#schema/AgentApi.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { APART_WORDS, probeApart } from "#src/shared/program/callsApart.ts"
import { APART } from "#src/shared/program/compiledProgram.ts"
import { check, type Check } from "./hostChecks.ts"

const NAME = "calls apart"
const PROGRAM = join(packageFolder, "dist", `choir-agent${APART}`)

/** @param level of this host; `undefined` where the program that asks the kernel is not built. */
export const apartLevelCheck = (level: CallsApart | undefined): Check => {
  if (level === undefined) return check(NAME, "skip", "known once Choir is built")
  return level === "none"
    ? check(NAME, "warn", APART_WORDS.none, "update the kernel, and let lsm= on its command line name landlock")
    : check(NAME, "ok", APART_WORDS[level])
}

export const apartCheck = Effect.sync(() =>
  apartLevelCheck(existsSync(PROGRAM) ? probeApart(PROGRAM).level : undefined)
)
