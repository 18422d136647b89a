/** The commit that a run is of, so that what it says can be seen again. */
import { execFileSync } from "node:child_process"

/** `undefined` outside of a repository. */
export const commit = (): string | undefined => {
  const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { encoding: "utf8", stdio: "pipe" }).trim()
  try {
    return `${git("rev-parse", "HEAD")}${git("status", "--porcelain") === "" ? "" : " with local changes"}`
  } catch {
    return undefined
  }
}
