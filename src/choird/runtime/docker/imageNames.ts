/** Names and labels of images in the engine, the places of an agent's programs in a base, and which tags are unused. */
import type { AgentId } from "#schema/Ids.ts"
import type { ImageVersion } from "#schema/Image.ts"
import type { ImageSource } from "#src/choird/runtime/ContainerRuntime.ts"

const AGENT_PREFIX = "choir-agent-"

/** The tag of an agent's image. */
export const agentTag = (agent_id: AgentId, image_version: ImageVersion): string =>
  `${AGENT_PREFIX}${agent_id}:${image_version}`

/** The tag of a base; its key covers all that the base is made of. */
export const baseTag = (key: string): string => `choir-base:${key}`

/** The label of everything in the engine that is Choir's. */
export const MANAGED_LABEL = "choir.managed"
/** The agent of an image; a base has none. */
export const AGENT_LABEL = "choir.agent"
/** The image's version, the same as in its tag. */
export const VERSION_LABEL = "choir.image_version"
/** The key of the base that an image was made on. */
export const BASE_LABEL = "choir.base"
/** The installation that made an image; others on the same engine leave it alone. */
export const HOME_LABEL = "choir.home"

/** The places in which Dockerfile.base leaves the programs that start an agent. */
export const IMAGE_PROGRAMS = {
  node: "/opt/choir/bin/node",
  program: "/opt/choir/choir-agent.js",
  rg: "/usr/bin/rg",
  tini: "/usr/bin/tini"
} as const

/** Images of one agent that are kept, the newest first. */
export const IMAGES_KEPT = 3

/** A name of an image in the engine. */
export interface TaggedImage {
  /** The id of an agent's image whose tag a newer one took. */
  readonly tag: string
  /** Seconds since 1970. */
  readonly created: number
  readonly labels: Readonly<Record<string, string>>
}

const baseOf = ({ labels }: TaggedImage): string | undefined => labels[BASE_LABEL]

/**
 * Versions of this agent that its folder no longer keeps, and bases beyond the newest IMAGES_KEPT which neither this build (`key`) nor an
 * image that stays was made on.
 */
export const unusedTags = (
  images: ReadonlyArray<TaggedImage>,
  { agent_id, image_version, keep = [] }: Pick<ImageSource, "agent_id" | "image_version" | "keep">,
  key: string
): ReadonlyArray<string> => {
  const kept = new Set([image_version, ...keep].map((version) => agentTag(agent_id, version)))
  const agents = images.filter(({ labels }) => labels[AGENT_LABEL] !== undefined)
  const old = agents.filter(({ labels, tag }) => labels[AGENT_LABEL] === agent_id && !kept.has(tag))
  const used = new Set([key, ...agents.filter((image) => !old.includes(image)).map(baseOf)])
  const bases = images
    .filter((image) => !agents.includes(image))
    .toSorted((one, other) => other.created - one.created)
    .slice(IMAGES_KEPT)
    .filter((image) => !used.has(baseOf(image) ?? ""))
  return [...old, ...bases].map(({ tag }) => tag)
}
