/** The label of a workspace as it is stored and sent, and as the fold knows it. */
import type { WorkspaceLabel } from "#schema/WorkspaceLabel.ts"
import { NO_FILES, sourcesOfAll } from "./fileLabels.ts"
import { withWritten, type WorkspaceOrigin } from "./workspaceOrigin.ts"

/** A stored label in the words of the fold. */
export const originOfLabel = ({ only_in, received = false, written_from }: WorkspaceLabel): WorkspaceOrigin => {
  const isWhole = written_from !== undefined && only_in === undefined
  return {
    workspace_received: received,
    workspace_tainted: isWhole,
    workspace_sources: isWhole ? written_from : [],
    workspace_files: isWhole ? NO_FILES : new Map((only_in ?? []).map(({ path, sources }) => [path, sources]))
  }
}

/** The label that says this. */
export const labelOfOrigin = (origin: WorkspaceOrigin): WorkspaceLabel => {
  const { workspace_files, workspace_received, workspace_sources, workspace_tainted } = origin
  const only_in = [...workspace_files].map(([path, sources]) => ({ path, sources }))
  return {
    ...(workspace_tainted ? { written_from: workspace_sources } : {}),
    ...(only_in.length > 0 ? { written_from: sourcesOfAll(workspace_files), only_in } : {}),
    ...(workspace_received ? { received: true } : {})
  }
}

/** Both: neither takes anything from the other. */
export const joinedOrigins = (one: WorkspaceOrigin, other: WorkspaceOrigin): WorkspaceOrigin => {
  const received = { workspace_received: one.workspace_received || other.workspace_received }
  const isWhole = one.workspace_tainted || other.workspace_tainted
  let joined: WorkspaceOrigin = { ...one, ...received }
  if (isWhole) joined = withWritten(joined, undefined, other.workspace_sources)
  for (const [path, sources] of other.workspace_files)
    joined = withWritten(joined, joined.workspace_tainted ? undefined : [path], sources)
  return joined
}
