/** Refuses a file to restore that is not there, and names the command that makes one. */
import { existsSync, statSync } from "node:fs"
import { Effect } from "effect"
import { usageError } from "#src/choirctl/terminal/failure.ts"

export const requireFile = (file: string, madeBy: string) =>
  Effect.suspend(() => {
    if (statSync(file, { throwIfNoEntry: false })?.isFile() === true) return Effect.void
    const problem = existsSync(file) ? "is not a file" : "does not exist"
    return usageError(`${file} ${problem}`, `name a file that ${madeBy} made`)
  })
