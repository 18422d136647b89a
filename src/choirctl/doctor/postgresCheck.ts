/** A check of the Postgres server that config.json names, and what keeps it from being used. */
import { Effect, Predicate, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import type { Config } from "#schema/Config.ts"
import type { SecretsFile } from "#schema/Secrets.ts"

/** Errors within errors that are looked through for a code. */
const CAUSES_MAX = 6

type Server = Exclude<Config["postgres"], { readonly embedded: true }>

/** The code of a failed connection, of the system or of Postgres, wherever a driver has put it. */
const codeIn = (error: unknown): string | undefined => {
  let inner = error
  for (let depth = 0; depth < CAUSES_MAX && Predicate.isObject(inner); depth += 1) {
    const { cause, code, reason } = inner as Readonly<Record<string, unknown>>
    if (typeof code === "string") return code
    inner = cause ?? reason
  }
  return undefined
}

/** The words of a failed connection, wherever a driver has put them. */
const wordsIn = (error: unknown): string => {
  let words = ""
  let inner = error
  for (let depth = 0; depth < CAUSES_MAX && Predicate.isObject(inner); depth += 1) {
    const { cause, message, reason } = inner as Readonly<Record<string, unknown>>
    if (typeof message === "string") words = `${words} ${message}`
    inner = cause ?? reason
  }
  return words
}

/** The problem of a connection that has words and no code. */
const wordsProblem = (place: string, where: string, words: string): readonly [string, string] | undefined => {
  if (/does not support (?:TLS|SSL)/u.test(words))
    return [`${place} has no TLS, which sslmode asks for`, `set ssl = on in its postgresql.conf, or correct ${where}`]
  if (/certificate|self.signed|unable to verify/u.test(words))
    return [`the certificate of ${place} is not accepted`, "name its authority with tls.ca_file in config.json"]
  return words.includes("Unrecognized") ? [`the url of ${place} is not understood`, `correct ${where}`] : undefined
}

const secretOf = (server: Server) => ("url_secret" in server ? server.url_secret : server.secret)

/** The problem of a failed connection and its fix. */
export const connectionProblem = (server: Server, error: unknown): readonly [problem: string, fix: string] => {
  const place = "url_secret" in server ? "the server" : `${server.host}:${server.port}`
  const where = "url_secret" in server ? `the secret ${server.url_secret}` : "postgres in config.json"
  switch (codeIn(error)) {
    case "ECONNREFUSED":
      return [`nothing listens at ${place}`, `start Postgres, or correct ${where}`]
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return [`the host of ${place} cannot be found`, `correct ${where}`]
    case "28P01":
    case "28000":
      return [`${place} refuses the user or the password`, `choirctl secret set ${secretOf(server)}`]
    case "3D000":
      return [
        "url_secret" in server ? "its database does not exist" : `${place} has no database ${server.database}`,
        "create it with createdb"
      ]
    default:
      return (
        wordsProblem(place, where, wordsIn(error)) ?? [
          `${place} does not answer`,
          `start Postgres, or correct ${where}`
        ]
      )
  }
}

/** The place of the server with its credentials, or what is wrong with the secret that holds them. */
const locationOf = (server: Server, secrets: SecretsFile) => {
  const secret = secrets[secretOf(server)]
  if (secret === undefined) return "has no value"
  if ("url_secret" in server) return { url: secret }
  const [username = "", ...password] = Redacted.value(secret).split(":")
  if (username === "" || password.length === 0) return "is not user:password"
  const { database, host, port } = server
  return { host, port, database, username, password: Redacted.make(password.join(":")) }
}

const FACTS = `SELECT current_setting('server_version') AS version,
  current_setting('server_encoding') AS encoding,
  pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS read_only,
  has_database_privilege(current_database(), 'CREATE') AS create,
  (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS vector`

interface Facts {
  readonly version: string
  readonly encoding: string
  readonly read_only: boolean
  readonly create: boolean
  readonly vector: string | null
}

/** The problem of a server that answers, and its fix. choird says the same at its start, with the whole command. */
const factsProblem = ({ create, encoding, read_only, vector }: Facts): readonly [string, string] | undefined => {
  if (vector === null) return ["the server lacks pgvector", "in Debian: apt-get install postgresql-VERSION-pgvector"]
  if (encoding !== "UTF8")
    return [`the database holds text as ${encoding}`, "make one in UTF8: createdb -E UTF8 -T template0 NAME"]
  if (read_only) return ["the database can only be read", "name the primary server, or a user that may write"]
  return create ? undefined : ["the user may not create schemas", "GRANT CREATE ON DATABASE to the user"]
}

export type PostgresCheck =
  | { readonly facts: string; readonly problem?: undefined; readonly fix?: undefined }
  | { readonly facts?: undefined; readonly problem: string; readonly fix: string }

/** Asks for the version of the server and of the pgvector that it offers. */
export const tryPostgres = Effect.fnUntraced(function* (
  server: Server,
  secrets: SecretsFile,
  wait_ms: number
): Effect.fn.Return<PostgresCheck> {
  const place = locationOf(server, secrets)
  if (typeof place === "string") {
    const secret = secretOf(server)
    return { problem: `the secret ${secret} ${place}`, fix: `choirctl secret set ${secret}` }
  }
  const { PgClient } = yield* Effect.promise(() => import("@effect/sql-pg"))
  const asked = yield* Effect.gen(function* () {
    const sql = yield* PgClient.makeClient({ ...place, connectTimeout: wait_ms / 2 })
    return yield* sql.unsafe<Facts & Record<string, unknown>>(FACTS)
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer), Effect.timeout(wait_ms), Effect.result)
  if (asked._tag === "Failure") {
    const [problem, fix] = connectionProblem(server, asked.failure)
    return { problem, fix }
  }
  const [facts] = asked.success
  if (facts === undefined) return { problem: "the server answers nothing", fix: "start Postgres again" }
  const found = factsProblem(facts)
  if (found !== undefined) return { problem: found[0], fix: found[1] }
  return { facts: `version ${facts.version}, pgvector ${facts.vector} available` }
})
