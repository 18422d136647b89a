import { PgClient } from "@effect/sql-pg"
import { Cause, Context, Effect, Fiber, Layer, Option, Schedule, Schema } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { type DatabaseDisplaced, type DatabaseFence, fenced, makeDatabaseFence } from "./DatabaseFence.ts"
import { DATABASE_RETRY_MS_MAX, type DatabaseTaken, holdDatabase } from "./DatabaseLock.ts"
import { type DatabaseLost, EMBEDDED_OPEN_MS_MAX, type EmbeddedOptions, openEmbedded } from "./EmbeddedPostgres.ts"
import { migrate, type MigrationFailed, type SchemaTooNew } from "./Migrations.ts"
import {
  addressOf,
  clientConfig,
  DatabaseRefused,
  DatabaseUnreachable,
  DatabaseUrlInvalid,
  PostgresAddress,
  type PostgresOptions,
  problemOf,
  ServerFacts
} from "./PostgresServer.ts"
import { isConnectionLost, lastingConnectionProblem, sqlProblem, sqlState } from "./sqlState.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Connections to the embedded database, whose one backend serves them in turn. */
export const EMBEDDED_CONNECTIONS_MAX = 8
/** How long choird keeps trying to reach Postgres before it gives up (D45). */
const DATABASE_REACH_MS_MAX = 60_000
/** How long `status` waits for the database before it says that it does not answer. */
const STATUS_DATABASE_MS_MAX = 2000

/** How a database is made ready. */
interface Preparation {
  /** Whether it is migrated first; true by default. False for work that migrates or replaces it itself. */
  readonly migrates?: boolean | undefined
  /** Whether other choirds are kept off it; a folder has its home's lock. */
  readonly alone?: boolean | undefined
}

type Lost = DatabaseLost | DatabaseTaken | DatabaseDisplaced

type Unusable =
  | DatabaseTaken
  | DatabaseRefused
  | DatabaseUnreachable
  | MigrationFailed
  | SchemaTooNew
  | SqlError.SqlError

/** choird's one database, migrated and ready: its layers also give the SQL client that works on it. */
export class Database extends Context.Service<
  Database,
  {
    readonly kind: "embedded" | "postgres"
    /** The server's version, such as `15.18`. */
    readonly version: string
    /** pgvector's version, such as `0.8.0`. */
    readonly pgvector: string
    /**
     * Fails when an embedded database ends by itself, and when another choird has taken a server's. A server that goes away and comes back
     * is only a failed query.
     */
    readonly lost: Effect.Effect<never, Lost>
    /** Whether it answers a query within STATUS_DATABASE_MS_MAX. */
    readonly answers: Effect.Effect<boolean>
  }
>()("choir/choird/Database") {
  /**
   * Postgres inside choird, in a folder. It survives the death of choird but not a loss of power, ignores the statement and lock
   * limits of R51, and has one backend: a query outside an open transaction waits until that transaction ends.
   */
  static readonly layerEmbedded = (options: EmbeddedOptions & Preparation) =>
    Layer.unwrap(
      Effect.map(openEmbedded(options), ({ lost, stream }) => {
        const client = clientLayer({
          stream,
          ssl: false,
          username: "postgres",
          database: "postgres",
          // Named statements would have to be kept apart on the one backend.
          prepare: false,
          maxConnections: EMBEDDED_CONNECTIONS_MAX,
          // A new connection waits for its turn behind whatever runs.
          connectTimeout: EMBEDDED_OPEN_MS_MAX
        })
        const address = new PostgresAddress({ host: options.folder, port: 0, database: "postgres", user: "postgres" })
        return ready({
          kind: "embedded",
          address,
          lost,
          reachMs: 0,
          migrates: options.migrates ?? true,
          fence: undefined
        }).pipe(Layer.provideMerge(client))
      })
    )

  /**
   * A Postgres server of version 15 or later with pgvector 0.7 or later. A server that does not answer is tried again for a
   * minute (D45); one that answers and cannot be used fails at once with the command that fixes it.
   */
  static readonly layerPostgres = (options: PostgresOptions & Preparation) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const address = addressOf(options)
        if (Option.isNone(address)) return yield* new DatabaseUrlInvalid()
        const { alone = false, migrates = true } = options
        const fence = alone ? makeDatabaseFence(address.value) : undefined
        const client = clientLayer(clientConfig(options), fence)
        const reachMs = options.reachMs ?? DATABASE_REACH_MS_MAX
        return ready({ kind: "postgres", address: address.value, lost: Effect.never, reachMs, migrates, fence }).pipe(
          Layer.provideMerge(client)
        )
      })
    )
}

const clientLayer = (config: PgClient.PgPoolConfig, fence?: DatabaseFence) =>
  PgClient.layerFrom(
    Effect.map(PgClient.make(config), (client) =>
      withTypedTransactions(fence === undefined ? client : fenced(client, fence))
    )
  )

const facts = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`SELECT
    current_setting('server_version_num')::int AS version_num,
    split_part(current_setting('server_version'), ' ', 1) AS version,
    current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS standby,
    current_setting('transaction_read_only') = 'on' AS read_only,
    (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector,
    (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS vector_available,
    (SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user) AS createrole,
    has_database_privilege(current_database(), 'CREATE') AS create`
  return yield* Effect.orDie(Schema.decodeUnknownEffect(Schema.Tuple([ServerFacts]))(rows))
})

const CANNOT_CONNECT_NOW = "57P03"
const TOO_MANY_CONNECTIONS = "53300"
const NO_DATABASE = "3D000"

