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
      return [`${place} does not answer`, `start Postgres, or correct ${where}`]
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
  (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS vector`

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
    return yield* sql.unsafe<{ readonly version: string; readonly vector: string | null }>(FACTS)
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer), Effect.timeout(wait_ms), Effect.result)
  if (asked._tag === "Failure") {
    const [problem, fix] = connectionProblem(server, asked.failure)
    return { problem, fix }
  }
  const [facts] = asked.success
  if (facts === undefined || facts.vector === null)
    return { problem: "the server lacks pgvector", fix: "in Debian: apt-get install postgresql-VERSION-pgvector" }
  return { facts: `version ${facts.version}, pgvector ${facts.vector} available` }
})
