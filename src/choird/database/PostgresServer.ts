/** A Postgres server outside choird: its address, the connection to it, and its possible problems. */
import type { PgClient } from "@effect/sql-pg"
import { Option, Redacted, Schema } from "effect"

/** Connections to Postgres that choird keeps at most (R51). */
export const DATABASE_CONNECTIONS_MAX = 20
/** How long one SQL statement may run (R51). */
export const STATEMENT_MS_MAX = 10_000
/** How long a SQL statement waits for a lock (R51). */
const DATABASE_LOCK_MS_MAX = 2000
/** How long a transaction may wait for its own program; afterwards it is rolled back (R51). */
export const IDLE_IN_TRANSACTION_MS_MAX = 15_000
/** How long one attempt to connect to Postgres may take. */
const DATABASE_CONNECT_MS_MAX = 5000

export interface PostgresParts {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password?: Redacted.Redacted | undefined
  readonly ssl?: boolean | undefined
}

/** Where Postgres is: a `postgres://` URL, or its parts. */
type PostgresLocation = { readonly url: Redacted.Redacted } | PostgresParts

export type PostgresOptions = PostgresLocation & {
  /** At most this many connections, {@link DATABASE_CONNECTIONS_MAX} by default. */
  readonly connectionsMax?: number | undefined
  /** How long to keep trying when the server does not answer, in milliseconds. */
  readonly reachMs?: number | undefined
  /** How long one statement may run, {@link STATEMENT_MS_MAX} by default. */
  readonly statementMs?: number | undefined
  /** How long a statement waits for a lock, {@link DATABASE_LOCK_MS_MAX} by default. */
  readonly lockMs?: number | undefined
  /** How long a transaction waits for its own program, {@link IDLE_IN_TRANSACTION_MS_MAX} by default. */
  readonly idleInTransactionMs?: number | undefined
}

/** The part of a location that may be shown. */
export class PostgresAddress extends Schema.Class<PostgresAddress>("choir/choird/PostgresAddress")({
  host: Schema.String,
  port: Schema.Finite,
  database: Schema.String,
  user: Schema.String
}) {
  override toString() {
    return `${this.host}:${this.port}/${this.database}`
  }
  /** A psql call for an administrator of the server. */
  psql(database: string, statement: string) {
    return `psql -h ${this.host} -p ${this.port} -d ${database} -c '${statement}'`
  }
}

/** A server that did not answer at the address, or not in time. */
export class DatabaseUnreachable extends Schema.TaggedError<DatabaseUnreachable>()("DatabaseUnreachable", {
  address: PostgresAddress,
  waitedMs: Schema.Finite,
  problem: Schema.String
}) {
  override get message() {
    return `Postgres at ${this.address.toString()} did not answer within ${this.waitedMs / 1000} s (${this.problem}): start it, or correct "postgres" in config.json`
  }
}

/** The URL of Postgres cannot be read. It may hold a password, so no part of it is repeated. */
export class DatabaseUrlInvalid extends Schema.TaggedError<DatabaseUrlInvalid>()("DatabaseUrlInvalid", {}) {
  override get message() {
    return "the Postgres URL cannot be read: write postgres://USER:PASSWORD@HOST:PORT/DATABASE into the secret that postgres.url_secret names"
  }
}

const Problem = Schema.TaggedUnion({
  Login: { reason: Schema.String },
  /** The server has no TLS, and the url asks for it. */
  NoTls: {},
  Certificate: { reason: Schema.String },
  Url: { reason: Schema.String },
  Encoding: { encoding: Schema.String },
  /** A standby of another server. */
  Standby: {},
  ReadOnly: {},
  NoDatabase: {},
  OldServer: { version: Schema.String },
  NoVector: { available: Schema.Boolean },
  OldVector: { version: Schema.String },
  NoCreaterole: {},
  NoCreate: {}
})
type Problem = typeof Problem.Type

const POSTGRES_VERSION_MIN = 15
const VECTOR_VERSION_MIN = "0.7"

