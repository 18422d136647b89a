/**
 * choird's tables in memory, outside of every crash. A transaction is one synchronous call: it happens whole or not at all, and what
 * choird had only in memory is lost with it. The decisions about patches are choird's own code (`decideAppend.ts`).
 */
import { Result } from "effect"
import type { Caller, Heartbeat, HeartbeatReply, Snapshot } from "#schema/AgentApi.ts"
import { type ChoirEvent, isKnownEvent } from "#schema/Event.ts"
import { AgentId, InboxId, type JobName, ResourceName, SessionId, SignalId } from "#schema/Ids.ts"
import type { Signal } from "#schema/Signal.ts"
import type { Summary } from "#schema/Summary.ts"
import { carriedSources, isLimitEnd } from "#src/choird/sessions/carryOver.ts"
import { signalIdOf } from "#src/choird/sessions/projections.ts"
import { admit, decide, prepare } from "#src/choird/sessions/decideAppend.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { genesis, hex } from "#src/shared/events/hashChain.ts"
import { initialState } from "#src/shared/session/fold.ts"
import { oldestNamed } from "#src/shared/session/namedRevs.ts"
import { encodeState, FOLD_VERSION } from "#src/shared/session/snapshot.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { turnToStop } from "#src/shared/session/turns.ts"
import { ApprovalTable } from "./ApprovalTable.ts"
import type { Faults } from "./Faults.ts"
import type { Seed } from "./Seed.ts"
import { APPEND_RETRY_MS } from "#src/choird/sessions/EventStore.ts"

export const AGENT = AgentId.make("sim")
const DM = ResourceName.make("me")
/** A second person of the same agent. */
const OTHER_DM = ResourceName.make("us")

/** The DM in which a message was written: two people write in turn. */
export const dmOf = (inbox_id: string): ResourceName => (Number(inbox_id) % 2 === 0 ? OTHER_DM : DM)

/** Events after which a state is written down; few, so that most recoveries begin with one. */
const SNAPSHOT_EVENTS = 20

const snapshotOf = ({ events, hash, session_id, state }: SessionTable): Snapshot => {
  const text = Result.getOrThrowWith(encodeState(state), (reason) => new Error(reason))
  const rev = oldestNamed(state) - 1
  const tail_after = { rev, hash: hex(events[rev - 1]?.hash ?? genesis(session_id)) }
  return { rev: state.rev, hash: hex(hash), fold_version: FOLD_VERSION, state: JSON.parse(text), tail_after }
}

export interface StoredRow {
  readonly event: ChoirEvent
  readonly canonical: string
  /** The payload's canonical text. */
  readonly payload: string
  readonly hash: Buffer
  /** The epoch whose token brought it. */
  readonly epoch: number
}

export interface SessionTable {
  readonly session_id: SessionId
  status: "active" | "stopped" | "crashed" | "closed"
  epoch: number
  frozen_reason: string | null
  readonly events: Array<StoredRow>
  state: SessionState
  hash: Buffer
  /** The newest written state, and the place that the tail follows which belongs to it. */
  snapshot: Snapshot | undefined
  /** As its agent gave it with its goodbye. */
  summary?: Summary
}

export interface InboxRow {
  readonly inbox_id: string
  readonly text: string
  readonly forwarded: boolean
  session_id: SessionId | undefined
  acked_rev: number | undefined
  /** A session that reached a limit left it to the next one. */
  carried?: boolean
}

interface SignalRow {
  readonly signal_id: string
  readonly session_id: SessionId
  /** What it says; of a message only the inbox row. */
  readonly says: Signal | { readonly type: "UserMessage"; readonly inbox_id: string }
  acked_rev: number | undefined
}

export interface OutboxRow {
  readonly source_id: string
  readonly kind: "reply" | "notice" | "report"
  /** Where what it answers was written; what answers no message goes to the first person. */
  readonly dm: ResourceName
  delivered: boolean
}

