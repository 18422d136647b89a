/**
 * The life of each agent: build, start, crash, restart, stop. One scope per running agent holds its lease, its socket, its
 * container and its push stream; stopping the agent is closing that scope.
 */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { ResourceBindings } from "#schema/Config.ts"
import { AgentId, type SessionId } from "#schema/Ids.ts"
import type { AgentStatus, StartAgent } from "#schema/OperatorApi.ts"

/** Why an agent cannot do what was asked, with what to do about it. `kind` is also the API's error type. */
export class AgentRefused extends Schema.TaggedError<AgentRefused>()("AgentRefused", {
  kind: Schema.Literals([
    "UNKNOWN_AGENT",
    "ALREADY_RUNNING",
    "NOT_RUNNING",
    "NOT_READY",
    "FROZEN",
    "BUSY",
    "START_FAILED"
  ]),
  agent_id: AgentId,
  reason: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

/** What is known of an agent without asking the database. */
export interface AgentView {
  readonly agent_id: AgentId
  readonly status: AgentStatus
  readonly session_id: SessionId | null
  readonly epoch: number
  readonly bindings: ResourceBindings | null
  readonly image_version: string | null
  readonly since_ms: number
  readonly config_version: number
  readonly reason: string | null
}

/** Starts, watches and stops agents. At most one instance of each (invariant 11). */
export class Lifecycle extends Context.Service<
  Lifecycle,
  {
    readonly list: Effect.Effect<ReadonlyArray<AgentView>>
    view(agent_id: AgentId): Effect.Effect<AgentView, AgentRefused>
    /** Leases, builds nothing, starts the container and waits for INIT_HELLO, at most AGENT_START_MS_MAX. Resumes unless `fresh`. */
    start(agent_id: AgentId, options: StartAgent): Effect.Effect<AgentView, AgentRefused>
    /** Graceful: safe point, flush, TERMINATE_SELF; then kill after AGENT_STOP_MS_MAX, and say what was lost. */
    stop(agent_id: AgentId): Effect.Effect<AgentView, AgentRefused>
    /** Stop and start with the same bindings. */
    restart(agent_id: AgentId): Effect.Effect<AgentView, AgentRefused>
    /** Ends what an earlier life of choird left running, then resumes each session that was active. */
    readonly recover: Effect.Effect<void>
    /** An agent said INIT_HELLO: the start is complete. */
    hello(session_id: SessionId, epoch: number): Effect.Effect<void>
    /** A heartbeat arrived, whatever became of it; liveness is its arrival (D8). */
    heard(session_id: SessionId, config_version: number): Effect.Effect<void>
    /** TERMINATE_SELF was accepted: the exit that follows is no crash. `closed` is a session at its budget. */
    terminating(session_id: SessionId, reason: string): Effect.Effect<void>
    /** Views as they change. */
    readonly changes: Stream.Stream<AgentView>
  }
>()("choir/choird/Lifecycle") {}
