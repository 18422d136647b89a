/**
 * Everything of a home and its database that grows, and its bound: the one table that the job, `choirctl prune`, docs/retention.md
 * and a test use. A new table or folder without a row here fails that test.
 */
import type { RetentionConfig } from "#schema/Config.ts"

/** The kinds of things that `choirctl prune` removes, in the words of its report. */
export const KINDS = [
  "sessions",
  "archives",
  "messages",
  "message ids",
  "replies",
  "reply ids",
  "signals",
  "approvals",
  "grants",
  "call results",
  "snapshots",
  "runs",
  "config versions",
  "audit",
  "logs",
  "clones",
  "images"
] as const
export type Kind = (typeof KINDS)[number]

/** The bound of a place: keys of `retention`, with the kinds that they remove; or, in words, why it does not grow. */
export type Bound =
  | { readonly kinds: ReadonlyArray<Kind>; readonly keys: ReadonlyArray<keyof RetentionConfig> }
  | { readonly bounded: string }

/** The tables of `choir_control`. */
export const TABLES: Readonly<Record<string, Bound>> = {
  agents: { bounded: "one row per agent" },
  sessions: { kinds: ["archives"], keys: ["archives_days", "archives_mb"] },
  session_events: { kinds: ["sessions"], keys: ["session_mb", "sessions_days"] },
  session_snapshots: { kinds: ["snapshots"], keys: ["snapshots_days"] },
  pending_approvals: { kinds: ["approvals"], keys: ["approvals_days"] },
  grants: { kinds: ["grants"], keys: ["approvals_days"] },
  inbox: { kinds: ["messages", "message ids"], keys: ["messages_days"] },
  outbox: { kinds: ["replies", "reply ids"], keys: ["messages_days"] },
  signals: { kinds: ["signals"], keys: ["messages_days"] },
  call_results: { kinds: ["call results"], keys: ["call_results_days"] },
  config_versions: { kinds: ["config versions"], keys: ["config_versions"] },
  audit: { kinds: ["audit"], keys: ["audit_days"] },
  skill_runs: { kinds: ["runs"], keys: ["runs_days"] },
  job_runs: { kinds: ["runs"], keys: ["runs_days"] },
  schedule_slots: { kinds: ["runs"], keys: ["runs_days"] },
  chat_settings: { bounded: "one row per DM" },
  workspace_labels: { bounded: "a row for each path of a workspace that holds text from outside" },
  leases: { bounded: "a row for each resource in use" },
  deleted_sessions: { bounded: "about 200 bytes for each deleted session, for good: the proof that there was one" },
  memory_jobs: { bounded: "a row for each session whose memory is being made" },
  embedding_costs: { bounded: "a row for each agent, day and model with embeddings: some 100 bytes a day" },
  embedding_serving: { bounded: "one row per agent" },
  forgets: { bounded: "a row for each order to forget that is not carried out yet" },
  schema_migrations: { bounded: "one row per migration" }
}

/** The tables of each agent's own schema, which has its memory. */
export const AGENT_TABLES: Readonly<Record<string, Bound>> = {
  memory_documents: {
    bounded:
      "4,000 chunks for each of the newest memory.mid_term_sessions sessions, 100,000 of older ones, and a summary for each session that is not deleted"
  },
  memory_embeddings: { bounded: "a vector for each chunk and model that searches use" },
  knowledge_documents: { bounded: "10,000 facts" },
  knowledge_embeddings: { bounded: "a vector for each fact and model that searches use" }
}

/** The folders of a home, by their paths. A folder that is not listed belongs to the one above it. */
export const FOLDERS: Readonly<Record<string, Bound>> = {
  archive: { kinds: ["archives"], keys: ["archives_days", "archives_mb"] },
  data: { bounded: "the embedded database: its tables, above" },
  images: { kinds: ["images"], keys: ["unused_days"] },
  "images/node": { bounded: "one copy of Node" },
  logs: { kinds: ["logs"], keys: ["logs_days", "logs_mb"] },
  "logs/archive": { kinds: ["logs"], keys: ["logs_days", "logs_mb"] },
  outgoing: { bounded: "copies of files until their message is delivered or given up, at most 2 GiB" },
  repos: { bounded: "a clone for the global repository" },
  "repos/agents": { kinds: ["clones"], keys: ["unused_days"] },
  "repos/global": { bounded: "one clone" },
  "repos/work": { bounded: "emptied at each start of choird and after each proposal" },
  socks: { bounded: "a socket for choird" },
  "socks/agents": { bounded: "a socket for each running agent" },
  sources: { bounded: "the operator's own repositories: choird only reads them" },
  trials: { bounded: "a workspace for each trial that runs; what a killed choird left goes before the next trial" },
  workspaces: { bounded: "the agents' files: counted against workspace_mb and reported, never removed" }
}
