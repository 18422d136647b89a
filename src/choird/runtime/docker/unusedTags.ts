/** Which of an installation's images are kept no longer, once an agent's image was built. Pure. */
import type { ImageSource } from "#src/choird/runtime/ContainerRuntime.ts"
import * as names from "./imageNames.ts"

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

const baseOf = ({ labels }: TaggedImage): string | undefined => labels[names.BASE_LABEL]

/**
 * Versions of this agent that its folder keeps no longer, and bases beyond the newest IMAGES_KEPT which neither this build (`key`) nor an
 * image that stays was made on.
 */
export const unusedTags = (
  images: ReadonlyArray<TaggedImage>,
  { agent_id, image_version, keep = [] }: Pick<ImageSource, "agent_id" | "image_version" | "keep">,
  key: string
): ReadonlyArray<string> => {
  const kept = new Set([image_version, ...keep].map((version) => names.agentTag(agent_id, version)))
  const agents = images.filter(({ labels }) => labels[names.AGENT_LABEL] !== undefined)
  const old = agents.filter(({ labels, tag }) => labels[names.AGENT_LABEL] === agent_id && !kept.has(tag))
  const used = new Set([key, ...agents.filter((image) => !old.includes(image)).map(baseOf)])
  const bases = images
    .filter((image) => !agents.includes(image))
    .toSorted((one, other) => other.created - one.created)
    .slice(IMAGES_KEPT)
    .filter((image) => !used.has(baseOf(image) ?? ""))
  return [...old, ...bases].map(({ tag }) => tag)
}
