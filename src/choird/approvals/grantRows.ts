/** Standing grants, and how people revoke them. A use is counted under the lock of its row, so that a revocation binds the next call. */
import { Clock, Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import type { ConfirmTool } from "#schema/Approval.ts"
import type { GrantScope, GrantSummary, GrantWords } from "#schema/Grant.ts"
import { type AgentId, ApprovalId, GrantId, type JobName, type SessionId } from "#schema/Ids.ts"
import { BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { provideDatabase } from "#src/choird/database/DatabaseAway.ts"
import { rowId } from "#src/choird/database/rowId.ts"
import { covers, readWords, wordsText } from "./grantWords.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { DAY_MS } from "#src/shared/days.ts"

/** Calls that one grant covers. */
export const GRANT_USES_MAX = 20
/** Follows an approval that a grant came with. */
export const GRANTED_TEXT = `Up to ${GRANT_USES_MAX} more calls like it are allowed: /grants lists and revokes.`
/** How long a grant lasts for a job, and for an agent. */
const GRANT_JOB_MS = DAY_MS
export const GRANT_AGENT_MS = 7 * DAY_MS
/** Grants of one agent that stand at once. */
const GRANTS_STANDING_MAX = 64
/** Grants that a list shows. */
const GRANTS_LISTED_MAX = 200

/** The work that a call belongs to; without a job it is edge's own. */
export interface GrantHolder {
  readonly agent_id: AgentId
  readonly session_id: SessionId
  readonly job_id: string | null
  /** The tools that the agent's image has of the repositories; absent where that cannot be read. */
  readonly tools_sha256: string | undefined
}

interface Standing {
  readonly grant_id: string
  readonly words: unknown
}

/** The tools on which a grant or a request depends: Choir's own are those of this version. */
export const toolsOf = (tool: string, { tools_sha256 }: Pick<GrantHolder, "tools_sha256">): string | undefined =>
  BUILT_IN_TOOLS.includes(tool) ? undefined : tools_sha256

/**
 * Counts the use of the oldest standing grant that covers the call; within the transaction of the row that it approves. A grant of a tool ends
 * where the image has other tools than the person knew, and one whose words an earlier Choir wrote ends in any case.
 */
export const useGrant = Effect.fnUntraced(function* (holder: GrantHolder, call: ConfirmTool, now_ms: number) {
  const sql = yield* SqlClient.SqlClient
  const { agent_id, job_id, session_id } = holder
  const standing = yield* sql<Standing>`SELECT grant_id::text, words FROM choir_control.grants
    WHERE agent_id = ${agent_id} AND revoked_at IS NULL AND until > ${new Date(now_ms)} AND uses < uses_max
      AND (scope = 'agent' OR (session_id = ${session_id} AND job_id = ${job_id}))
    ORDER BY grant_id LIMIT ${GRANTS_STANDING_MAX} FOR UPDATE`
  const tools = toolsOf(call.tool, holder)
  const covering = standing.flatMap(({ grant_id, words }) =>
    Option.match(readWords(words), {
      onNone: () => [{ grant_id, isOfThese: false }],
      onSome: (decoded) => (covers(decoded, call) ? [{ grant_id, isOfThese: decoded.tools_sha256 === tools }] : [])
    })
  )
  for (const { grant_id, isOfThese } of covering)
    if (!isOfThese)
      yield* sql`UPDATE choir_control.grants SET revoked_at = ${new Date(now_ms)}, revoked_by = 'choird'
        WHERE grant_id = ${rowId(grant_id) ?? 0n}`
  const found = covering.find(({ isOfThese }) => isOfThese)
  if (found === undefined) return undefined
  yield* sql`UPDATE choir_control.grants SET uses = uses + 1 WHERE grant_id = ${rowId(found.grant_id) ?? 0n}`
  return GrantId.make(found.grant_id)
})

const standingCount = (agent_id: AgentId, now_ms: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly standing: number }>`SELECT count(*)::int AS standing FROM choir_control.grants
      WHERE agent_id = ${agent_id} AND revoked_at IS NULL AND until > ${new Date(now_ms)} AND uses < uses_max`,
      ([row]) => row?.standing ?? 0
    )
  )

interface NewGrant extends GrantHolder {
  readonly scope: GrantScope
  readonly job_name: JobName | null
  readonly approval_id: ApprovalId
  readonly words: GrantWords
  readonly who: string
  readonly now_ms: number
}