export class Database {
  readonly sessions = new Map<SessionId, SessionTable>()
  readonly inbox: Array<InboxRow> = []
  readonly signals: Array<SignalRow> = []
  readonly outbox: Array<OutboxRow> = []
  readonly approvals = new ApprovalTable({
    resolved: ({ approval_id, session_id }, status, note) => {
      const session = this.sessions.get(session_id)?.status
      const says = { type: "ApprovalResolved", approval_id, status } as const
      if (note === undefined && session === "active") this.#signal(session_id, says)
      const signal_id = SignalId.make(String(this.#signals + 1))
      if (note !== undefined && session !== "closed") this.#signal(session_id, { ...says, signal_id, note })
    },
    heard: ({ approval_id }) => {
      for (const row of this.signals)
        if ("approval_id" in row.says && row.says.approval_id === approval_id) row.acked_rev ??= 0
    }
  })
  /** Sees each stored row and each change of an epoch, as the invariants do. */
  onStored: (session: SessionTable, rows: ReadonlyArray<StoredRow>) => void = () => undefined
  onFrozen: (session: SessionTable, reason: string) => void = () => undefined
  #signals = 0
  #away_until = 0
  readonly #draw: Seed
  readonly #faults: Faults

  constructor(draw: Seed, faults: Faults) {
    this.#draw = draw
    this.#faults = faults
  }

  /** Nothing answers for a while; what was under way was not committed. */
  leave(until: number): void {
    this.#away_until = until
  }

  isAway(now: number): boolean {
    return now < this.#away_until
  }

  /** What a transaction takes; a slow one may find that its caller has been fenced meanwhile. */
  latency_ms(): number {
    if (this.#faults.active("database") && this.#draw.chance(0.05)) return this.#draw.wait(4000)
    return this.#draw.chance(0.9) ? 1 : this.#draw.wait(15)
  }

  active(): SessionTable | undefined {
    return [...this.sessions.values()].find(({ status }) => status === "active")
  }

  latest(): SessionTable | undefined {
    return [...this.sessions.values()].at(-1)
  }

  create(): SessionTable {
    const last = this.latest()
    const session_id = SessionId.make(`s${String(this.sessions.size + 1).padStart(15, "0")}`)
    const session: SessionTable = {
      session_id,
      status: "active",
      epoch: 1,
      frozen_reason: null,
      events: [],
      state: initialState,
      hash: genesis(session_id),
      snapshot: undefined
    }
    this.sessions.set(session_id, session)
    if (last !== undefined) this.#continue(last, session_id)
    this.#signalInbox(session_id)
    return session
  }

  /** As `continueLast` of choird tells a new session of the one before. */
  #continue({ session_id, state, status, summary }: SessionTable, next: SessionId): void {
    if (status !== "closed" || state.ended !== "budget" || summary === undefined) return
    const signal_id = SignalId.make(String(this.#signals + 1))
    const sources = carriedSources(state.edge)
    this.#signal(next, { type: "Continue", signal_id, session_id, summary, sources })
  }

  resume(session: SessionTable): void {
    session.status = "active"
    session.epoch++
    for (const row of this.signals) {
      if (row.session_id !== session.session_id || row.acked_rev !== undefined || !("inbox_id" in row.says)) continue
      const { inbox_id } = row.says
      const message = this.inbox.find((other) => other.inbox_id === inbox_id)
      if (message?.acked_rev !== undefined || message?.session_id !== session.session_id) row.acked_rev = 0
    }
    this.#signalInbox(session.session_id)
  }

  /** A person's message, which somebody else may have written. */
  say(text: string, forwarded = false): void {
    this.inbox.push({
      inbox_id: String(this.inbox.length + 1),
      text,
      forwarded,
      session_id: undefined,
      acked_rev: undefined
    })
    const session = this.active()
    if (session !== undefined) this.#signalInbox(session.session_id)
  }

  #signalInbox(session_id: SessionId): void {
    for (const message of this.inbox) {
      if (message.acked_rev !== undefined || message.session_id === session_id) continue
      message.session_id = session_id
      this.#signal(session_id, { type: "UserMessage", inbox_id: message.inbox_id })
    }
  }

  #signal(session_id: SessionId, says: SignalRow["says"]): void {
    this.signals.push({ signal_id: String(++this.#signals), session_id, says, acked_rev: undefined })
  }

  /** What a person asks of a running session beside messages. */
  order(
    order:
      | { readonly inject: string }
      | { readonly cancel: JobName }
      | { readonly compact: true }
      | { readonly stop: true }
  ): void {
    const session = this.active()
    if (session === undefined) return
    if ("stop" in order) return this.#stop(session)
    const signal_id = SignalId.make(String(this.#signals + 1))
    const says: Signal =
      "inject" in order
        ? { type: "Inject", signal_id, content: order.inject }
        : "cancel" in order
          ? { type: "CancelCore", signal_id, job_name: order.cancel }
          : { type: "Compact", signal_id }
    this.#signal(session.session_id, says)
  }

  /** As choird names the turn that is to stop. */
  #stop({ session_id, state }: SessionTable): void {
    const next = this.inbox.find((row) => row.session_id === session_id && row.acked_rev === undefined)
    const turn = turnToStop(state, next === undefined ? undefined : InboxId.make(next.inbox_id))
    if (turn === undefined) return
    this.#signal(session_id, { type: "StopTurn", signal_id: SignalId.make(String(this.#signals + 1)), turn })
  }

  /** Unacknowledged signals of a session after an id, as the push stream tells them. */
  pushes(session_id: SessionId, after: number): ReadonlyArray<{ readonly id: number; readonly signal: unknown }> {
    return this.signals
      .filter((row) => row.session_id === session_id && row.acked_rev === undefined && Number(row.signal_id) > after)
      .map(({ says, signal_id }) => {
        const id = Number(signal_id)
        if (says.type !== "UserMessage") return { id, signal: says }
        const {
          carried = false,
          forwarded = false,
          text = ""
        } = this.inbox.find((message) => message.inbox_id === says.inbox_id) ?? {}
        const created_at = "2026-01-01T00:00:00.000Z"
        return {
          id,
          signal: {
            ...says,
            dm: dmOf(says.inbox_id),
            text,
            attachments: [],
            created_at,
            ...(forwarded ? { forwarded } : {}),
            ...(carried ? { carried } : {})
          }
        }
      })
  }

  /** One heartbeat's patches, decided by choird's code and stored with all that follows from them (D4, D6). */
  append(caller: Caller, heartbeat: Heartbeat): Omit<HeartbeatReply, "config_version_latest"> {
    const { base_rev, new_rev } = heartbeat
    const session = this.sessions.get(caller.session_id)
    if (caller.standing === "superseded" || session === undefined) return { action: "FENCED", ack_rev: base_rev }
    const last_rev = session.events.length
    const row = { status: session.status, epoch: session.epoch, frozen_reason: session.frozen_reason, last_rev }
    const prepared = prepare(heartbeat)
    const early = admit(row, caller.epoch, heartbeat, prepared)
    const digestAt = (rev: number) => (rev === 0 ? genesis(session.session_id) : session.events[rev - 1]?.hash)
    const decision =
      early ??
      (prepared.type === "chain"
        ? decide(
            heartbeat,
            prepared.links,
            {
              at: { hash: session.hash, state: session.state },
              head: { rev: last_rev, hash: session.hash },
              problem: undefined
            },
            digestAt
          )
        : prepared)
    switch (decision.type) {
      case "fenced":
        return { action: "FENCED", ack_rev: base_rev }
      case "gap":
        return { action: "RESEND_FROM", ack_rev: last_rev, resend_from: last_rev + 1 }
      case "duplicate":
        return { action: "OK", ack_rev: last_rev }
      case "store": {
        const { hash, links, state } = decision
        const rows = links.flatMap(({ event, ...link }) =>
          isKnownEvent(event) ? [{ ...link, event, canonical: canonicalJson(event), epoch: caller.epoch }] : []
        )
        session.events.push(...rows)
        Object.assign(session, { state, hash })
        if (state.rev - (session.snapshot?.rev ?? 0) >= SNAPSHOT_EVENTS) session.snapshot = snapshotOf(session)
        for (const { event } of rows) this.#project(session, event)
        this.onStored(session, rows)
        return { action: "OK", ack_rev: new_rev }
      }
      case "conflict":
        session.frozen_reason ??= decision.reason
        this.onFrozen(session, decision.reason)
        return { action: "CONFLICT", ack_rev: last_rev }
      default:
        return { action: "CONFLICT", ack_rev: last_rev }
    }
  }

  /** Acknowledged messages and signals, and what people are to be told. */
  #project({ session_id }: SessionTable, event: ChoirEvent): void {
    this.approvals.follow(event)
    const signal_id = signalIdOf(event)
    const inbox_id = event.event_type === "UserMsg" ? event.payload.inbox_id : undefined
    for (const row of this.signals) {
      const carried = "inbox_id" in row.says ? row.says.inbox_id === inbox_id : row.signal_id === signal_id
      if (carried && row.session_id === session_id) row.acked_rev ??= event.rev
    }
    for (const message of this.inbox) {
      if (message.inbox_id !== inbox_id || message.acked_rev !== undefined) continue
      message.acked_rev = event.rev
      message.session_id = session_id
    }
    const left = isLimitEnd(event) ? event.payload.carried : undefined
    for (const message of this.inbox) {
      if (message.inbox_id !== left || message.session_id !== session_id) continue
      message.acked_rev = undefined
      message.carried = true
    }
    if (event.event_type !== "AgentMessage" || event.payload.text === undefined) return
    const { in_reply_to, kind } = event.payload
    const dm = in_reply_to === undefined ? DM : dmOf(in_reply_to)
    this.outbox.push({ source_id: `${session_id}:${event.rev}`, kind, dm, delivered: false })
  }

  /** What an agent is told when the database is away. */
  static readonly away = { action: "BACKOFF", retry_after_ms: APPEND_RETRY_MS } as const
}
