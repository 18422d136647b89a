/** The rows of `pending_approvals`. A change to one holds the lock of its session's row, so that signals commit in order. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { ApprovalStatus, Resolution } from "#schema/Approval.ts"
import {
  type AgentId,
  ApprovalId,
  type CallId,
  type GrantId,
  type LaneId,
  type ResourceName,
  type SessionId
} from "#schema/Ids.ts"
import type { Rehearsal } from "#schema/Trial.ts"
import { canonicalJson, storableJson } from "#src/shared/text/canonicalJson.ts"
import { rowId } from "#src/choird/database/rowId.ts"

/** Rows that `approval list` shows. */
export const APPROVALS_LISTED_MAX = 500

/** A request with its status. Instants are ISO texts. */
export interface ApprovalRow {
  readonly approval_id: ApprovalId
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly call_id: CallId
  readonly request_type: string
  readonly canonical: string
  /** Lowercase hex. */
  readonly hash: string
  readonly summary: string
  readonly lane: LaneId
  /** The job that asked; null for edge. */
  readonly job_id: string | null
  /** The standing grant that approved it. */
  readonly grant_id: GrantId | null
  readonly status: ApprovalStatus
  readonly created_at: string
  readonly expires_at: string
  readonly resolved_at: string | null
  readonly resolved_by: string | null
  readonly reason: string | null
  /** The outcome of the execution. */
  readonly outcome: string | null
  /**
   * Of a proposal: everything that the person is shown, what choird found when asked, and the progress of its execution. Of a call in the browser,
   * `shown` is the page and the element.
   */
  readonly shown: string | null
  readonly facts: unknown
  readonly step: string | null
  readonly job: unknown
  /** Of a proposed skill or tool: what its rehearsal came to, once it has ended. */
  readonly rehearsal: Rehearsal | null
}

type Stored = Omit<ApprovalRow, "approval_id" | "hash" | "created_at" | "expires_at" | "resolved_at"> & {
  readonly approval_id: string
  readonly payload_hash: Uint8Array
  readonly created_at: Date
  readonly expires_at: Date
  readonly resolved_at: Date | null
}

const COLUMNS = `id::text AS approval_id, session_id, agent_id, call_id, request_type, canonical, payload_hash, summary, lane, job_id,
  grant_id::text AS grant_id, status, created_at, expires_at, resolved_at, resolved_by, reason, outcome, shown, facts, step, job, rehearsal`

const approvalRow = ({ payload_hash, ...row }: Stored): ApprovalRow => ({
  ...row,
  approval_id: ApprovalId.make(row.approval_id),
  hash: Buffer.from(payload_hash).toString("hex"),
  created_at: row.created_at.toISOString(),
  expires_at: row.expires_at.toISOString(),
  resolved_at: row.resolved_at?.toISOString() ?? null
})

const one = <E>(rows: Effect.Effect<ReadonlyArray<Stored>, E>) =>
  Effect.map(rows, ([row]) => (row === undefined ? undefined : approvalRow(row)))

export const findApproval = (approval_id: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    one(sql<Stored>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.pending_approvals
    WHERE id = ${rowId(approval_id) ?? 0n}`)
  )

export const findCall = (session_id: SessionId, call_id: CallId) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    one(sql<Stored>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.pending_approvals
    WHERE session_id = ${session_id} AND call_id = ${call_id}`)
  )

/** The approvals of calls that a person was asked about. */
export const findCalls = (session_id: SessionId, call_ids: ReadonlyArray<CallId>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<Stored>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.pending_approvals
      WHERE session_id = ${session_id} AND call_id = ANY(${call_ids}::text[])`,
      (rows) => rows.map(approvalRow)
    )
  )

/** The approval that a request decided. */
export const findDecision = (request_id: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    one(sql<Stored>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.pending_approvals
    WHERE request_id = ${request_id}`)
  )