/** Stores a grant, once for each approval; false when GRANTS_STANDING_MAX of the agent stand. */
export const insertGrant = Effect.fnUntraced(function* (grant: NewGrant) {
  const sql = yield* SqlClient.SqlClient
  const { agent_id, approval_id, job_id, job_name, now_ms, scope, session_id, who } = grant
  if ((yield* standingCount(agent_id, now_ms)) >= GRANTS_STANDING_MAX) return false
  const isJob = scope === "job"
  const tools_sha256 = toolsOf(grant.words.tool, grant)
  const words = { ...grant.words, ...(tools_sha256 === undefined ? {} : { tools_sha256 }) }
  const until = new Date(now_ms + (isJob ? GRANT_JOB_MS : GRANT_AGENT_MS))
  yield* sql`INSERT INTO choir_control.grants
      (agent_id, scope, session_id, job_id, job_name, approval_id, words, uses_max, until, created_at, created_by)
    VALUES (${agent_id}, ${scope}, ${isJob ? session_id : null}, ${isJob ? job_id : null}, ${isJob ? job_name : null},
      ${rowId(approval_id) ?? 0n}, ${canonicalJson(words)}::jsonb, ${GRANT_USES_MAX}, ${until},
      ${new Date(now_ms)}, ${who})`
  return true
})

type Stored = Omit<GrantSummary, "words" | "until" | "created_at" | "revoked_at"> & {
  readonly words: unknown
  readonly until: Date
  readonly created_at: Date
  readonly revoked_at: Date | null
}

const summaryOf = ({ approval_id, created_at, grant_id, revoked_at, until, words, ...row }: Stored): GrantSummary => ({
  ...row,
  grant_id: GrantId.make(grant_id),
  approval_id: ApprovalId.make(approval_id),
  words: Option.match(readWords(words), {
    onNone: () => "nothing any more (an earlier Choir wrote it); allow the call again when you are asked",
    onSome: wordsText
  }),
  until: until.toISOString(),
  created_at: created_at.toISOString(),
  revoked_at: revoked_at?.toISOString() ?? null
})

const COLUMNS = `grant_id::text, agent_id, scope, session_id, job_name, words, uses, uses_max, until, created_at, created_by,
  approval_id::text, revoked_at`

/** Newest first. Without `all` only those that stand. */
const listGrants = ({
  agent_id,
  all,
  now_ms
}: {
  readonly agent_id: AgentId | undefined
  readonly all: boolean
  readonly now_ms: number
}) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<Stored>`SELECT ${sql.literal(COLUMNS)} FROM choir_control.grants
      WHERE ${all ? sql.literal("true") : sql`revoked_at IS NULL AND until > ${new Date(now_ms)} AND uses < uses_max`}
        AND ${agent_id === undefined ? sql.literal("true") : sql`agent_id = ${agent_id}`}
      ORDER BY grant_id DESC LIMIT ${GRANTS_LISTED_MAX}`,
      (rows) => rows.map(summaryOf)
    )
  )

/** Ends a grant; the row after it, also if it had ended before. `undefined` if there is none, or none of this agent. */
const revokeGrant = Effect.fnUntraced(function* ({
  agent_id,
  grant_id,
  now_ms,
  who
}: {
  readonly grant_id: string
  readonly agent_id: AgentId | undefined
  readonly who: string
  readonly now_ms: number
}) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Stored>`UPDATE choir_control.grants
    SET revoked_by = CASE WHEN revoked_at IS NULL THEN ${who} ELSE revoked_by END,
      revoked_at = coalesce(revoked_at, ${new Date(now_ms)})
    WHERE grant_id = ${rowId(grant_id) ?? 0n}
      AND ${agent_id === undefined ? sql.literal("true") : sql`agent_id = ${agent_id}`}
    RETURNING ${sql.literal(COLUMNS)}`
  return rows[0] === undefined ? undefined : summaryOf(rows[0])
})

export interface Revocation {
  readonly grant_id: string
  /** Only a grant of this agent; without it of any. */
  readonly agent_id?: AgentId
  /** For the row and the audit: `operator`, `gateway:<name>/<dm>`. */
  readonly who: string
}

/** The part of `Approvals` about grants: their list, and a revocation with its row in the audit. */
export const makeStandingGrants = Effect.gen(function* () {
  const audit = yield* Audit
  const onDatabase = yield* provideDatabase
  return {
    grants: Effect.fn("Approvals.grants")(
      function* ({ agent_id, all }: { readonly agent_id?: AgentId; readonly all: boolean }) {
        return yield* listGrants({ agent_id, all, now_ms: yield* Clock.currentTimeMillis })
      },
      onDatabase,
      Effect.orDie
    ),
    revokeGrant: Effect.fn("Approvals.revokeGrant")(
      function* ({ agent_id, grant_id, who }: Revocation) {
        const now_ms = yield* Clock.currentTimeMillis
        const grant = yield* revokeGrant({ agent_id, grant_id, who, now_ms })
        yield* audit.record({
          who,
          action: "grant.revoke",
          ...(grant === undefined ? {} : { agent_id: grant.agent_id }),
          detail: { grant_id: grant_id.slice(0, 20), ...(grant === undefined ? { refused: "UNKNOWN_GRANT" } : {}) }
        })
        return grant
      },
      onDatabase,
      Effect.orDie
    )
  }
})
