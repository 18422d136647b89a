/** An agent's request for a decision: stored and sent to a person once for each call, which the stored log must contain. */
import { Clock, Context, Effect, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { Caller } from "#schema/AgentApi.ts"
import { type AgentId, type CallId, EDGE, jobOf, type LaneId, Sha256 } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { freeOfTool } from "#src/choird/images/freeOfTool.ts"
import { toolsDigest } from "#src/choird/images/toolsDigest.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Proposals } from "./Proposals.ts"
import type { Preview } from "./ProposalType.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { lockSession } from "#src/choird/sessions/storedEvents.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { inTransaction } from "#src/choird/database/DatabaseAway.ts"
import { ApprovalRefused } from "./ApprovalRefused.ts"
import * as rows from "./approvalRows.ts"
import { toolsOf, useGrant } from "./grantRows.ts"
import { APPROVALS_UNREAD_MAX, countUnread, tellAsked } from "./askPerson.ts"
import { makePageFacts } from "./pageFacts.ts"
import { shownText, type Understood } from "./requestTypes.ts"
import type { ConfirmTool } from "#schema/Approval.ts"
import type { ProposalKind } from "#schema/ProposedChange.ts"
import { toWireName } from "#schema/Tool.ts"
import { callDigest } from "#src/shared/session/calls.ts"
import { isProposal } from "#src/shared/session/meantCall.ts"
import type { Source } from "#schema/Source.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { take, type TokenBucket } from "#src/choird/queues/TokenBucket.ts"

/** Proposals of one agent that choird previews in a row, which starts git; beyond that, one each PROPOSAL_LOOK_MS. */
export const PROPOSAL_LOOKS_BURST = 10
export const PROPOSAL_LOOK_MS = 10_000

const RATE = { perSecond: 1000 / PROPOSAL_LOOK_MS, burst: PROPOSAL_LOOKS_BURST }

/** Counts an agent's preview; returns the time to wait in ms if it is one too many, else 0. One entry for each agent, for choird's life. */
export const makeLookBudget = () => {
  const buckets = new Map<AgentId, TokenBucket>()
  return (agent_id: AgentId, now_ms: number): number => {
    const bucket = buckets.get(agent_id) ?? { tokens: RATE.burst, at_ms: now_ms }
    const [next, wait_ms] = take(bucket, RATE, now_ms)
    buckets.set(agent_id, next)
    return wait_ms
  }
}

/** The findings of choird about a request before it is stored. */
type Examined = Pick<Preview, "shown"> & { readonly facts: unknown }

const sameSources = (named: ReadonlyArray<Source>, logged: ReadonlyArray<Source> = []): boolean =>
  named.length === logged.length && named.every((source) => logged.includes(source))

/** Whether this very call is open and waits for a person. */
export const isAsked = (
  state: SessionState,
  call_id: CallId,
  { input, lane, sources, tool, why }: ConfirmTool
): boolean => {
  const call = laneOf(state, lane)?.calls.find((open) => open.call_id === call_id)
  return (
    call?.stage === "requested" &&
    call.confirm === why &&
    (sources === undefined || sameSources(sources, call.sources)) &&
    call.name.replaceAll(".", "-") === toWireName(tool) &&
    call.digest === callDigest(call.name, input)
  )
}

/** The lane that has this very proposal as an open call that has begun. */
export const proposedOn = (
  state: SessionState,
  call_id: CallId,
  kind: ProposalKind,
  payload: Schema.Json
): LaneId | undefined => {
  const lanes = [{ lane: EDGE, calls: state.edge.calls }, ...state.cores.values()]
  for (const { calls, lane } of lanes) {
    const call = calls.find((open) => open.call_id === call_id)
    if (call === undefined) continue
    return call.stage === "committed" && isProposal(call, kind, payload) ? lane : undefined
  }
  return undefined
}

const decodeTools = Schema.decodeUnknownOption(Schema.Struct({ tools_sha256: Sha256 }))

/** Whether a person was asked about the call of a tool that the image has no more: another program may have its name. */
const isOfOtherTools = ({ facts, status }: rows.ApprovalRow, tools: string | undefined): boolean =>
  (status === "pending" || status === "approved") &&
  tools !== undefined &&
  Option.exists(decodeTools(facts), ({ tools_sha256 }) => tools_sha256 !== tools)

/** The job of a lane, which no later job of the same name is. */
const jobIdOf = ({ cores }: SessionState, lane: LaneId): string | null => {
  const job = jobOf(lane)
  return job === undefined ? null : (cores.get(job)?.job_id ?? null)
}

/** Approvals of one session that wait for a person; the next request is refused. */
export const APPROVALS_PENDING_MAX = 8

export interface ApprovalRequest {
  readonly request_type: string
  readonly payload: Schema.Json
  readonly call_id: CallId
}

/** The lane that waits for a decision, or proposes, by the stored log; undefined if there is none. */
const askingLane = (state: SessionState, call_id: CallId, asked: Understood): LaneId | undefined => {
  if (asked.type === "proposal") return proposedOn(state, call_id, asked.proposal.kind, asked.payload)
  return isAsked(state, call_id, asked.call) ? asked.call.lane : undefined
}

/**
 * Makes the preview of what a proposal would change, or the page that a call in the browser acts on. Reading a repository runs programs and takes
 * time, so there is none for what was previewed before, or if no further row may wait. A refused proposal leaves no row, so previews have a budget of their own. No
 * transaction is open meanwhile.
 */
const makeLook = Effect.gen(function* () {
  const events = yield* EventStore
  const proposals = yield* Proposals
  const lookBudget = makeLookBudget()
  const pageFacts = yield* makePageFacts
  return Effect.fnUntraced(function* (
    { agent_id, session_id }: Caller,
    { call_id }: ApprovalRequest,
    asked: Understood
  ) {
    const earlier = yield* Effect.orDie(rows.findCall(session_id, call_id))
    if (earlier !== undefined) return undefined
    const state = yield* Effect.orDie(events.state(session_id))
    if (askingLane(state, call_id, asked) === undefined) return undefined
    const waiting = yield* Effect.orDie(rows.countPending(session_id))
    if (waiting >= APPROVALS_PENDING_MAX) return { type: "full", waiting } as const
    if (asked.type !== "proposal") {
      const shown = yield* pageFacts(session_id, call_id, asked.call)
      const found: Examined | undefined = shown === undefined ? undefined : { shown, facts: null }
      return found
    }
    const wait_ms = lookBudget(agent_id, yield* monotonicMs)
    if (wait_ms > 0)
      return yield* new ApprovalRefused({
        kind: "RATE_LIMITED",
        reason: `too many proposals in a short time: try again in ${Math.ceil(wait_ms / 1000)} s`,
        hint: "wait, then ask again",
        retry_after_ms: wait_ms
      })
    return yield* proposals.preview({ agent_id, session_id }, asked.proposal)
  })
})

/** Stores a request that no earlier one has made, unless a grant allows the call, and asks a person. */
const store = Effect.fnUntraced(
  function* (
    { agent_id, session_id }: Caller,
    { call_id, request_type }: ApprovalRequest,
    asked: Understood,
    examined: Examined | undefined
  ) {
    const config = yield* ConfigStore
    const events = yield* EventStore
    const outbox = yield* Outbox
    const sql = yield* SqlClient.SqlClient
    const session = yield* lockSession(session_id)
    const earlier = yield* rows.findCall(session_id, call_id)
    const tools_sha256 = session && toolsDigest(config.home, agent_id, session.image_version)
    const tools = asked.type === "confirm_tool" ? toolsOf(asked.call.tool, { tools_sha256 }) : undefined
    if (earlier !== undefined) {
      const isOther = rows.isConfirmation(earlier) && isOfOtherTools(earlier, tools)
      return { type: "earlier", row: earlier, rev: session?.last_rev ?? 0, isOther } as const
    }
    const state = yield* events.state(session_id)
    const lane = askingLane(state, call_id, asked)
    if (session === undefined || lane === undefined) return { type: "not open" } as const
    const now_ms = yield* Clock.currentTimeMillis
    const job_id = jobIdOf(state, lane)
    const holder = { agent_id, session_id, job_id, tools_sha256 }
    const grant_id = asked.type === "confirm_tool" ? ((yield* useGrant(holder, asked.call, now_ms)) ?? null) : null
    const waiting = grant_id === null ? yield* rows.countPending(session_id) : 0
    if (waiting >= APPROVALS_PENDING_MAX) return { type: "full", waiting } as const
    const { config: running } = yield* config.current
    const place = { state, dms: session.dms }
    const unread = grant_id === null ? yield* countUnread(running, { agent_id, lane, request_type }, place) : 0
    if (unread >= APPROVALS_UNREAD_MAX) return { type: "unread", unread } as const
    const { canonical, hash, summary } = asked
    const row = yield* rows.insertApproval({
      session_id,
      agent_id,
      call_id,
      request_type,
      canonical,
      hash,
      summary,
      lane,
      job_id,
      grant_id,
      examined,
      tools_sha256: tools,
      now_ms,
      expires_ms: now_ms + running.approvals.timeout_ms
    })
    if (grant_id !== null) return { type: "granted", row, grant_id } as const
    const freeOf = (tool: string) => freeOfTool(config.home, agent_id, session.image_version, tool)
    const dms = yield* tellAsked(running, row, { text: shownText(row), ...place, freeOf })
    yield* sql.afterCommit(Effect.forEach(dms, outbox.wake, { discard: true }))
    return { type: "asked", row } as const
  },
  (effect) => Effect.orDie(inTransaction(Effect.orDie(effect)))
)

export const makeAsk = Effect.gen(function* () {
  const events = yield* EventStore
  const look = yield* makeLook
  const context = Context.pick(
    ConfigStore,
    EventStore,
    Outbox,
    SqlClient.SqlClient
  )(yield* Effect.context<ConfigStore | EventStore | Outbox | SqlClient.SqlClient>())

  /** The result of a decoded request: a new or an earlier row, no such call in the log, or too many waiting rows. */
  return Effect.fnUntraced(function* (caller: Caller, request: ApprovalRequest, asked: Understood) {
    // A long log is folded before its session is locked.
    yield* Effect.ignore(events.state(caller.session_id))
    const examined = yield* look(caller, request, asked)
    if (examined !== undefined && "type" in examined) return examined
    return yield* store(caller, request, asked, examined)
  }, Effect.provideContext(context))
})
