/** Builds the programs before the tests where they are not up to date, so that what is tested as processes is what ships. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"

const ROOT = join(import.meta.dirname, "../..")

export default () => {
  execFileSync(process.execPath, [join(ROOT, "tools/build.ts"), "--quiet"], {
    cwd: ROOT,
    stdio: ["ignore", "ignore", "inherit"]
  })
}
