/** The files that come with choirctl. */
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"

const nearest = (folder: string): string =>
  existsSync(join(folder, "package.json")) || dirname(folder) === folder ? folder : nearest(dirname(folder))

/** The folder of the package, from its source as well as from its bundle. */
const packageFolder = nearest(import.meta.dirname)

/** The files of a new global repository. */
export const GLOBAL_STARTER = join(packageFolder, "docker", "starter")

/** The files of a new agent's repository. */
export const AGENT_STARTER = join(packageFolder, "docker", "agent-starter")
