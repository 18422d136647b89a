/**
 * Everything of a home and its database that grows, and its bound: the one table that the job, `choirctl prune`, docs/retention.md
 * and a test use. A new table or folder without a row here fails that test.
 */
import type { Config } from "#schema/Config.ts"
import type { RetentionConfig } from "#schema/Retention.ts"

/** The kinds of things that `choirctl prune` removes, in the words of its report. */
export const KINDS = [
  "sessions",
  "archives",
  "messages",
  "message ids",
  "replies",
  "reply ids",
  "unread",
  "signals",
  "approvals",
  "grants",
  "call results",
  "snapshots",
  "runs",
  "plans",
  "embedding costs",
  "deleted sessions",
  "agents",
  "config versions",
  "audit",
  "logs",
  "clones",
  "images"
] as const
export type Kind = (typeof KINDS)[number]

/** The rule that removes what is old in a place: the kinds that it removes, and the keys of `retention` or the constants that say when. */
interface Ruled {
  readonly kinds: ReadonlyArray<Kind>
  readonly keys: ReadonlyArray<keyof RetentionConfig>
  readonly limits?: ReadonlyArray<string>
}

/** The bound of a table: a rule; constants of the code that limit its rows; or tables of config.json, for each entry of which it has a row at most. */
export type TableBound =
  | Ruled
  | { readonly limits: ReadonlyArray<string>; readonly bounded: string }
  | { readonly entries: ReadonlyArray<keyof Config>; readonly bounded: string }

/** The bound of a folder: a rule; or, in words, why it does not grow. */
export type FolderBound = Ruled | { readonly bounded: string }

const ARCHIVES = { kinds: ["archives"], keys: ["archives_days", "archives_mb"] } as const

/** The tables of `choir_control`. */
export const TABLES: Readonly<Record<string, TableBound>> = {
  agents: { kinds: ["agents"], keys: ["archives_days", "archives_mb"] },
  sessions: ARCHIVES,
  session_events: { kinds: ["sessions"], keys: ["session_mb", "sessions_days"] },
  session_snapshots: { kinds: ["snapshots"], keys: ["snapshots_days"] },
  pending_approvals: { kinds: ["approvals"], keys: ["approvals_days"] },
  grants: { kinds: ["grants"], keys: ["approvals_days"] },
  inbox: { kinds: ["messages", "message ids"], keys: ["messages_days"] },
  outbox: { kinds: ["replies", "reply ids", "unread"], keys: ["messages_days", "unread_days"] },
  signals: { kinds: ["signals"], keys: ["messages_days"] },
  call_results: { kinds: ["call results"], keys: ["call_results_days"] },
  config_versions: { kinds: ["config versions"], keys: ["config_versions"] },
  audit: { kinds: ["audit"], keys: ["audit_days"], limits: ["AUDIT_ROWS_MAX", "AUDIT_AGENT_ROWS_MAX"] },
  skill_runs: { kinds: ["runs"], keys: ["runs_days"] },
  job_runs: { kinds: ["runs"], keys: ["runs_days"] },
  schedule_slots: { kinds: ["runs"], keys: ["runs_days"] },
  plans: { kinds: ["plans"], keys: ["runs_days"], limits: ["PLANS_OPEN_MAX", "PLANS_MADE_A_DAY_MAX"] },
  plan_slots: { kinds: ["plans"], keys: ["runs_days"] },
  agent_numbers: { limits: ["AGENT_NUMBERS_MAX"], bounded: "one row per agent that ever ran, which keeps its uid" },
  chat_settings: { entries: ["dms"], bounded: "one row per DM" },
  workspace_labels: {
    entries: ["workspaces"],
    bounded: "a row for each path of a workspace that holds text from outside"
  },
  leases: {
    entries: ["workspaces", "git_identities", "notion_integrations", "email_accounts", "dms", "agents"],
    bounded: "a row for each resource in use"
  },
  deleted_sessions: { kinds: ["deleted sessions"], keys: [], limits: ["DELETED_SESSIONS_MAX"] },
  // A row goes at the latest with its session.
  memory_jobs: ARCHIVES,
  embedding_costs: { kinds: ["embedding costs"], keys: ["runs_days"] },
  embedding_serving: { entries: ["agents"], bounded: "one row per agent" },
  forgets: {
    limits: ["OPERATOR_CONNECTIONS_MAX"],
    bounded: "a row for each order to forget that is not carried out yet"
  },
  schema_migrations: { limits: ["MIGRATIONS"], bounded: "one row per migration" }
}

/** The tables of each agent's own schema, which has its memory. */
export const AGENT_TABLES: Readonly<Record<string, TableBound>> = {
  memory_documents: {
    limits: ["SESSION_CHUNKS_MAX", "DETAIL_CHUNKS_MAX"],
    bounded:
      "4,000 chunks for each of the newest memory.mid_term_sessions sessions, 100,000 of older ones, and a summary for each session that is not deleted"
  },
  memory_embeddings: {
    limits: ["SESSION_CHUNKS_MAX", "DETAIL_CHUNKS_MAX"],
    bounded: "a vector for each chunk and model that searches use"
  },
  knowledge_documents: { limits: ["FACTS_MAX"], bounded: "10,000 facts" },
  knowledge_embeddings: { limits: ["FACTS_MAX"], bounded: "a vector for each fact and model that searches use" }
}

/** The folders of a home, by their paths. A folder that is not listed belongs to the one above it. */
export const FOLDERS: Readonly<Record<string, FolderBound>> = {
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
  sources: { bounded: "the operator's own repositories: choird writes only what the operator approved or added" },
  trials: { bounded: "a workspace for each trial that runs; what a killed choird left goes before the next trial" },
  workspaces: { bounded: "the agents' files: counted against workspace_mb and reported, never removed" }
}