/** Whether waiting may help: the server is unreachable or starting, or all its connections are taken. */
const isPassing = (error: SqlError.SqlError) =>
  (error.reason._tag === "ConnectionError" && lastingConnectionProblem(error) === undefined) ||
  [CANNOT_CONNECT_NOW, TOO_MANY_CONNECTIONS].includes(sqlState(error) ?? "")

const connectionProblem = (lasting: "tls" | "certificate" | "url", reason: string) => {
  if (lasting === "tls") return { _tag: "NoTls" } as const
  return lasting === "certificate" ? ({ _tag: "Certificate", reason } as const) : ({ _tag: "Url", reason } as const)
}

const refusal = (address: PostgresAddress, error: SqlError.SqlError) => {
  const reason = sqlProblem(error)
  const lasting = lastingConnectionProblem(error)
  if (lasting !== undefined) return new DatabaseRefused({ address, problem: connectionProblem(lasting, reason) })
  if (sqlState(error) === NO_DATABASE) return new DatabaseRefused({ address, problem: { _tag: "NoDatabase" } })
  return error.reason._tag === "AuthenticationError" || error.reason._tag === "AuthorizationError"
    ? new DatabaseRefused({ address, problem: { _tag: "Login", reason } })
    : error
}

/** Asks until the server answers, and logs that it waits. */
const reach = Effect.fnUntraced(function* (address: PostgresAddress, reachMs: number) {
  const started = yield* monotonicMs
  const waits = Schedule.min([Schedule.exponential("500 millis"), Schedule.spaced(DATABASE_RETRY_MS_MAX)])
  return yield* facts().pipe(
    Effect.tapError((error) =>
      isPassing(error)
        ? Effect.logWarning(`Postgres at ${address.toString()} does not answer, trying again: ${sqlProblem(error)}`)
        : Effect.void
    ),
    Effect.retry({
      schedule: waits.pipe(Schedule.upTo({ duration: reachMs })),
      while: isPassing
    }),
    Effect.catch(
      Effect.fnUntraced(function* (error) {
        if (!isPassing(error)) return yield* refusal(address, error)
        const waitedMs = (yield* monotonicMs) - started
        return yield* new DatabaseUnreachable({ address, waitedMs, problem: sqlProblem(error) })
      })
    )
  )
})

/** pgvector's version, after adding the extension when the database lacks it. */
const addVector = Effect.fnUntraced(function* (address: PostgresAddress, { vector, vector_available }: ServerFacts) {
  if (vector !== null) return vector
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE EXTENSION IF NOT EXISTS vector`.pipe(
    Effect.catchReason(
      "SqlError",
      "AuthorizationError",
      () => new DatabaseRefused({ address, problem: { _tag: "NoVector", available: true } })
    )
  )
  return vector_available ?? ""
})

interface Opened {
  readonly migrates: boolean
  /** Of a database that is to be this choird's alone. */
  readonly fence: DatabaseFence | undefined
  readonly kind: "embedded" | "postgres"
  readonly address: PostgresAddress
  readonly lost: Effect.Effect<never, DatabaseLost>
  readonly reachMs: number
}

const ready = ({
  address,
  fence,
  kind,
  lost,
  migrates,
  reachMs
}: Opened): Layer.Layer<Database, Unusable, SqlClient.SqlClient> =>
  Layer.effect(
    Database,
    Effect.gen(function* () {
      const [server] = yield* reach(address, reachMs)
      const problem = problemOf(server)
      if (problem !== undefined) return yield* new DatabaseRefused({ address, problem })
      const taken = fence === undefined ? Effect.never : yield* holdDatabase(address, fence)
      const pgvector = yield* addVector(address, server)
      const done = migrates ? yield* migrate() : []
      if (done.length > 0) yield* Effect.logInfo(`database migrated to ${done.at(-1)}`)
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Effect.scope
      let asking: Fiber.Fiber<boolean> | undefined
      const asked = sql`SELECT 1`.pipe(
        Effect.as(true),
        Effect.orElseSucceed(() => false),
        Effect.ensuring(Effect.sync(() => void (asking = undefined)))
      )
      // One question at a time, which outlives its askers: interrupting it takes as long as the database does not answer.
      const answers = Effect.gen(function* () {
        const fiber = asking ?? (yield* Effect.forkIn(asked, scope))
        asking = fiber
        const answer = yield* Effect.timeoutOption(Fiber.join(fiber), STATUS_DATABASE_MS_MAX)
        return Option.getOrElse(answer, () => false)
      })
      return Database.of({ kind, version: server.version, pgvector, lost: Effect.raceFirst(lost, taken), answers })
    })
  )

const lostConnection = (cause: Cause.Cause<unknown>): SqlError.SqlError | undefined => {
  for (const reason of cause.reasons) {
    if (!Cause.isDieReason(reason)) continue
    const { defect } = reason
    if (SqlError.isSqlError(defect) && isConnectionLost(defect)) return defect
  }
  return undefined
}

/**
 * The client, whose transactions fail with the `SqlError` when their connection dies. By itself the client makes a defect of every
 * failure, the work's own too, since it cannot roll back on a dead connection; the server has long done so.
 */
const withTypedTransactions = (client: PgClient.PgClient): PgClient.PgClient => {
  const { withTransaction } = client
  return Object.assign(client, {
    withTransaction: <R, E, A>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
      Effect.catchCause(withTransaction(work), (cause) => {
        const lost = lostConnection(cause)
        if (lost === undefined) return Effect.failCause(cause)
        const interrupts = cause.reasons.filter(Cause.isInterruptReason)
        return interrupts.length > 0 ? Effect.failCause(Cause.fromReasons(interrupts)) : Effect.fail(lost)
      })
  })
}
