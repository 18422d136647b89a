/** A rule of another part that an append keeps, in the transaction that stores the events. */
import { Context, type Effect, type Result } from "effect"
import type { SqlError } from "effect/sql"
import type { ChoirEvent } from "#schema/Event.ts"
import type { SessionId } from "#schema/Ids.ts"
import type { SessionState } from "#src/shared/session/State.ts"

export class AppendRules extends Context.Service<
  AppendRules,
  {
    /**
     * Judges events before they are stored, under the lock of their session's row. Answers the work for the same transaction once they are
     * stored, or why they cannot be, which freezes the session. `before` is the fold of what is stored.
     */
    judge(
      session_id: SessionId,
      before: SessionState,
      events: ReadonlyArray<ChoirEvent>
    ): Effect.Effect<Result.Result<Effect.Effect<void, SqlError.SqlError>, string>, SqlError.SqlError>
  }
>()("choir/choird/AppendRules") {}
