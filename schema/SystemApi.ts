/** choird itself: its state, workspaces, database, audit rows, and what retention removes. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { AgentSummary, ModelSummary } from "./AgentSummary.ts"
import { ApiErrors } from "./ApiError.ts"
import { AgentId, ResourceName, Rev, SessionId } from "./Ids.ts"
import { Progress } from "./Progress.ts"
import { WorkspaceLabel } from "./WorkspaceLabel.ts"

export const WorkspaceSummary = Schema.Struct({
  name: ResourceName,
  path: Schema.String,
  leased_by: Schema.NullOr(AgentId),
  /** The room that it took on the disk when it was last counted, at least; absent before the first count. */
  used_bytes: Schema.optionalKey(Schema.Natural),
  /** `retention.workspace_mb`; null means no quota. */
  quota_bytes: Schema.optionalKey(Schema.NullOr(Schema.Natural)),
  /** The origin of its files; absent where nothing there is known to be from outside. */
  label: Schema.optionalKey(WorkspaceLabel)
})
export type WorkspaceSummary = typeof WorkspaceSummary.Type

/** The free space of the home's file system, and what choird does about it. */
export const DiskStatus = Schema.Struct({
  free_bytes: Schema.Natural,
  total_bytes: Schema.Natural,
  /** Below this, agents are paused. */
  limit_bytes: Schema.Natural,
  /** The files that it can still have; absent where the file system has no limit of them. */
  files: Schema.optionalKey(Schema.Struct({ free: Schema.Natural, total: Schema.Natural, limit: Schema.Natural })),
  low: Schema.Boolean,
  /** The resources of which too little is free. */
  lacks: Schema.Array(Schema.Literals(["bytes", "files"])),
  paused: Schema.Array(AgentId)
})
export type DiskStatus = typeof DiskStatus.Type

/** How agents' memory is searched. */
export const MemoryStatus = Schema.Struct({
  /** The model that texts get vectors of; null where searches go by words alone. */
  model: Schema.NullOr(Schema.String),
  /** Texts that wait for a vector. Until they have one they are found by their words. */
  waiting: Schema.Natural,
  /** Why no vectors are made at the moment, and for how long that has been so: searches go by words alone. */
  problem: Schema.optionalKey(Schema.String),
  failing_ms: Schema.optionalKey(Schema.Natural),
  /** How far the vectors of a new model are, until which those of the earlier one serve. */
  reembedding: Schema.optionalKey(Schema.Struct({ done: Schema.Natural, total: Schema.Natural }))
})
export type MemoryStatus = typeof MemoryStatus.Type

export const SystemStatus = Schema.Struct({
  choird: Schema.Struct({
    version: Schema.String,
    uptime_ms: Schema.Natural,
    config_version: Schema.Natural,
    pid: Schema.Natural
  }),
  postgres: Schema.Struct({
    kind: Schema.Literals(["embedded", "postgres"]),
    version: Schema.String,
    pgvector: Schema.String,
    ok: Schema.Boolean
  }),
  runtime: Schema.Struct({
    type: Schema.Literals(["docker", "sandbox", "process"]),
    isolation: Schema.String,
    /** The way to the network for a command of a lane that has read text from outside; `enforced` where nothing but a person lets it out. */
    network: Schema.optionalKey(Schema.Struct({ enforced: Schema.Boolean, detail: Schema.String })),
    /** Whether the kernel keeps the calls of the running agents apart from each other: the weakest of what they say. */
    calls: Schema.optionalKey(
      Schema.Struct({
        enforced: Schema.Boolean,
        /** Not enforced in every way that `detail` names. */
        partly: Schema.optionalKey(Schema.Literal(true)),
        detail: Schema.String
      })
    ),
    /** The browser of agents, and whether Chromium's own sandbox is around it. */
    browser: Schema.optionalKey(Schema.String),
    limits: Schema.Array(Schema.String),
    warnings: Schema.Array(Schema.String)
  }),
  gateways: Schema.Array(
    Schema.Struct({ name: ResourceName, type: Schema.String, ok: Schema.Boolean, detail: Schema.String })
  ),
  agents: Schema.Array(AgentSummary),
  /** The page for Prometheus and what holds its bearer token; absent where config.json has none. */
  metrics: Schema.optionalKey(
    Schema.Struct({
      url: Schema.String,
      token: Schema.Union([Schema.Struct({ file: Schema.String }), Schema.Struct({ secret: Schema.String })])
    })
  ),
  /** Of the home's file system; absent where it does not say. */
  disk: Schema.optionalKey(DiskStatus),
  /** Absent while the database does not answer. */
  memory: Schema.optionalKey(MemoryStatus),
  /** How many approvals wait for a person; null while the database does not answer. */
  approvals: Schema.Struct({ pending: Schema.NullOr(Schema.Natural) }),
  warnings: Schema.Array(Schema.String)
})
export type SystemStatus = typeof SystemStatus.Type

