/** The label of a workspace as it is stored and sent, and as the fold knows it. */
import type { SessionId } from "#schema/Ids.ts"
import type { Source } from "#schema/Source.ts"
import type { WorkspaceLabel } from "#schema/WorkspaceLabel.ts"
import { NO_FILES, sourcesOfAll } from "./fileLabels.ts"
import { withSources } from "./sources.ts"
import type { SessionState } from "./State.ts"
import { copiedSources, isPending, lanesWriting, withWritten, type WorkspaceOrigin } from "./workspaceOrigin.ts"

/** Sessions whose calls under way are kept apart; of more, which crashed and were never continued, all files count as written. */
const PENDING_MAX = 8

/** A stored label in the words of the fold. What calls of another session than this one may be writing counts as written. */
export const originOfLabel = (
  { only_in, pending = [], received = false, written_from }: WorkspaceLabel,
  session_id?: SessionId
): WorkspaceOrigin => {
  const isWhole = written_from !== undefined && only_in === undefined
  const known: WorkspaceOrigin = {
    workspace_received: received,
    workspace_tainted: isWhole,
    workspace_sources: isWhole ? written_from : [],
    workspace_files: isWhole ? NO_FILES : new Map((only_in ?? []).map(({ path, sources }) => [path, sources]))
  }
  return pending
    .filter((each) => each.session_id !== session_id)
    .reduce((origin, { sources }) => withWritten(origin, undefined, sources), known)
}

/** A label without calls under way, as an agent of this session gets it, which knows of its own. */
export const settledLabel = (label: WorkspaceLabel, session_id?: SessionId): WorkspaceLabel =>
  label.pending === undefined ? label : labelOfOrigin(originOfLabel(label, session_id))

/** A stored label after more events of a session: what it knows is added, and what its calls may be writing now replaces what they may have been writing. */
export const labelAfter = (label: WorkspaceLabel, session_id: SessionId, state: SessionState): WorkspaceLabel => {
  const { pending = [], ...settled } = label
  const next = labelOfOrigin(joinedOrigins(originOfLabel(settled), state))
  const lanes = lanesWriting(state).filter(({ calls, tainted }) => tainted && calls.some(isPending))
  const others = pending.filter((each) => each.session_id !== session_id)
  const copied = copiedSources(state, originOfLabel(next))
  const sources = lanes.reduce<ReadonlyArray<Source>>((all, lane) => withSources(all, lane.sources), copied)
  const now = lanes.length === 0 && copied.length === 0 ? others : [...others, { session_id, sources }]
  if (now.length === 0) return next
  if (now.length > PENDING_MAX) return labelOfOrigin(originOfLabel({ ...next, pending: now }))
  const isWhole = next.written_from !== undefined && next.only_in === undefined
  return {
    ...next,
    // An earlier Choir looks at these alone.
    written_from: now.reduce<ReadonlyArray<Source>>(
      (all, each) => withSources(all, each.sources),
      next.written_from ?? []
    ),
    ...(isWhole ? {} : { only_in: next.only_in ?? [] }),
    pending: now
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
