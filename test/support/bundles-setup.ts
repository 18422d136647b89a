/** Builds the programs once before the tests, so that what is tested as processes is what ships. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"

export default () => {
  execFileSync("npm", ["run", "--silent", "build"], {
    cwd: join(import.meta.dirname, "../.."),
    stdio: ["ignore", "ignore", "inherit"]
  })
}
