/** The one decision of an approval (R52): made under the lock of its session, and sent to everyone who waits for it. */
import { Clock, Context, Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Resolution } from "#schema/Approval.ts"
import type { GrantScope } from "#schema/Grant.ts"
import { jobOf, type ResourceName } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { freeOfTool } from "#src/choird/images/freeOfTool.ts"
import { toolsDigest } from "#src/choird/images/toolsDigest.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { type LockedSession, lockSession } from "#src/choird/sessions/storedEvents.ts"
import * as rows from "./approvalRows.ts"
import { verdict, type Wanted } from "./approvalStatus.ts"
import { expiredText } from "./approvalText.ts"
import { editCard, tellMore } from "./askPerson.ts"
import { byWhom } from "./card.ts"
import { GRANTED_TEXT, insertGrant } from "./grantRows.ts"
import { grantOfRow } from "./requestTypes.ts"
import { decidedNote, decidedText } from "./proposalNotes.ts"

type ApprovalRow = rows.ApprovalRow

export interface ApprovalDecision extends Wanted {
  readonly approval_id: string
  /** For the row and the audit: `operator`, `gateway:<name>/<dm>`. */
  readonly who: string
  readonly reason: string | null
  /** The identity of the request: a repetition is answered with what it decided. */
  readonly request_id?: string
  /** Counts only if this is the one request that waits and was delivered: the person named no approval. */
  readonly only?: boolean
  /** Allows more calls like it; only with an approval of a call. */
  readonly grant?: GrantScope
  /** The DM in which the person decides and gets the answer. */
  readonly dm?: ResourceName
}

/** Stores the grant that a person wants along with the approval; returns the reason why there can be none. */
const grantMore = Effect.fnUntraced(function* (
  row: ApprovalRow,
  { image_version }: LockedSession,
  scope: GrantScope,
  who: string,
  now_ms: number
) {
  const { home } = yield* ConfigStore
  const { agent_id, approval_id, job_id, lane, session_id } = row
  const words = grantOfRow(row, (tool) => freeOfTool(home, agent_id, image_version, tool))
  if (words === undefined || (scope === "job" && job_id === null)) return "NO_GRANT" as const
  const job_name = jobOf(lane) ?? null
  const tools_sha256 = toolsDigest(home, agent_id, image_version)
  const grant = { agent_id, approval_id, job_id, job_name, session_id, scope, tools_sha256, words, who, now_ms }
  return (yield* insertGrant(grant)) ? undefined : ("GRANTS_FULL" as const)
})

/** Whether an approval is the one request of its agent that waits and was delivered. */
const isAlone = Effect.fnUntraced(function* ({ agent_id, approval_id }: ApprovalRow) {
  const seen = yield* rows.deliveredWaiting(agent_id)
  return seen.length === 1 && seen[0] === approval_id
})

/** The row of an approval, with its session, whose lock the transaction holds from now on. */
const lock = Effect.fnUntraced(function* ({ approval_id, session_id }: ApprovalRow) {
  const session = yield* lockSession(session_id)
  const row = yield* rows.findApproval(approval_id)
  if (session === undefined || row === undefined)
    return yield* Effect.die(new Error(`the approval ${approval_id} or its session is gone`))
  return { session, row }
})

/**
 * Resolves an approval and tells everyone who waits for it, within a transaction that holds the session's lock.
 * @param approved runs after the commit of an approved proposal.
 */
