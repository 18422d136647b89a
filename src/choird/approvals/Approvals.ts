/**
 * Approvals: durable rows with one decision each, which a person makes before a call or a change may happen (D16, D17). A decision is made
 * at once, whatever the agent does (E7); the agent hears of it by a signal, and by asking again.
 */
import { Clock, Context, Effect, Layer, Queue, Result, type Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { Caller } from "#schema/AgentApi.ts"
import type { GrantSummary } from "#schema/Grant.ts"
import type { AskedApproval } from "#schema/Approval.ts"
import { type AgentId, type ApprovalId, ResourceName } from "#schema/Ids.ts"
import { restarted } from "#src/shared/background.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { provideDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Outbox, type SentAs } from "#src/choird/queues/Outbox.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { approvalSeen } from "#src/choird/logs/metrics.ts"
import { storableJson } from "#src/shared/text/canonicalJson.ts"
import { makeNotifier } from "#src/choird/queues/Notifier.ts"
import { type ApprovalRefused, refusalOf, refused, unknownApproval } from "./ApprovalRefused.ts"
import * as rows from "./approvalRows.ts"
import { makeCards, type SentCard } from "./cardRows.ts"
import { type Refusal, resolutionOf } from "./approvalStatus.ts"
import { hash8 } from "./approvalText.ts"
import { type ApprovalRequest, makeAsk } from "./askApproval.ts"
import { documentSource } from "./askPerson.ts"
import { makeStandingGrants, type Revocation } from "./grantRows.ts"
import { understand } from "./requestTypes.ts"
import { type ApprovalDecision, makeSettle } from "./settleApproval.ts"
import { APPROVALS_LISTED_MAX } from "./approvalRows.ts"

/** Characters of the reason that a person gives for a rejection. */
const APPROVAL_REASON_CHARS_MAX = 500
/** Approvals that expire, one transaction each, before choird checks again. */
const APPROVALS_EXPIRED_MAX = 100
/** The longest sleep before choird checks again for approvals whose time is up, so that it notices a clock that jumps. */
const APPROVAL_LOOK_MS_MAX = 60_000
/** The pause after a failed read of the database. */
const APPROVAL_RETRY_MS = 1000

type ApprovalRow = rows.ApprovalRow

/** Asks people and stores their decisions. */
export class Approvals extends Context.Service<
  Approvals,
  {
    /**
     * Asks once for each call: the same call and payload, even in a later epoch, is the same approval with its current status. Refused:
     * a payload that is not understood, another payload for the call, a call that does not wait for a person in the stored log, and
     * the one above APPROVALS_PENDING_MAX.
     */
    request(caller: Caller, request: ApprovalRequest): Effect.Effect<AskedApproval, ApprovalRefused>
    /** The one decision (R52). Refused when there was one, when its time is up, or when the person saw another payload (R54). */
    decide(decision: ApprovalDecision): Effect.Effect<ApprovalRow, ApprovalRefused>
    get(approval_id: string): Effect.Effect<ApprovalRow, ApprovalRefused>
    /** The approval that the request with this identity decided, if it did. */
    decidedBy(request_id: string): Effect.Effect<ApprovalRow | undefined>
    /** Newest first, at most APPROVALS_LISTED_MAX; without `all` only those that wait. */
    list(options: { readonly agent_id?: AgentId; readonly all: boolean }): Effect.Effect<ReadonlyArray<ApprovalRow>>
    /** The approvals of an agent that wait and whose message reached a person, oldest first. */
    delivered(agent_id: AgentId): Effect.Effect<ReadonlyArray<ApprovalId>>
    /** The file with all of a request that went to a DM before its card, if there is one. */
    document(
      approval_id: string
    ): Effect.Effect<{ readonly dm: ResourceName; readonly isDelivered: boolean } | undefined>
    /** The card with buttons of an approval, if there is one. */
    card(approval_id: string): Effect.Effect<SentCard | undefined>
    /** The approval that a message of a gateway is about: its card, its file, or what came of it. */
    about(gateway: ResourceName, message: SentAs): Effect.Effect<ApprovalId | undefined>
    /** The numbers of the approvals about which a DM was sent a message. */
    askedAt(dm: ResourceName): Effect.Effect<ReadonlySet<string>>
    /** Standing grants, newest first; without `all` only those that cover a call. */
    grants(options: { readonly agent_id?: AgentId; readonly all: boolean }): Effect.Effect<ReadonlyArray<GrantSummary>>
    /** Ends a grant from the next call on; again without effect. `undefined` if there is no such grant. */
    revokeGrant(revocation: Revocation): Effect.Effect<GrantSummary | undefined>
    /** Emits at once, and then whenever a proposal is approved. */
    readonly approved: Stream.Stream<void>
    /** Emits at once, and then whenever a person is asked. */
    readonly requested: Stream.Stream<void>
    /** The number of those that wait, by agent. */
    readonly pending: Effect.Effect<ReadonlyMap<AgentId, number>>
  }
>()("choir/choird/Approvals") {
  /** Expires undecided approvals for as long as the layer lives, beginning with those already due (R53). */
  static readonly layer = Layer.effect(
    Approvals,
    Effect.suspend(() => make())
  )
}

/** The audited parts of a row: names and digests, never an input. */
const auditDetail = ({ approval_id, call_id, hash, request_type }: ApprovalRow) => ({
  approval_id,
  call_id,
  request_type,
  hash: hash8(hash)
})

const APPROVED = "approved"
const REQUESTED = "requested"

/** Records a decision, or the refusal of one. */
const makeRecord = Effect.map(
  Audit,
  (audit) =>
    (who: string, action: string, row: ApprovalRow, more: { readonly refused?: Refusal } = {}) => {
      const { agent_id, request_type, session_id } = row
      const detail = { ...auditDetail(row), ...more }
      const entry = { who, action: `approval.${action}`, session_id, agent_id, detail }
      // An agent can ask and end the call again and again.
      return Effect.andThen(
        audit.record(action === "request" ? { ...entry, repeats: request_type } : entry),
        more.refused === undefined ? approvalSeen(row, action, who) : Effect.void
      )
    }
)
type Settle = Effect.Success<ReturnType<typeof makeSettle>>
type Stored = Effect.Success<ReturnType<Effect.Success<typeof makeAsk>>>
type Earlier = Extract<Stored, { readonly type: "earlier" }>

/** The reason why a request that was not stored waits for nobody. */
const notStored = (
  stored: Exclude<Stored, { readonly type: "asked" | "earlier" | "granted" }>,
  { call_id }: ApprovalRequest
) => {
  switch (stored.type) {
    case "not open":
      return refused("NOT_OPEN", `no call ${call_id} of the stored log waits for a person`, "send it first")
    case "full":
      return refused("APPROVALS_FULL", `${stored.waiting} approvals of this session are already waiting`, "wait")
    case "unread":
      return refused(
        "APPROVALS_FULL",
        `${stored.unread} earlier messages about approvals are still unread or undelivered in the chat where this one would be sent`,
        "wait"
      )
  }
}

/** The reason why the earlier request of a call is not the one that is asked for now. */
const notTheSame = (
  { isOther, row }: Earlier,
  { call_id, request_type }: ApprovalRequest,
  hash: ApprovalRow["hash"]
) => {
  if (row.hash !== hash || row.request_type !== request_type)
    return refused("CALL_ID_REUSED", `the call ${call_id} asked for something else before`, "use another id")
  return isOther
    ? refused(
        "CHANGED",
        `the agent's tools have changed since approval ${row.approval_id} was requested, so it is no longer valid`,
        "call the tool again"
      )
    : undefined
}

/** How an approval stands, in the words of the agent's API. */
const standing = ({ approval_id, grant_id, reason, status }: ApprovalRow) => ({
  approval_id,
  status: resolutionOf(status) ?? ("pending" as const),
  ...(grant_id === null ? {} : { grant_id }),
  ...(status === "rejected" && reason !== null ? { reason } : {})
})

/** Takes the requests of agents. @param asked runs when an approval waits. */
const makeRequest = Effect.fnUntraced(function* (expire: Settle["expire"], asked: Effect.Effect<unknown>) {
  const config = yield* ConfigStore
  const outbox = yield* Outbox
  const onDatabase = yield* provideDatabase
  const ask = yield* makeAsk
  const record = yield* makeRecord

  /**
   * Answers a repeated request, which has thereby heard of the decision, if there is one. The first request may have been committed
   * without choird hearing of it; then neither the timer nor the person was woken.
   */
  const again = Effect.fnUntraced(function* (found: ApprovalRow, rev: number) {
    const now_ms = yield* Clock.currentTimeMillis
    if (found.status === "pending") {
      yield* asked
      const { dms } = (yield* config.current).config
      yield* Effect.forEach(Object.keys(dms), (dm) => outbox.wake(ResourceName.make(dm)), { discard: true })
    }
    const row = (yield* expire(found, now_ms)) ?? found
    if (row.status !== "pending" && rows.isConfirmation(row)) yield* rows.acknowledgeResolution(row, rev)
    return row
  })

  return Effect.fn("Approvals.request")(function* (caller: Caller, request: ApprovalRequest) {
    const understood = understand(request.request_type, request.payload)
    if (Result.isFailure(understood)) {
      const { kind, reason } = understood.failure
      return yield* refused(kind, reason, "correct the request, or drop it")
    }
    const stored = yield* ask(caller, request, understood.success)
    switch (stored.type) {
      case "granted": {
        const { grant_id, row } = stored
        yield* record(`grant:${grant_id}`, "approve", row)
        return { approval_id: row.approval_id, status: "approved", grant_id } as const
      }
      case "asked":
        yield* asked
        yield* record(`agent:${caller.agent_id}`, "request", stored.row)
        return { approval_id: stored.row.approval_id, status: "pending" } as const
      case "earlier": {
        const changed = notTheSame(stored, request, understood.success.hash)
        if (changed !== undefined) return yield* changed
        return standing(yield* Effect.orDie(again(stored.row, stored.rev)))
      }
      default:
        return yield* notStored(stored, request)
    }
  }, onDatabase)
})

const makeFind = Effect.map(provideDatabase, (onDatabase) =>
  Effect.fnUntraced(function* (approval_id: string) {
    const row = yield* Effect.orDie(rows.findApproval(approval_id))
    return row ?? (yield* unknownApproval(approval_id))
  }, onDatabase)
)

/** Takes the decisions of people. */
const makeDecide = Effect.fnUntraced(function* (settle: Settle["settle"]) {
  const audit = yield* Audit
  const signals = yield* Signals
  const find = yield* makeFind
  const record = yield* makeRecord
  return Effect.fn("Approvals.decide")(function* (decision: ApprovalDecision) {
    const { approval_id, who } = decision
    const action = decision.resolution === "approved" ? "approve" : "reject"
    const found = yield* Effect.tapError(find(approval_id), ({ kind }) =>
      audit.record({
        who,
        action: `approval.${action}`,
        detail: { refused: kind, approval_id: approval_id.slice(0, 20) }
      })
    )
    const reason = decision.reason === null ? null : storableJson(decision.reason.slice(0, APPROVAL_REASON_CHARS_MAX))
    const { refusal, resolution, row } = yield* Effect.orDie(settle(found, { ...decision, reason }))
    if (refusal === undefined) {
      if (resolution === undefined) yield* signals.wake(row.session_id)
      else yield* record(who, action, row)
      return row
    }
    if (resolution === "expired") yield* record("choird", "expire", row)
    // This very decision may have been committed without anybody hearing of it.
    if (refusal === "ALREADY_DECIDED") yield* signals.wake(row.session_id)
    yield* record(who, action, row, { refused: refusal })
    return yield* refusalOf(row, refusal)
  })
})

/** Expires approvals that nobody decides in time. @param woken waits until an approval may be due earlier. */
const makeExpiry = Effect.fnUntraced(function* (expire: Settle["expire"], woken: Effect.Effect<void>) {
  const onDatabase = yield* provideDatabase
  const record = yield* makeRecord
  const look = Effect.gen(function* () {
    const now_ms = yield* Clock.currentTimeMillis
    const due = yield* rows.overdue(now_ms, APPROVALS_EXPIRED_MAX)
    for (const found of due) {
      const row = yield* expire(found, now_ms)
      if (row !== undefined) yield* record("choird", "expire", row)
    }
    if (due.length === APPROVALS_EXPIRED_MAX) return
    const next_ms = yield* rows.nextExpiry
    const wait_ms = Math.max(1, Math.min(APPROVAL_LOOK_MS_MAX, (next_ms ?? Infinity) - now_ms))
    yield* Effect.timeoutOption(woken, wait_ms)
  })
  return look.pipe(
    onDatabase,
    Effect.catchCause((cause) =>
      Effect.andThen(
        Effect.logWarning("cannot read the approvals that are due", cause),
        Effect.sleep(APPROVAL_RETRY_MS)
      )
    ),
    Effect.forever
  )
})

const make = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const onDatabase = yield* provideDatabase
  // A token: a new approval was requested, which may be due before all others.
  const asked = yield* Queue.sliding<void>(1)
  const wakes = yield* makeNotifier
  const { expire, settle } = yield* makeSettle(wakes.wake(APPROVED))
  yield* Effect.forkScoped(restarted("the expiry of approvals")(yield* makeExpiry(expire, Queue.take(asked))))

  const pending = Effect.map(
    sql<{ readonly agent_id: AgentId; readonly pending: number }>`SELECT agent_id, count(*)::int AS pending
      FROM choir_control.pending_approvals WHERE status = 'pending' GROUP BY agent_id`,
    (counted) => new Map(counted.map(({ agent_id, pending }) => [agent_id, pending]))
  )

  return Approvals.of({
    request: yield* makeRequest(expire, Effect.andThen(Queue.offer(asked, undefined), wakes.wake(REQUESTED))),
    decide: yield* makeDecide(settle),
    get: yield* makeFind,
    decidedBy: Effect.fn("Approvals.decidedBy")(
      function* (request_id) {
        return yield* rows.findDecision(request_id)
      },
      onDatabase,
      Effect.orDie
    ),
    approved: wakes.wakes(APPROVED),
    requested: wakes.wakes(REQUESTED),
    list: Effect.fn("Approvals.list")(
      function* ({ agent_id, all }) {
        return yield* rows.listApprovals({ agent_id, all, limit: APPROVALS_LISTED_MAX })
      },
      onDatabase,
      Effect.orDie
    ),
    delivered: Effect.fn("Approvals.delivered")(
      function* (agent_id) {
        return yield* rows.deliveredWaiting(agent_id)
      },
      onDatabase,
      Effect.orDie
    ),
    ...(yield* makeCards),
    ...(yield* makeStandingGrants),
    document: Effect.fn("Approvals.document")(
      function* (approval_id) {
        return yield* rows.findDocument(documentSource(approval_id))
      },
      onDatabase,
      Effect.orDie
    ),
    pending: Effect.orDie(pending)
  })
})
