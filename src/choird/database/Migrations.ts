import { Effect, Schema } from "effect"
import { Migrator, SqlClient, SqlError } from "effect/sql"
import { controlPlane } from "#src/choird/database/migrations/0001_control_plane.ts"
import { signalRequests } from "#src/choird/database/migrations/0002_signal_requests.ts"
import { sessionSummaries } from "#src/choird/database/migrations/0003_session_summaries.ts"
import { approvals } from "#src/choird/database/migrations/0004_approvals.ts"
import { configHistory } from "#src/choird/database/migrations/0005_config_history.ts"
import { auditCounts } from "#src/choird/database/migrations/0006_audit_counts.ts"
import { proposals } from "#src/choird/database/migrations/0007_proposals.ts"
import { decisionRequests } from "#src/choird/database/migrations/0008_decision_requests.ts"
import { eventsV2 } from "#src/choird/database/migrations/0009_events_v2.ts"
import { retention } from "#src/choird/database/migrations/0011_retention.ts"
import { unusedColumns } from "#src/choird/database/migrations/0012_unused_columns.ts"
import { undeliverable } from "#src/choird/database/migrations/0014_undeliverable.ts"
import { forwardedMessages } from "#src/choird/database/migrations/0016_forwarded_messages.ts"
import { logBytes } from "#src/choird/database/migrations/0017_log_bytes.ts"
import { memory } from "#src/choird/database/migrations/0018_memory.ts"
import { embeddingServing } from "#src/choird/database/migrations/0019_embedding_serving.ts"
import { sessionMemory } from "#src/choird/database/migrations/0020_session_memory.ts"
import { forgets } from "#src/choird/database/migrations/0021_forgets.ts"
import { forgottenCounts } from "#src/choird/database/migrations/0022_forgotten_counts.ts"
import { runs } from "#src/choird/database/migrations/0023_runs.ts"
import { rehearsals } from "#src/choird/database/migrations/0024_rehearsals.ts"
import { outboxForms } from "#src/choird/database/migrations/0026_outbox_forms.ts"
import { grants } from "#src/choird/database/migrations/0027_grants.ts"
import { jobAudit } from "#src/choird/database/migrations/0028_job_audit.ts"
import { telegram } from "#src/choird/database/migrations/0029_telegram.ts"
import { runContracts } from "#src/choird/database/migrations/0030_run_contracts.ts"
import { joinedMessages } from "#src/choird/database/migrations/0031_joined_messages.ts"
import { editedMessages } from "#src/choird/database/migrations/0032_edited_messages.ts"
import { movedChats } from "#src/choird/database/migrations/0033_moved_chats.ts"
import { chatVoice } from "#src/choird/database/migrations/0034_chat_voice.ts"
import { jobTopics } from "#src/choird/database/migrations/0035_job_topics.ts"
import { reactions } from "#src/choird/database/migrations/0036_reactions.ts"
import { workspaceLabels } from "#src/choird/database/migrations/0037_workspace_labels.ts"
import { plans } from "#src/choird/database/migrations/0048_plans.ts"
import { scheduleSlots } from "#src/choird/database/migrations/0038_schedule_slots.ts"
import { shownReactions } from "#src/choird/database/migrations/0039_shown_reactions.ts"
import { askingJobs } from "#src/choird/database/migrations/0040_asking_jobs.ts"
import { undeliveredOfAgent } from "#src/choird/database/migrations/0041_undelivered_of_agent.ts"
import { sentChats } from "#src/choird/database/migrations/0042_sent_chats.ts"
import { agentNumbers } from "#src/choird/database/migrations/0043_agent_numbers.ts"
import { documentWords } from "#src/choird/database/migrations/0044_document_words.ts"
import { memoryUntil } from "#src/choird/database/migrations/0045_memory_until.ts"
import { carriedMessages } from "#src/choird/database/migrations/0046_carried_messages.ts"
import { labelledMessages } from "#src/choird/database/migrations/0047_labelled_messages.ts"
import { sqlProblem } from "./sqlState.ts"

/** How long all pending migrations may take, waiting for another migrator included (R67). */
export const MIGRATION_MS_MAX = 60_000

