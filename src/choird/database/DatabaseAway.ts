/** The one failure of the database that its users see, how it comes about, and how to wait until it has passed. */
import { type Cause, Effect, Schedule, Schema } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { isConnectionLost, mayPass, sqlProblem } from "./sqlState.ts"

/** The first and the longest pause between two tries. */
const FIRST_WAIT_MS = 1000
const DATABASE_WAIT_MS_MAX = 60_000

/** The database is unreachable, starting, busy or full. The same request may succeed later. */
export class DatabaseAway extends Schema.TaggedError<DatabaseAway>()("DatabaseAway", {
  /** The server's, the network's or the client's own words. */
  problem: Schema.String
}) {
  override get message() {
    return `the database does not answer: ${this.problem}`
  }
}

/** The absence of the database as a reason of an error or defect; undefined for every other one, such as a mistake in a statement. */
const awayOf = (error: unknown): DatabaseAway | undefined => {
  if (error instanceof DatabaseAway) return error
  if (!SqlError.isSqlError(error)) return undefined
  return isConnectionLost(error) || mayPass(error) ? new DatabaseAway({ problem: sqlProblem(error) }) : undefined
}

/** The absence of the database among the reasons of a failure, whether or not it was left as a defect. */
export const awayIn = (cause: Cause.Cause<unknown>): DatabaseAway | undefined => {
  for (const reason of cause.reasons) {
    const error = reason._tag === "Fail" ? reason.error : reason._tag === "Die" ? reason.defect : undefined
    const away = awayOf(error)
    if (away !== undefined) return away
  }
  return undefined
}

type Typed<E> = Exclude<E, SqlError.SqlError> | DatabaseAway

/** Gives work the database of the context. Its failures become {@link DatabaseAway} if they may pass, and defects otherwise. */
export const useDatabase = Effect.map(
  SqlClient.SqlClient,
  (sql) =>
    <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, Typed<E>, Exclude<R, SqlClient.SqlClient>> =>
      Effect.provideService(typed(work), SqlClient.SqlClient, sql)
)

/** Gives work the database of the context, with its failures as they are. */
export const provideDatabase = Effect.map(
  SqlClient.SqlClient,
  (sql) =>
    <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, SqlClient.SqlClient>> =>
      Effect.provideService(work, SqlClient.SqlClient, sql)
)

const typed = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.catchIf(work, SqlError.isSqlError, (error): Effect.Effect<never, DatabaseAway> => {
    const away = awayOf(error)
    return away === undefined ? Effect.die(error) : Effect.fail(away)
  }) as Effect.Effect<A, Typed<E>, R>

/** Work in a transaction of the context's database. */
export const inTransaction = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(work))

const waits = Schedule.min([Schedule.exponential(FIRST_WAIT_MS), Schedule.spaced(DATABASE_WAIT_MS_MAX)])

const isAway = <E>(error: E): error is Extract<E, DatabaseAway> => error instanceof DatabaseAway

/** Repeats work until the database is back, however long that takes, so that the end of an outage needs no operator. */
export const retryDatabase = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, Exclude<E, DatabaseAway>, R> =>
  work.pipe(
    Effect.tapError((error) =>
      isAway(error) ? Effect.logWarning("the database does not answer, trying again") : Effect.void
    ),
    Effect.retry({ while: isAway, schedule: waits }),
    // Never left over: it is tried again without end.
    Effect.catchIf(isAway, Effect.die)
  ) as Effect.Effect<A, Exclude<E, DatabaseAway>, R>

/** Leaves an absent database to the boundary of the request or the fiber, for work that has no answer of its own to it. */
export const databaseDefect = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, Exclude<E, DatabaseAway>, R> =>
  Effect.catchIf(work, isAway, Effect.die) as Effect.Effect<A, Exclude<E, DatabaseAway>, R>
