/** The files that come with choirctl. */
import { join } from "node:path"
import { packageFolder } from "#src/shared/files/packageFolder.ts"

/** The files of a new global repository. */
export const GLOBAL_STARTER = join(packageFolder, "docker", "starter")

/** The files of a new agent's repository. */
export const AGENT_STARTER = join(packageFolder, "docker", "agent-starter")
