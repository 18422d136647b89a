/** Builds the programs before the tests where they are not up to date, so that what is tested as processes is what ships. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { heldByProjects } from "./heldByProjects.ts"

const ROOT = join(import.meta.dirname, "../..")

const build = () => {
  execFileSync(process.execPath, [join(ROOT, "tools/build.ts"), "--quiet"], {
    cwd: ROOT,
    stdio: ["ignore", "ignore", "inherit"]
  })
}

export default async () => {
  const [, release] = await heldByProjects("the programs", build)
  return release
}
