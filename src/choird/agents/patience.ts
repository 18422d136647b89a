/** A database that is away for a while must not end what can wait for it (R3). */
import { Data, Effect, Schedule } from "effect"
import { SqlError } from "effect/sql"
import { isConnectionLost } from "#src/choird/database/sqlState.ts"
import { DATABASE_PATIENCE_MS_MAX, DATABASE_RETRY_MS_MAX } from "#src/shared/limits.ts"

class DatabaseAway extends Data.TaggedError("DatabaseAway")<{ readonly defect: unknown }> {}

/** The stores make defects of database failures; a lost connection among them is worth another try for some minutes. */
export const patiently = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  work.pipe(
    Effect.catchDefect((defect) =>
      SqlError.isSqlError(defect) && isConnectionLost(defect)
        ? Effect.andThen(
            Effect.logWarning("the database does not answer, trying again"),
            Effect.fail(new DatabaseAway({ defect }))
          )
        : Effect.die(defect)
    ),
    Effect.retry({
      while: (error) => error instanceof DatabaseAway,
      schedule: Schedule.spaced(DATABASE_RETRY_MS_MAX).pipe(Schedule.upTo({ duration: DATABASE_PATIENCE_MS_MAX }))
    }),
    Effect.catchIf(
      (error) => error instanceof DatabaseAway,
      ({ defect }) => Effect.die(defect)
    )
  )
