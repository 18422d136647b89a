/** The sessions table: who ran when, on what, in which epoch. */
import { Context, type Effect, type Option, type Schema } from "effect"
import type { ResourceBindings } from "#schema/Config.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { SessionStatus } from "#schema/OperatorApi.ts"

export interface SessionRow {
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly status: SessionStatus
  readonly started_at: string
  readonly ended_at: string | null
  readonly resource_bindings: ResourceBindings
  readonly epoch: number
  readonly last_rev: number
  readonly frozen_reason: string | null
  readonly image_version: string
  /** The runtime's identity of the newest container, to end it in a later life of choird. */
  readonly container: Schema.Json
}

/** Keeps the sessions table. Database failures are defects here: choird stops rather than guess. */
export class SessionStore extends Context.Service<
  SessionStore,
  {
    /** A new session in epoch 1 with a new id; the agent's unacknowledged inbox rows become its signals. */
    create(agent_id: AgentId, bindings: ResourceBindings, image_version: string): Effect.Effect<SessionRow>
    /** The same session in the next epoch, active again; inbox rows that came meanwhile become its signals. */
    resume(session_id: SessionId, bindings: ResourceBindings, image_version: string): Effect.Effect<SessionRow>
    /** Remembers the container of an epoch. */
    recordContainer(session_id: SessionId, epoch: number, container: Schema.Json): Effect.Effect<void>
    /** Ends it with a status; its tokens are dead from here on. */
    end(session_id: SessionId, status: Exclude<SessionStatus, "active">): Effect.Effect<void>
    /** Marks it as one that only `--fresh` leaves behind (CONFLICT, or an event that the fold refuses). */
    freeze(session_id: SessionId, reason: string): Effect.Effect<void>
    get(session_id: SessionId): Effect.Effect<Option.Option<SessionRow>>
    /** Newest first, at most SESSIONS_LISTED_MAX. */
    list(agent_id?: AgentId): Effect.Effect<ReadonlyArray<SessionRow>>
    /** The newest session of an agent. */
    latest(agent_id: AgentId): Effect.Effect<Option.Option<SessionRow>>
    readonly active: Effect.Effect<ReadonlyArray<SessionRow>>
  }
>()("choir/choird/SessionStore") {}
