/** What goes and what stays: pruning at once, and sessions that are archived, deleted or named in short. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { AgentId, Rev, SessionId } from "./Ids.ts"
import { Progress } from "./Progress.ts"

/** How much of one kind went, or would go. `bytes` is of files. */
export const Pruned = Schema.Struct({
  kind: Schema.String,
  removed: Schema.Natural,
  bytes: Schema.optionalKey(Schema.Natural)
})
export type Pruned = typeof Pruned.Type

export const PruneReport = Schema.Struct({
  dry_run: Schema.Boolean,
  /** Every kind, in the order of docs/retention.md. */
  kinds: Schema.Array(Pruned),
  /** Of the home's file system, after it; null where that is not known. */
  disk_free_bytes: Schema.NullOr(Schema.Natural)
})
export type PruneReport = typeof PruneReport.Type

export const PruneProgress = Progress(PruneReport)
export type PruneProgress = typeof PruneProgress.Type

/** The free space of the home's file system, and what choird does about it. */
export const DiskStatus = Schema.Struct({
  free_bytes: Schema.Natural,
  total_bytes: Schema.Natural,
  /** Below this, agents are paused. */
  limit_bytes: Schema.Natural,
  low: Schema.Boolean,
  paused: Schema.Array(AgentId)
})
export type DiskStatus = typeof DiskStatus.Type

export const ArchivedSession = Schema.Struct({
  session_id: SessionId,
  agent_id: AgentId,
  /** The newest revision, and the digest of the chain there. */
  last_rev: Rev,
  head: Schema.String,
  path: Schema.String,
  bytes: Schema.Natural
})
export type ArchivedSession = typeof ArchivedSession.Type

/** What is left of a session that was deleted. */
export const DeletedSession = Schema.Struct({
  session_id: SessionId,
  agent_id: AgentId,
  last_rev: Rev,
  head: Schema.String,
  deleted_at: Schema.String
})
export type DeletedSession = typeof DeletedSession.Type

const session = { params: { id: SessionId }, error: ApiErrors } as const

export const RetentionApi = HttpApiGroup.make("retention").add(
  HttpApiEndpoint.post("prune", "/prune", {
    payload: Schema.Struct({ dry_run: Schema.Boolean }),
    success: HttpApiSchema.StreamNdjson({ schema: PruneProgress }),
    error: ApiErrors
  }),
  /** The session of an id, of the beginning of one, or of an agent's name. */
  HttpApiEndpoint.get("find", "/session-names/:name", {
    params: { name: Schema.String },
    success: Schema.Struct({ session_id: SessionId }),
    error: ApiErrors
  }),
  HttpApiEndpoint.post("archive", "/sessions/:id/archive", { ...session, success: ArchivedSession }),
  HttpApiEndpoint.post("delete", "/sessions/:id/delete", { ...session, success: DeletedSession })
)
