/** Looks at the machine's processes from outside of what is tested. */
import { readdirSync, readFileSync } from "node:fs"
import { Result } from "effect"

/** The pids whose command line holds the text. A zombie has no command line. */
export const processesNaming = (text: string): ReadonlyArray<string> =>
  readdirSync("/proc")
    .filter((name) => /^[0-9]+$/u.test(name))
    .filter((pid) => {
      const line = Result.try({ try: () => readFileSync(`/proc/${pid}/cmdline`, "utf8"), catch: () => undefined })
      return Result.isSuccess(line) && line.success.includes(text)
    })
