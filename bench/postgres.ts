/** A real Postgres server for the benchmarks that need one. */
import { Effect } from "effect"
import type { InstallationOptions } from "../test/support/installation.ts"
import { startPostgres, type TestPostgres, whyNoPostgres } from "../test/support/postgres.ts"
import type { Row } from "./Row.ts"

/** Measures with an installation's options for a server of its own; where there can be none, it says so and measures nothing. */
export const onPostgres = (
  ids: string,
  measure: (
    options: Required<Pick<InstallationOptions, "postgres" | "secrets">>,
    server: Pick<TestPostgres, "host" | "port" | "user">
  ) => Effect.Effect<ReadonlyArray<Row>, unknown>
): Effect.Effect<ReadonlyArray<Row>, unknown> =>
  Effect.gen(function* () {
    const missing = whyNoPostgres()
    if (missing !== undefined) {
      yield* Effect.logWarning(`left out: ${ids} with a Postgres server (${missing})`)
      return []
    }
    const server = yield* Effect.acquireRelease(
      Effect.promise(() => startPostgres({ vector: true })),
      ({ stop }) => Effect.promise(stop)
    )
    const url = `postgres://${server.user}@${encodeURIComponent(server.host)}:${server.port}/postgres`
    return yield* measure({ postgres: { url_secret: "postgres-url" }, secrets: { "postgres-url": url } }, server)
  }).pipe(Effect.scoped)
