/** One choird per database of a server: two would run the same agents, each ending those of the other as leftovers. */
import { Deferred, Effect, Runtime, Schedule, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { DatabaseFence } from "./DatabaseFence.ts"
import { PostgresAddress } from "./PostgresServer.ts"
import { DATABASE_FREED_MS_MAX } from "./DatabaseFence.ts"
import { logDeath } from "#src/shared/background.ts"

const DATABASE_LOCK_LOOK_MS = 100
/** The longest pause between two attempts to reach Postgres. */
export const DATABASE_RETRY_MS_MAX = 5000

/** "choird" in ASCII, the advisory lock that a choird holds for as long as it works on the database. */
const LOCK = 0x63686f697264

/** Another choird, of another home, works on this database. */
export class DatabaseTaken extends Schema.TaggedError<DatabaseTaken>()("DatabaseTaken", {
  address: PostgresAddress,
  /** The server's process that holds it for the other one. */
  backend: Schema.NullOr(Schema.Int)
}) {
  override readonly [Runtime.errorExitCode] = 75
  override get message() {
    const { address, backend } = this
    const free =
      backend === null
        ? ""
        : ` If that one's host is gone: ${address.psql(address.database, `SELECT pg_terminate_backend(${backend})`)}`
    return `another choird works on Postgres at ${address.toString()}: stop it, or give this home a database of its own.${free}`
  }
}

const holder = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(
    sql<{ readonly pid: number }>`SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND ((classid::bigint << 32) | objid::bigint) = ${LOCK}`,
    ([row]) => row?.pid ?? null
  )
)

/** Takes the lock on a connection of its own, which ends with the scope, and the lock with it. */
const take = Effect.fnUntraced(function* (address: PostgresAddress) {
  const sql = yield* SqlClient.SqlClient
  const connection = yield* sql.reserve
  const rows = yield* connection.execute("SELECT pg_try_advisory_lock($1::bigint) AS taken", [LOCK], undefined)
  if (Reflect.get(Object(rows[0]), "taken") !== true)
    return yield* new DatabaseTaken({ address, backend: yield* holder })
  return connection
})

/** How often the connection that holds the lock is checked. */
const LOCK_CHECK_MS = 1000

/**
 * Keeps every other choird off the database until the scope closes, and answers an effect that fails when the lock is lost. A server that
 * restarts forgets the lock: it is taken again, and lost only if another choird has or had it since. Waits a moment for a choird that has just
 * died. Tasks of choird take it too.
 */
export const holdDatabase = Effect.fn("DatabaseLock.hold")(function* (address: PostgresAddress, fence: DatabaseFence) {
  const sql = yield* SqlClient.SqlClient
  const schedule = Schedule.spaced(DATABASE_LOCK_LOOK_MS).pipe(Schedule.upTo({ duration: DATABASE_FREED_MS_MAX }))
  const held = yield* Deferred.make<void, Effect.Error<ReturnType<typeof take>>>()
  const lost = yield* Deferred.make<never, DatabaseTaken>()
  /** Returns when the connection has ended, and with it the lock. Each try has a connection of its own and gives it back. */
  const hold = (ready: Effect.Effect<unknown, SqlError.SqlError, SqlClient.SqlClient>) =>
    Effect.gen(function* () {
      const connection = yield* take(address)
      yield* ready
      yield* Deferred.succeed(held, undefined)
      const check = Effect.andThen(connection.execute("SELECT 1", [], undefined), Effect.sleep(LOCK_CHECK_MS))
      yield* Effect.ignore(Effect.forever(check))
    }).pipe(Effect.scoped)
  const again = hold(sql.withTransaction(Effect.void)).pipe(
    Effect.catchTag("SqlError", () => Effect.sleep(DATABASE_RETRY_MS_MAX)),
    Effect.forever,
    Effect.catchTag("DatabaseTaken", (taken) => Deferred.fail(lost, taken))
  )
  const first = Effect.retry(hold(fence.raise), { while: ({ _tag }) => _tag === "DatabaseTaken", schedule })
  const taken = Effect.raceFirst(Deferred.await(lost), fence.displaced)
  const holding = Effect.catch(Effect.andThen(first, again), (error) => Deferred.fail(held, error))
  // Without its keeper nobody would notice that the lock is lost, so its death is one of the database.
  const kept = Effect.ignore(Effect.raceFirst(holding, taken)).pipe(
    Effect.tapDefect((defect) => Effect.andThen(Deferred.die(held, defect), Deferred.die(lost, defect)))
  )
  yield* Effect.forkScoped(logDeath("the keeper of the database's lock")(kept))
  yield* Deferred.await(held)
  return taken
})
