/** The push stream: rows of the `signals` table per session, and two signals that are computed at connect (wire.md). */
import { Context, type Effect, type Stream } from "effect"
import type { JobName, SessionId } from "#schema/Ids.ts"
import type { Signal } from "#schema/Signal.ts"

/** A signal with its row id; the computed ones have none. */
export interface Pushed {
  readonly id: string | undefined
  readonly signal: Signal
}

/** Queues signals for agents and streams them. */
export class Signals extends Context.Service<
  Signals,
  {
    /** Asks a session's agent to cancel a job; answers the signal's id. */
    cancelCore(session_id: SessionId, job_name: JobName): Effect.Effect<string>
    /** Asks for a graceful stop within the time; told again at each connect until the session ends. */
    stop(session_id: SessionId, deadline_ms: number): Effect.Effect<void>
    /** Unacknowledged rows after the given id, then new ones as they come. Never ends by itself. */
    stream(session_id: SessionId, after: string | undefined): Stream.Stream<Pushed>
    /** Makes the streams of a session look at the table again; called after a commit that added rows. */
    wake(session_id: SessionId): Effect.Effect<void>
  }
>()("choir/choird/Signals") {}
