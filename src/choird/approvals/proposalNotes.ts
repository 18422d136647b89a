/**
 * The notes about a proposal to the model and the person, in choird's own words: titles and reasons hold only characters that choird
 * allows, so that they carry no stranger's text.
 */
import type { Resolution } from "#schema/Approval.ts"
import type { ApprovalRow } from "./approvalRows.ts"
import { visibleLine } from "./approvalText.ts"
import { Option } from "effect"
import type { Origin } from "#src/choird/images/ImageOrigin.ts"
import { contentsOf } from "#src/choird/repos/Tree.ts"
import type { Snapshot } from "#src/choird/repos/Repos.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** Paths that a proposal's text names of those that the agent's image lacks. */
const PENDING_PATHS_SHOWN_MAX = 10

/** The paths that say most about a change come first. */
const weight = (path: string) => (path === "Dockerfile" ? 0 : path.startsWith("identity/") ? 1 : 2)

/** Characters of one path, so that long ones leave room for the rest. */
const SHOWN_CHARS_MAX = 100

/** A sentence for the person about other files that the next build includes; none if the image is up to date. */
export const pendingBuildText = (
  built: Option.Option<Origin>,
  { commit, files }: Pick<Snapshot, "commit" | "files">
): ReadonlyArray<string> => {
  const image = Option.getOrUndefined(built)?.agent
  if (image === undefined || image.commit === commit) return []
  // An image of an earlier Choir does not record what it was built from.
  if (image.contents === undefined)
    return [
      `The agent's image was built from commit ${image.commit}; everything added to the repository since is built along with this.`
    ]
  const [old, now] = [image.contents, contentsOf(files)]
  const paths = [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((path) => old[path] !== now[path])
    .toSorted((one, other) => weight(one) - weight(other) || (one < other ? -1 : 1))
  if (paths.length === 0) return []
  const more = paths.length - PENDING_PATHS_SHOWN_MAX
  const shown = paths
    .slice(0, PENDING_PATHS_SHOWN_MAX)
    .map((path) => firstPart(visibleLine(path), SHOWN_CHARS_MAX))
    .join(", ")
  return [
    `Built along with this, since the agent's image was built from commit ${image.commit} and differs in: ${shown}${more > 0 ? `, and ${more} more` : ""}`
  ]
}

/** Characters of the reason of a failure that are kept. */
const PROPOSAL_OUTCOME_CHARS_MAX = 2000

type Told = Pick<ApprovalRow, "approval_id" | "summary">

const DECIDED: Readonly<Record<Resolution, string>> = {
  approved: "was approved by a person and is being carried out now. You will get a note with the result",
  rejected: "was rejected by a person; nothing was changed. Do not propose it again unless the user asks",
  expired: "was not decided in time; nothing was changed. Propose it again only when the user asks"
}

/** The note to the model about a decision. */
export const decidedNote = (
  { approval_id, reason = null, summary }: Told & Partial<Pick<ApprovalRow, "reason">>,
  resolution: Resolution
): string => {
  const said = resolution === "rejected" && reason !== null ? ` The person's reason: ${JSON.stringify(reason)}` : ""
  return `Your proposal ${approval_id} (${summary}) ${DECIDED[resolution]}.${said}`
}

/** The message to the person, at the DM where it was asked. @param by the decider, as in ` with choirctl`. */
export const decidedText = (
  { approval_id, summary }: Told,
  resolution: "approved" | "rejected",
  is_proposal: boolean,
  by = ""
): string =>
  resolution === "approved"
    ? `Approved${by}: ${summary} (approval ${approval_id}).${is_proposal ? " Executing." : ""}`
    : `Rejected${by}: ${summary} (approval ${approval_id}).`

/** The end of an execution. `kind` is for programs and models, `reason` for people. */
export type Ending =
  | { readonly status: "done"; readonly outcome: string }
  | { readonly status: "failed"; readonly kind: string; readonly reason: string }

/** The outcome as `approval show` prints it. */
export const outcomeText = (ending: Ending): string =>
  (ending.status === "done" ? ending.outcome : `${ending.kind}: ${visibleLine(ending.reason)}`).slice(
    0,
    PROPOSAL_OUTCOME_CHARS_MAX
  )

/** The note to the model. It omits the reason of a failure, which may quote a repository or a program. */
export const endedNote = ({ approval_id, summary }: Told, ending: Ending): string =>
  ending.status === "done"
    ? `Your proposal ${approval_id} (${summary}) is done: ${ending.outcome}.`
    : `Your proposal ${approval_id} (${summary}) was approved and could not be carried out (${ending.kind}); you run as before. The operator sees why with choirctl approval show ${approval_id}.`

export const endedText = ({ approval_id, summary }: Told, ending: Ending): string =>
  ending.status === "done"
    ? `Done: ${summary} (approval ${approval_id}): ${ending.outcome}.`
    : `Failed: ${summary} (approval ${approval_id}): ${outcomeText(ending)}. The agent runs as before.`
