/** The stored versions of the configuration, rewritten for a home that has moved, so that a rollback leads to the new home. */
import { Effect, type Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { type Move, withMovedPaths } from "#src/shared/files/movedPaths.ts"

/**
 * Each version keeps its number, so that the configuration that ran last is recognised when choird starts. Events stay as they are, since
 * their chain covers them, and so do approvals, since a person decided about the paths that they show.
 */
export const moveConfigVersions = Effect.fn("moveConfigVersions")(function* (sql: SqlClient.SqlClient, move: Move) {
  const versions = sql<{ readonly version: number }>`SELECT version FROM choir_control.config_versions`
  for (const { version } of yield* versions) {
    const [row] = yield* sql<{
      readonly config: Schema.Json
    }>`SELECT config FROM choir_control.config_versions WHERE version = ${version}`
    if (row === undefined) continue
    const before = canonicalJson(row.config)
    const after = canonicalJson(withMovedPaths(row.config, move))
    if (after === before) continue
    yield* sql`UPDATE choir_control.config_versions
      SET config = ${after}::text::jsonb, hash = ${Buffer.from(sha256(after), "hex")} WHERE version = ${version}`
  }
})
