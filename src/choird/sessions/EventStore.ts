/**
 * The durable replica of every session's log. choird stores events and never invents one: what an agent sends is checked
 * against revision, chain and fold, and answered as D4 says.
 */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { Caller, Heartbeat, HeartbeatReply } from "#schema/AgentApi.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { type AgentId, SessionId } from "#schema/Ids.ts"
import type { PrintedEvent, Verification } from "#schema/OperatorApi.ts"
import type { SessionState } from "#src/shared/session/State.ts"

export class SessionUnknown extends Schema.TaggedError<SessionUnknown>()("SessionUnknown", { session_id: SessionId }) {
  override get message() {
    return `there is no session ${this.session_id}`
  }
  get hint() {
    return "choirctl session list"
  }
}

/** Told after each append that stored something. */
export interface Appended {
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly events: ReadonlyArray<ChoirEvent>
  readonly state: SessionState
}

/** Appends, folds, reads and verifies the events of sessions. */
export class EventStore extends Context.Service<
  EventStore,
  {
    /**
     * Stores the patches of a heartbeat in one transaction with what follows from them: acknowledged inbox rows and signals,
     * and an outbox row for each AgentMessage (D6). Resent events are a no-op, a gap is asked for, a difference or a refused
     * event freezes the session, an older epoch is fenced (D4). Never fails for what the agent sent.
     */
    append(caller: Caller, heartbeat: Heartbeat): Effect.Effect<HeartbeatReply>
    /** The fold of what is acknowledged. */
    state(session_id: SessionId): Effect.Effect<SessionState, SessionUnknown>
    /** The newest acknowledged revision and digest. */
    head(session_id: SessionId): Effect.Effect<{ readonly rev: number; readonly hash: string }, SessionUnknown>
    /** A page of at most TAIL_PAGE_BYTES_MAX from a revision on, for recovery. */
    tail(
      session_id: SessionId,
      from: number
    ): Effect.Effect<{ readonly events: ReadonlyArray<ChoirEvent>; readonly more: boolean }, SessionUnknown>
    /** Stored events in order from a revision on, or the last few, then, when asked, what is appended after. */
    events(
      session_id: SessionId,
      options: { readonly from?: number; readonly last?: number; readonly follow: boolean }
    ): Stream.Stream<PrintedEvent, SessionUnknown>
    /** Recomputes the chain and the fold from the stored text alone. */
    verify(session_id: SessionId): Effect.Effect<Verification, SessionUnknown>
    /** Appends as they happen; a slow reader loses the oldest and reads the store instead. */
    readonly appended: Stream.Stream<Appended>
  }
>()("choir/choird/EventStore") {}