const fixOf = (address: PostgresAddress, problem: Problem): string => {
  const { database, host, port, user } = address
  switch (problem._tag) {
    case "Login":
      return `it refuses the user ${user} (${problem.reason}): correct the password with choirctl secret set, or the user in config.json`
    case "NoTls":
      return "it has no TLS, which sslmode in the url asks for: set ssl = on in its postgresql.conf, or take sslmode out of the url: choirctl secret set"
    case "Certificate":
      return `its certificate is not accepted (${problem.reason}): name its authority with tls.ca_file in config.json`
    case "Url":
      return `its url is not understood (${problem.reason}): correct it with choirctl secret set`
    case "NoDatabase":
      return `it has no database ${database}: createdb -h ${host} -p ${port} -O ${user} -E UTF8 -T template0 ${database}`
    case "Encoding":
      return `the database ${database} holds text as ${problem.encoding}, which has no place for most characters: createdb -h ${host} -p ${port} -O ${user} -E UTF8 -T template0 choir, then name that database`
    case "Standby":
      return "it is a standby, which can only be read: name the primary server"
    case "ReadOnly":
      return `the user ${user} may only read there: ${address.psql(database, `ALTER ROLE "${user}" SET default_transaction_read_only = off`)}`
    case "OldServer":
      return `it is version ${problem.version}, and Choir needs ${POSTGRES_VERSION_MIN} or later: upgrade the server`
    case "NoVector":
      return problem.available
        ? `only an administrator may add pgvector: ${address.psql(database, "CREATE EXTENSION vector")}`
        : `it lacks pgvector ${VECTOR_VERSION_MIN} or later: install it on the server (Debian: apt-get install postgresql-VERSION-pgvector), then ${address.psql(database, "CREATE EXTENSION vector")}`
    case "OldVector":
      return `its pgvector is ${problem.version}, and Choir needs ${VECTOR_VERSION_MIN} or later: upgrade it on the server, then ${address.psql(database, "ALTER EXTENSION vector UPDATE")}`
    case "NoCreaterole":
      return `the user ${user} may not create a role for each agent: ${address.psql(database, `ALTER ROLE "${user}" CREATEROLE`)}`
    case "NoCreate":
      return `the user ${user} may not create schemas: ${address.psql(database, `GRANT CREATE ON DATABASE "${database}" TO "${user}"`)}`
  }
}

/** Postgres answers but cannot be used as it is; waiting would not help. The message has the command that fixes it. */
export class DatabaseRefused extends Schema.TaggedError<DatabaseRefused>()("DatabaseRefused", {
  address: PostgresAddress,
  problem: Problem
}) {
  override get message() {
    return `Postgres at ${this.address.toString()} cannot be used: ${fixOf(this.address, this.problem)}`
  }
}

/** A server's facts about itself and about the rights of choird there. */
export const ServerFacts = Schema.Struct({
  version_num: Schema.Int,
  version: Schema.String,
  encoding: Schema.String,
  standby: Schema.Boolean,
  read_only: Schema.Boolean,
  vector: Schema.NullOr(Schema.String),
  vector_available: Schema.NullOr(Schema.String),
  createrole: Schema.Boolean,
  create: Schema.Boolean
})
export type ServerFacts = typeof ServerFacts.Type

const numbers = (version: string) => version.split(".").map(Number)
const older = (version: string, than: string) => {
  const [major = 0, minor = 0] = numbers(version)
  const [majorMin = 0, minorMin = 0] = numbers(than)
  return major < majorMin || (major === majorMin && minor < minorMin)
}

/** The problem that keeps choird from using a server, or `undefined`. An extension that is only available counts: it can be created. */
export const problemOf = (facts: ServerFacts): Problem | undefined => {
  const vector = facts.vector ?? facts.vector_available
  if (facts.version_num < POSTGRES_VERSION_MIN * 10_000) return { _tag: "OldServer", version: facts.version }
  if (facts.encoding !== "UTF8") return { _tag: "Encoding", encoding: facts.encoding }
  if (facts.standby) return { _tag: "Standby" }
  if (facts.read_only) return { _tag: "ReadOnly" }
  if (vector === null) return { _tag: "NoVector", available: false }
  if (older(vector, VECTOR_VERSION_MIN)) return { _tag: "OldVector", version: vector }
  if (!facts.createrole) return { _tag: "NoCreaterole" }
  if (!facts.create) return { _tag: "NoCreate" }
  return undefined
}

const PORT = 5432

/** The address of a location; `none` when its URL cannot be read. */
export const addressOf = (location: PostgresLocation): Option.Option<PostgresAddress> => {
  if (!("url" in location)) {
    const { database, host, port, user } = location
    return Option.some(new PostgresAddress({ database, host, port, user }))
  }
  const url = URL.parse(Redacted.value(location.url))
  if (url === null || !/^postgres(ql)?:$/u.test(url.protocol)) return Option.none()
  const user = url.searchParams.get("user") ?? url.username
  return Option.some(
    new PostgresAddress({
      host: url.searchParams.get("host") ?? (url.hostname === "" ? "localhost" : url.hostname),
      port: Number(url.searchParams.get("port") ?? (url.port === "" ? PORT : url.port)),
      database: url.searchParams.get("dbname") ?? (url.pathname.length > 1 ? url.pathname.slice(1) : user),
      user
    })
  )
}

/** The client's settings, with the time limits of R51 in each connection's startup packet. */
export const clientConfig = (options: PostgresOptions): PgClient.PgPoolConfig => ({
  ...("url" in options
    ? { url: options.url }
    : {
        host: options.host,
        port: options.port,
        database: options.database,
        username: options.user,
        password: options.password,
        ssl: options.ssl
      }),
  applicationName: "choird",
  connectTimeout: DATABASE_CONNECT_MS_MAX,
  maxConnections: options.connectionsMax ?? DATABASE_CONNECTIONS_MAX,
  startupParameters: {
    TimeZone: "UTC",
    statement_timeout: String(options.statementMs ?? STATEMENT_MS_MAX),
    lock_timeout: String(options.lockMs ?? DATABASE_LOCK_MS_MAX),
    idle_in_transaction_session_timeout: String(options.idleInTransactionMs ?? IDLE_IN_TRANSACTION_MS_MAX)
  }
})