/** Newest first. */
export const listApprovals = ({
  agent_id,
  all,
  limit
}: {
  readonly agent_id: AgentId | undefined
  readonly all: boolean
  readonly limit: number
}) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<Stored>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.pending_approvals
      WHERE ${all ? sql.literal("true") : sql.literal("status = 'pending'")}
        AND ${agent_id === undefined ? sql.literal("true") : sql`agent_id = ${agent_id}`}
      ORDER BY id DESC LIMIT ${limit}`,
      (rows) => rows.map(approvalRow)
    )
  )

/** Approved proposals whose execution has not ended, oldest first. */
export const openExecutions = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(
    sql<Stored>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.pending_approvals
      WHERE request_type <> 'confirm_tool' AND status IN ('approved', 'executing') ORDER BY id LIMIT ${APPROVALS_LISTED_MAX}`,
    (rows) => rows.map(approvalRow)
  )
)

/** Proposed skills and tools that wait for a decision and were not rehearsed, oldest first. */
export const awaitingRehearsal = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(
    sql<Stored>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.pending_approvals
      WHERE request_type IN ('skill', 'tool') AND status = 'pending' AND rehearsal IS NULL ORDER BY id LIMIT ${APPROVALS_LISTED_MAX}`,
    (rows) => rows.map(approvalRow)
  )
)

/** Keeps the outcome of a rehearsal; whether the row still waits for a decision. */
export const keepRehearsal = ({ approval_id }: ApprovalRow, rehearsal: Rehearsal) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly status: ApprovalStatus }>`UPDATE choir_control.pending_approvals
      SET rehearsal = ${canonicalJson(storableJson(rehearsal))}::jsonb WHERE id = ${rowId(approval_id) ?? 0n} RETURNING status`,
      ([row]) => row?.status === "pending"
    )
  )

/** Overdue ones, oldest first. */
export const overdue = (now_ms: number, limit: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<Stored>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.pending_approvals
      WHERE status = 'pending' AND expires_at <= ${new Date(now_ms)} ORDER BY expires_at, id LIMIT ${limit}`,
      (rows) => rows.map(approvalRow)
    )
  )

/** The time when the next one is due, in milliseconds since 1970. */
export const nextExpiry = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(
    sql<{ readonly expires_at: Date | null }>`SELECT min(expires_at) AS expires_at
      FROM choir_control.pending_approvals WHERE status = 'pending'`,
    ([row]) => row?.expires_at?.getTime()
  )
)

export const countPending = (session_id: SessionId) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly pending: number }>`SELECT count(*)::int AS pending FROM choir_control.pending_approvals
      WHERE session_id = ${session_id} AND status = 'pending'`,
      ([row]) => row?.pending ?? 0
    )
  )

/**
 * The waiting approvals of an agent, in any of its sessions, whose whole message reached a person, oldest first. A decision without a
 * number cannot mean one that nobody has seen.
 */
export const deliveredWaiting = (agent_id: AgentId) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly approval_id: string }>`SELECT asked.id::text AS approval_id
      FROM choir_control.pending_approvals AS asked
      JOIN choir_control.outbox AS card ON card.source = 'choird' AND card.source_id = 'approval/' || asked.id
      WHERE asked.agent_id = ${agent_id} AND asked.status = 'pending'
      GROUP BY asked.id HAVING bool_and(card.delivered_at IS NOT NULL) ORDER BY asked.id`,
      (rows) => rows.map(({ approval_id }) => ApprovalId.make(approval_id))
    )
  )

/** The file that went to a DM under this source, and whether the DM has it. */
export const findDocument = (source_id: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly dm: ResourceName; readonly isDelivered: boolean }>`SELECT dm,
        delivered_at IS NOT NULL AS "isDelivered" FROM choir_control.outbox
      WHERE source = 'choird' AND source_id = ${source_id} AND part = 0`,
      ([row]) => row
    )
  )

type Fresh = Pick<
  ApprovalRow,
  | "session_id"
  | "agent_id"
  | "call_id"
  | "request_type"
  | "canonical"
  | "hash"
  | "summary"
  | "lane"
  | "job_id"
  | "grant_id"
