/**
 * The fence around a database of a server: a choird that lost the database to another one cannot commit. Each choird that takes the
 * database writes a token of its own beside the data, where neither a backup nor a restore reaches it. Every transaction proves the
 * token first, and a taker waits for the transactions that have done so.
 */
import { randomUUID } from "node:crypto"
import { Context, Deferred, Effect, Option, Runtime, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { IDLE_IN_TRANSACTION_MS_MAX, PostgresAddress, STATEMENT_MS_MAX } from "./PostgresServer.ts"
import { sqlState } from "./sqlState.ts"

/** How long a choird waits for the database to be free of one that has just died, and how often it looks. */
export const DATABASE_FREED_MS_MAX = 3000

/** "choirf" in ASCII: shared by a transaction that has proved its token, exclusive for a new token. */
const LOCK = 0x63686f697266
const DISPLACED = "CH001"
/** The longest that a transaction of the last holder may still run. */
const TRANSACTION_MS_MAX = STATEMENT_MS_MAX + IDLE_IN_TRANSACTION_MS_MAX + DATABASE_FREED_MS_MAX

const STATEMENTS = [
  `CREATE SCHEMA IF NOT EXISTS choird`,
  `CREATE TABLE IF NOT EXISTS choird.holder (token uuid PRIMARY KEY, taken_at timestamptz NOT NULL DEFAULT now())`,
  // A function of its own snapshots: it reads the token after it has waited for the lock.
  `CREATE OR REPLACE FUNCTION choird.require_holder(wanted uuid) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(${LOCK});
      IF NOT EXISTS (SELECT FROM choird.holder WHERE token = wanted) THEN
        RAISE EXCEPTION 'another choird has taken this database' USING ERRCODE = '${DISPLACED}';
      END IF;
    END $$`,
  `DELETE FROM choird.holder`
]

/** Another choird works on this database, since this one lost its lock for a while. */
export class DatabaseDisplaced extends Schema.TaggedError<DatabaseDisplaced>()("DatabaseDisplaced", {
  address: PostgresAddress
}) {
  override readonly [Runtime.errorExitCode] = 75
  override get message() {
    return `another choird has taken Postgres at ${this.address.toString()} while this one could not reach it. choird is shutting down, so that the agents do not run twice; stop one of them, or give each home a database of its own`
  }
}

export interface DatabaseFence {
  /** Makes this choird the only one that can commit. Only for the holder of the database's lock. */
  readonly raise: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient>
  /** Proves within a transaction that no other choird has taken the database since; nothing before the fence is raised. */
  readonly prove: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient>
  /** Fails when another choird has taken the database; never returns. */
  readonly displaced: Effect.Effect<never, DatabaseDisplaced>
}

export const makeDatabaseFence = (address: PostgresAddress): DatabaseFence => {
  const lost = Deferred.makeUnsafe<never, DatabaseDisplaced>()
  let token: string | undefined
  const raise = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const own = randomUUID()
    yield* sql.withTransaction(
      Effect.gen(function* () {
        const limit = String(TRANSACTION_MS_MAX)
        yield* sql`SELECT set_config(name, ${limit}, true) FROM unnest(ARRAY['statement_timeout', 'lock_timeout']) AS name`
        yield* sql`SELECT pg_advisory_xact_lock(${LOCK})`
        yield* Effect.forEach(STATEMENTS, (statement) => sql.unsafe(statement), { discard: true })
        yield* sql`INSERT INTO choird.holder (token) VALUES (${own}::uuid)`
      })
    )
    token = own
  })
  const prove = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    if (token !== undefined) yield* sql`SELECT choird.require_holder(${token}::uuid)`
  }).pipe(
    Effect.tapError((error) =>
      sqlState(error) === DISPLACED ? Deferred.fail(lost, new DatabaseDisplaced({ address })) : Effect.void
    )
  )
  return { raise, prove, displaced: Deferred.await(lost) }
}

/** Whether a transaction only reads. Its data may be a moment old anyway, so it proves nothing and may choose its isolation first. */
export const ReadsOnly = Context.Reference<boolean>("choir/choird/ReadsOnly", { defaultValue: () => false })

/** The client, each of whose writing transactions proves that choird may still write. */
export const fenced = <Client extends SqlClient.SqlClient>(client: Client, fence: DatabaseFence): Client => {
  const { transactionService, withTransaction } = client
  return Object.assign(client, {
    withTransaction: <R, E, A>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
      Effect.gen(function* () {
        const outer = yield* Effect.serviceOption(transactionService)
        const proven = Option.isSome(outer) || (yield* ReadsOnly)
        const proof = Effect.provideService(fence.prove, SqlClient.SqlClient, client)
        return yield* withTransaction(proven ? work : Effect.andThen(proof, work))
      })
  })
}
