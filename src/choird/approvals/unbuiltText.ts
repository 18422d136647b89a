/**
 * What an image of a proposed change would get beside the change. A person is shown the change of the repository's newest commit, which
 * may hold more than the agent's image does: an agent's git identity may be allowed to push there without being asked. Pure.
 */
import { Option } from "effect"
import type { Origin } from "#src/choird/images/ImageOrigin.ts"
import { visibleLine } from "./approvalText.ts"
import { contentsOf } from "#src/choird/repos/Contents.ts"
import type { Snapshot } from "#src/choird/repos/Repos.ts"

/** Paths that a proposal's text names of what the repository has and the agent's image has not. */
const UNBUILT_PATHS_SHOWN_MAX = 10

/** What tells most about a change comes first. */
const weight = (path: string) => (path === "Dockerfile" ? 0 : path.startsWith("identity/") ? 1 : 2)

/** Of one path, so that long ones leave room for what follows. */
const SHOWN_CHARS_MAX = 100

/** A sentence for the person, or none where the image has everything that the repository would give to one. */
export const unbuiltText = (
  built: Option.Option<Origin>,
  { commit, files }: Pick<Snapshot, "commit" | "files">
): ReadonlyArray<string> => {
  const image = Option.getOrUndefined(built)?.agent
  if (image === undefined || image.commit === commit) return []
  // An image of an earlier Choir does not say what it was made of.
  if (image.contents === undefined)
    return [
      `The agent's image is of commit ${image.commit}, and what came into the repository since is built along with it.`
    ]
  const [old, now] = [image.contents, contentsOf(files)]
  const paths = [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((path) => old[path] !== now[path])
    .toSorted((one, other) => weight(one) - weight(other) || (one < other ? -1 : 1))
  if (paths.length === 0) return []
  const more = paths.length - UNBUILT_PATHS_SHOWN_MAX
  const shown = paths
    .slice(0, UNBUILT_PATHS_SHOWN_MAX)
    .map((path) => visibleLine(path).slice(0, SHOWN_CHARS_MAX))
    .join(", ")
  return [
    `Built along with it, since the agent's image is of commit ${image.commit} and has them otherwise: ${shown}${more > 0 ? `, and ${more} more` : ""}`
  ]
}
