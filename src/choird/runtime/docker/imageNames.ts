/** What images are called in the engine, what their labels say, and where a base keeps the programs of an agent. */
import type { AgentId } from "#schema/Ids.ts"
import type { ImageVersion } from "#schema/Image.ts"

const AGENT_PREFIX = "choir-agent-"

/** The tag of an agent's image. */
export const agentTag = (agent_id: AgentId, image_version: ImageVersion): string =>
  `${AGENT_PREFIX}${agent_id}:${image_version}`

/** The tag of a base; its key covers all that the base is made of. */
export const baseTag = (key: string): string => `choir-base:${key}`

/** On everything in the engine that is Choir's. */
export const MANAGED_LABEL = "choir.managed"
/** The agent that an image is of; a base has none. */
export const AGENT_LABEL = "choir.agent"
/** The image's version, the same as in its tag. */
export const VERSION_LABEL = "choir.image_version"
/** The key of the base that an image was made on. */
export const BASE_LABEL = "choir.base"
/** The installation that made an image; others on the same engine leave it alone. */
export const HOME_LABEL = "choir.home"

/** Where Dockerfile.base leaves the programs that start an agent. */
export const IMAGE_PROGRAMS = {
  node: "/opt/choir/bin/node",
  program: "/opt/choir/choir-agent.js",
  rg: "/usr/bin/rg",
  tini: "/usr/bin/tini"
} as const
