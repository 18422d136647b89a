/** An installation of a test that is not about databases. */
import { Effect } from "effect"
import { inject } from "vitest"
import { migratedDatabase, postgresDatabase } from "./engines.ts"
import { type InstallationOptions, makeInstallation } from "./installation.ts"
import { isFull } from "./size.ts"

const asConfig = ({ database, host, port, user }: Effect.Success<typeof postgresDatabase>) => ({
  postgres: { url_secret: "postgres-url" },
  secrets: { "postgres-url": `postgres://${user}@${encodeURIComponent(host)}:${port}/${database}` }
})

/** A new database of its own on the shared server, by a url in a secret. */
export const onServer = Effect.map(postgresDatabase, asConfig)

/** The same, migrated. */
const onMigratedServer = Effect.map(migratedDatabase, asConfig)

/**
 * The same options, at size `ci` on the shared server where there is one, which takes two thirds of the time of an embedded
 * database. Suites about crashes and installations have the embedded one, as people do, and at size `full` all have it.
 */
export const onTestDatabase = Effect.fnUntraced(function* <A extends Pick<InstallationOptions, "postgres" | "secrets">>(
  options: A
) {
  if (isFull || typeof inject("postgres") === "string") return options
  const { postgres, secrets } = yield* onMigratedServer
  return { ...options, postgres, secrets: { ...options.secrets, ...secrets } }
})

/** {@link makeInstallation} on the database of {@link onTestDatabase}. */
export const makeTestInstallation = (options: InstallationOptions) =>
  Effect.flatMap(onTestDatabase(options), makeInstallation)