const resolve = Effect.fnUntraced(function* (
  row: ApprovalRow,
  { status }: LockedSession,
  resolution: Resolution,
  decider: rows.Decider,
  approved: Effect.Effect<void>,
  { decided_in, granted = false }: { readonly decided_in?: ResourceName | undefined; readonly granted?: boolean } = {}
) {
  const config = yield* ConfigStore
  const outbox = yield* Outbox
  const signals = yield* Signals
  const sql = yield* SqlClient.SqlClient
  const resolved = yield* rows.resolveApproval(row, resolution, decider)
  const isProposal = !rows.isConfirmation(row)
  // A proposal outlives its call: the session learns of the decision when it is resumed.
  if (status === "active" || (isProposal && status !== "closed")) {
    yield* rows.signalResolution(resolved, resolution, isProposal ? decidedNote(resolved, resolution) : undefined)
    yield* sql.afterCommit(signals.wake(row.session_id))
  }
  const { config: running } = yield* config.current
  const tell = Effect.fnUntraced(function* (what: "expired" | "decided", text: string) {
    const dms = yield* tellMore(running, resolved, what, text, decided_in)
    yield* sql.afterCommit(Effect.forEach(dms, outbox.wake, { discard: true }))
  })
  const isExpired = resolution === "expired"
  const more = granted ? ` ${GRANTED_TEXT}` : ""
  const text = (by: string) => (isExpired ? expiredText(row) : `${decidedText(row, resolution, isProposal, by)}${more}`)
  const carded = yield* editCard(running, resolved, "card", text(byWhom(decider.who)))
  if (carded !== undefined) yield* sql.afterCommit(outbox.wake(carded))
  // A decision from elsewhere is reported where the question was asked.
  yield* tell(isExpired ? "expired" : "decided", text(""))
  if (isProposal && resolution === "approved") yield* sql.afterCommit(approved)
  return resolved
})

/** @param approved runs after the commit of an approved proposal. */
export const makeSettle = Effect.fnUntraced(function* (approved: Effect.Effect<void>) {
  const sql = yield* SqlClient.SqlClient
  const provide = Effect.provideContext(
    Context.pick(
      ConfigStore,
      Outbox,
      Signals,
      SqlClient.SqlClient
    )(yield* Effect.context<ConfigStore | Outbox | Signals | SqlClient.SqlClient>())
  )

  /** Expires what nobody decided in time; does nothing if it was decided or there is time left. */
  const expire = Effect.fnUntraced(
    function* (found: ApprovalRow, now_ms: number) {
      const { row, session } = yield* lock(found)
      if (row.status !== "pending" || now_ms < Date.parse(row.expires_at)) return undefined
      return yield* resolve(
        row,
        session,
        "expired",
        { who: "choird", reason: "nobody decided in time", now_ms },
        approved
      )
    },
    sql.withTransaction,
    provide
  )

  /**
   * A person's decision, with the row after it. A refused decision may still have resolved the row, as `expired`; a repeated one has
   * nothing left to resolve.
   */
  const settle = Effect.fnUntraced(
    function* (found: ApprovalRow, { dm, grant, only, reason, request_id, who, ...wanted }: ApprovalDecision) {
      const { row, session } = yield* lock(found)
      const earlier = request_id === undefined ? undefined : yield* rows.findDecision(request_id)
      if (earlier !== undefined) return { row: earlier, refusal: undefined, resolution: undefined }
      if (only === true && !(yield* isAlone(row))) return { row, refusal: "NOT_ALONE" as const, resolution: undefined }
      const now_ms = yield* Clock.currentTimeMillis
      // A proposal needs no session: choird carries it out (D17).
      const isOver = rows.isConfirmation(row) && session.status !== "active"
      const { refusal, resolution } = verdict(
        { ...row, now_ms, expires_ms: Date.parse(row.expires_at), isOver },
        wanted
      )
      const isTheirs = resolution === wanted.resolution
      if (grant !== undefined && resolution === "approved") {
        const hindrance = yield* grantMore(row, session, grant, who, now_ms)
        if (hindrance !== undefined) return { row, refusal: hindrance, resolution: undefined }
      }
      const decider = isTheirs ? { who, reason, now_ms, request_id } : { who: "choird", reason: null, now_ms }
      return {
        row:
          resolution === undefined
            ? row
            : yield* resolve(row, session, resolution, decider, approved, {
                decided_in: isTheirs ? dm : undefined,
                granted: isTheirs && grant !== undefined
              }),
        refusal,
        resolution
      }
    },
    sql.withTransaction,
    provide
  )

  return { expire, settle }
})