> & {
  readonly now_ms: number
  readonly expires_ms: number
  readonly examined: { readonly shown: string; readonly facts: unknown } | undefined
  /** The tools of the agent's image, for a call of one of them. */
  readonly tools_sha256: string | undefined
}

export const insertApproval = Effect.fnUntraced(function* (fresh: Fresh) {
  const sql = yield* SqlClient.SqlClient
  const { agent_id, call_id, canonical, examined, expires_ms, hash, lane, now_ms, request_type, session_id } = fresh
  const { grant_id, job_id, tools_sha256 } = fresh
  const found = tools_sha256 === undefined ? examined?.facts : { tools_sha256 }
  const facts = found === undefined ? null : canonicalJson(found)
  const isGranted = grant_id !== null
  const row = yield* one(sql<Stored>`INSERT INTO choir_control.pending_approvals
      (session_id, agent_id, call_id, request_type, payload, canonical, payload_hash, summary, lane, created_at, expires_at,
        shown, facts, job_id, grant_id, status, resolved_at, resolved_by)
    VALUES (${session_id}, ${agent_id}, ${call_id}, ${request_type}, ${canonical}::jsonb, ${canonical},
      ${Buffer.from(hash, "hex")}, ${fresh.summary}, ${lane}, ${new Date(now_ms)}, ${new Date(expires_ms)},
      ${examined?.shown ?? null}, ${facts}::jsonb, ${job_id}, ${rowId(grant_id ?? "") ?? null},
      ${isGranted ? "approved" : "pending"}, ${isGranted ? new Date(now_ms) : null},
      ${isGranted ? `grant:${grant_id}` : null})
    RETURNING ${sql.literal(COLUMNS)}`)
  return row ?? (yield* Effect.die(new Error("the approval was not stored")))
})

/** The decider with the reason. */
export interface Decider {
  readonly who: string
  readonly reason: string | null
  readonly now_ms: number
  /** The identity of the person's request, where it has one. */
  readonly request_id?: string | undefined
}

/** The one decision of a row that is `pending`. */
export const resolveApproval = Effect.fnUntraced(function* (
  { approval_id }: ApprovalRow,
  resolution: Resolution,
  { now_ms, reason, request_id, who }: Decider
) {
  const sql = yield* SqlClient.SqlClient
  const row = yield* one(sql<Stored>`UPDATE choir_control.pending_approvals
    SET status = ${resolution}, resolved_at = ${new Date(now_ms)}, resolved_by = ${who}, reason = ${reason},
      request_id = ${request_id ?? null}
    WHERE id = ${rowId(approval_id) ?? 0n} AND status = 'pending' RETURNING ${sql.literal(COLUMNS)}`)
  return row ?? (yield* Effect.die(new Error(`the approval ${approval_id} was decided twice`)))
})

/** Tells the agent of a session (docs/protocol.md, Push stream); a note is what the model reads of a proposal. */
export const signalResolution = ({ approval_id, session_id }: ApprovalRow, status: Resolution, note?: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const payload = { approval_id, status, ...(note === undefined ? {} : { note }) }
    return Effect.asVoid(sql`INSERT INTO choir_control.signals (session_id, kind, payload)
    VALUES (${session_id}, 'ApprovalResolved', ${canonicalJson(payload)}::jsonb)`)
  })

/** True for a question about a call; a proposal's call does not wait for the decision. */
export const isConfirmation = ({ request_type }: Pick<ApprovalRow, "request_type">): boolean =>
  request_type === "confirm_tool"

/** The agent has heard of it. */
export const acknowledgeResolution = ({ approval_id, session_id }: ApprovalRow, rev: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.asVoid(sql`UPDATE choir_control.signals SET acked_rev = ${rev}
    WHERE session_id = ${session_id} AND acked_rev IS NULL AND kind = 'ApprovalResolved'
      AND payload ->> 'approval_id' = ${approval_id}`)
  )
