/** A database that is away must not end what can wait for it, however long that takes. */
import { Data, Effect, Schedule } from "effect"
import { SqlError } from "effect/sql"
import { isConnectionLost, mayPass } from "#src/choird/database/sqlState.ts"

/** The first and the longest pause between two tries. */
const FIRST_WAIT_MS = 1000
export const DATABASE_WAIT_MS_MAX = 60_000

class DatabaseAway extends Data.TaggedError("DatabaseAway") {}

const isAway = (defect: unknown) => SqlError.isSqlError(defect) && (isConnectionLost(defect) || mayPass(defect))

const waits = Schedule.min([Schedule.exponential(FIRST_WAIT_MS), Schedule.spaced(DATABASE_WAIT_MS_MAX)])

/**
 * The stores make defects of database failures. Those that may pass are tried again for as long as it takes, so that the end of an outage
 * needs no operator.
 */
export const patiently = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  work.pipe(
    Effect.catchDefect((defect) =>
      isAway(defect)
        ? Effect.andThen(Effect.logWarning("the database does not answer, trying again"), new DatabaseAway())
        : Effect.die(defect)
    ),
    Effect.retry({ while: (error) => error instanceof DatabaseAway, schedule: waits }),
    // Never left over: it is tried again without end.
    Effect.catchIf((error) => error instanceof DatabaseAway, Effect.die)
  )