/** Every migration, by `<number>_<name>`. A released one is never changed: a later one corrects it. */
export const MIGRATIONS = {
  "0001_control_plane": controlPlane,
  "0002_signal_requests": signalRequests,
  "0003_session_summaries": sessionSummaries,
  "0004_approvals": approvals,
  "0005_config_history": configHistory,
  "0006_audit_counts": auditCounts,
  "0007_proposals": proposals,
  "0008_decision_requests": decisionRequests,
  "0009_events_v2": eventsV2,
  "0011_retention": retention,
  "0012_unused_columns": unusedColumns,
  "0014_undeliverable": undeliverable,
  "0016_forwarded_messages": forwardedMessages,
  "0017_log_bytes": logBytes,
  "0018_memory": memory,
  "0019_embedding_serving": embeddingServing,
  "0020_session_memory": sessionMemory,
  "0021_forgets": forgets,
  "0022_forgotten_counts": forgottenCounts,
  "0023_runs": runs,
  "0024_rehearsals": rehearsals,
  "0026_outbox_forms": outboxForms,
  "0027_grants": grants,
  "0028_job_audit": jobAudit,
  "0029_telegram": telegram,
  "0030_run_contracts": runContracts,
  "0031_joined_messages": joinedMessages,
  "0032_edited_messages": editedMessages,
  "0033_moved_chats": movedChats,
  "0034_chat_voice": chatVoice,
  "0035_job_topics": jobTopics,
  "0036_reactions": reactions,
  "0037_workspace_labels": workspaceLabels,
  "0038_schedule_slots": scheduleSlots,
  "0039_shown_reactions": shownReactions,
  "0040_asking_jobs": askingJobs,
  "0041_undelivered_of_agent": undeliveredOfAgent,
  "0042_sent_chats": sentChats,
  "0043_agent_numbers": agentNumbers,
  "0044_document_words": documentWords,
  "0045_memory_until": memoryUntil,
  "0046_carried_messages": carriedMessages,
  "0047_labelled_messages": labelledMessages,
  "0048_plans": plans
}

/** Migrations, each of which runs in the transaction that also records it. */
export type Migrations = Record<string, Effect.Effect<void, unknown, SqlClient.SqlClient>>

const TABLE = "choir_control.schema_migrations"
/** "choir" in ASCII, the advisory lock that only one migrator holds. */
const LOCK = 0x63686f6972

/** A later Choir has changed this database; an older one would misread it (R68). */
export class SchemaTooNew extends Schema.TaggedError<SchemaTooNew>()("SchemaTooNew", {
  found: Schema.Finite,
  known: Schema.Finite
}) {
  override get message() {
    return `the database has migration ${this.found}, and this choird knows only ${this.known}: run the newer choird, or restore a backup from before the upgrade`
  }
}

/** A migration failed. The database is as it was before. */
export class MigrationFailed extends Schema.TaggedError<MigrationFailed>()("MigrationFailed", {
  problem: Schema.String,
  cause: Schema.Defect()
}) {
  override get message() {
    return `the database could not be migrated and is unchanged: ${this.problem}. Fix the cause and start choird again`
  }
}

const numberOf = (key: string) => Number.parseInt(key, 10)

const problemOf = (error: Migrator.MigrationError | SqlError.SqlError): string => {
  if (error._tag === "SqlError") return sqlProblem(error)
  const { cause, message } = error
  return SqlError.isSqlError(cause) ? `${message} (${sqlProblem(cause)})` : message
}

/** The newest migration that this choird knows. */
export const NEWEST = Math.max(...Object.keys(MIGRATIONS).map(numberOf))

/** The migrations up to a number, for a backup that was made when there were no more. */
export const migrationsUntil = (last: number): Migrations =>
  Object.fromEntries(Object.entries(MIGRATIONS).filter(([key]) => numberOf(key) <= last))

/** The newest migration that a database has; 0 for one that has none. */
export const latestMigration = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const exists = yield* sql`SELECT 1 WHERE to_regclass(${TABLE}) IS NOT NULL`
  if (exists.length === 0) return 0
  const rows = yield* sql<{ latest: number | null }>`SELECT max(migration_id) AS latest FROM ${sql(TABLE)}`
  return rows[0]?.latest ?? 0
})

/**
 * Brings the database to the newest of `migrations`: forward only, one migrator at a time, all or nothing (R67). Returns the
 * numbers that were run.
 */
export const migrate = Effect.fn("Migrations.migrate")(function* (migrations: Migrations = MIGRATIONS) {
  const sql = yield* SqlClient.SqlClient
  const known = Math.max(0, ...Object.keys(migrations).map(numberOf))
  return yield* sql
    .withTransaction(
      Effect.gen(function* () {
        const limit = String(MIGRATION_MS_MAX)
        yield* sql`SELECT set_config(name, ${limit}, true) FROM unnest(ARRAY['statement_timeout', 'lock_timeout']) AS name`
        yield* sql`SELECT pg_advisory_xact_lock(${LOCK})`
        const found = yield* latestMigration()
        if (found > known) return yield* new SchemaTooNew({ found, known })
        yield* sql`CREATE SCHEMA IF NOT EXISTS choir_control`
        const done = yield* Migrator.make({})({ loader: Migrator.fromRecord(migrations), table: TABLE })
        return done.map(([number]) => number)
      })
    )
    .pipe(
      Effect.catchTag(
        ["MigrationError", "SqlError"],
        (cause) => new MigrationFailed({ problem: problemOf(cause), cause })
      )
    )
})
