/** The chunks of an agent's sessions: made after a session has ended, from a job table, and moved to long-term memory as sessions grow old. */
import { Context, type Effect, type Scope } from "effect"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"

export class SessionMemory extends Context.Service<
  SessionMemory,
  {
    /** Looks for jobs at once: a session ended. */
    readonly wake: Effect.Effect<void>
    /** Works in the background until the scope closes. */
    readonly run: Effect.Effect<void, never, Scope.Scope>
    /** Works until no job is due. */
    readonly drain: Effect.Effect<void>
    /** Deletes a session's chunks and summaries and asks for new chunks of what its log still holds. */
    again(agent_id: AgentId, session_id: SessionId): Effect.Effect<void, DatabaseAway>
  }
>()("choir/choird/SessionMemory") {}