/** A part of the outside that choird tried, for `choirctl doctor`; `skip` where there is nothing to try. */
export const Tried = Schema.Struct({
  name: Schema.String,
  status: Schema.Literals(["ok", "warn", "fail", "skip"]),
  detail: Schema.String,
  fix: Schema.optionalKey(Schema.String)
})
export type Tried = typeof Tried.Type

const error = ApiErrors

export const SystemApi = HttpApiGroup.make("system").add(
  HttpApiEndpoint.get("status", "/status", { success: SystemStatus, error }),
  HttpApiEndpoint.get("config", "/config", { success: Schema.Json, error }),
  HttpApiEndpoint.get("workspaces", "/workspaces", { success: Schema.Array(WorkspaceSummary), error }),
  HttpApiEndpoint.get("models", "/models", { success: Schema.Array(ModelSummary), error }),
  /** Where the offline model answers that choird serves; the address has its key. Refused while config.json has none, or it does not run. */
  HttpApiEndpoint.get("offlineModel", "/offline-model", { success: Schema.Struct({ endpoint: Schema.String }), error }),
  /** Tries the web and the git identities, each by one small request. */
  HttpApiEndpoint.post("try", "/try", { success: Schema.Array(Tried), error }),
  HttpApiEndpoint.post("shutdown", "/shutdown", { success: Schema.Struct({ ok: Schema.Literal(true) }), error })
)

export const DatabaseApi = HttpApiGroup.make("database").add(
  /** The bytes of a backup file. A connection that is cut before the end of the body is a backup that failed. */
  HttpApiEndpoint.get("backup", "/database/backup", { success: HttpApiSchema.StreamUint8Array(), error: ApiErrors })
)

/** A row of `choirctl audit`: who asked for what, and the outcome. Names and reasons, never a secret's value. */
export const AuditRow = Schema.Struct({
  audit_id: Schema.String,
  /** When the row was written; `since` is when the first of its `count` equal refusals came. */
  at: Schema.String,
  since: Schema.String,
  who: Schema.String,
  action: Schema.String,
  session_id: Schema.NullOr(Schema.String),
  agent_id: Schema.NullOr(Schema.String),
  count: Schema.Natural,
  detail: Schema.Json
})
export type AuditRow = typeof AuditRow.Type

export const AuditApi = HttpApiGroup.make("audit").add(
  HttpApiEndpoint.get("list", "/audit", {
    query: { last: Schema.optionalKey(Schema.FiniteFromString), agent_id: Schema.optionalKey(AgentId) },
    success: Schema.Array(AuditRow),
    error: ApiErrors
  })
)

/** A folder with nothing in it any more. */
export const WorkspaceReset = Schema.Struct({
  name: ResourceName,
  path: Schema.String,
  /** The agent that was stopped for it. */
  stopped: Schema.NullOr(AgentId)
})
export type WorkspaceReset = typeof WorkspaceReset.Type

/** A workspace whose files no longer count as text from outside. */
export const WorkspaceTrusted = Schema.Struct({
  name: ResourceName,
  path: Schema.String,
  /** The label that they had before. */
  label: WorkspaceLabel
})
export type WorkspaceTrusted = typeof WorkspaceTrusted.Type

export const WorkspaceApi = HttpApiGroup.make("workspaces").add(
  /** Refused while an agent works there. */
  HttpApiEndpoint.post("trust", "/workspaces/:name/trust", {
    params: { name: ResourceName },
    success: WorkspaceTrusted,
    error: ApiErrors
  }),
  /** Stops the agent that holds the workspace first. */
  HttpApiEndpoint.post("reset", "/workspaces/:name/reset", {
    params: { name: ResourceName },
    success: WorkspaceReset,
    error: ApiErrors
  })
)

/** How much of one kind went, or would go. `bytes` is of files. */
export const Pruned = Schema.Struct({
  kind: Schema.String,
  removed: Schema.Natural,
  bytes: Schema.optionalKey(Schema.Natural),
  /** Why it could not be done, or not for all of it. */
  problem: Schema.optionalKey(Schema.String)
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

/** The remains of a deleted session. */
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
