/** The numbers of the configurations that ran, so that a version means the same across choird's lives (R56). */
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { canonicalJson } from "#src/shared/canonicalJson.ts"
import { sha256 } from "#src/shared/hashChain.ts"
import { ConfigStore } from "./ConfigStore.ts"

interface VersionRow {
  readonly version: number
  readonly hash: Uint8Array
}

/**
 * Numbers the running configuration when it is built: the newest version when the content is the same as then, else the next.
 * The content is config.json with its defaults; secrets have no part in it, since a digest of them could be guessed at.
 */
export const layerConfigVersions = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* ConfigStore
    const { config } = yield* store.current
    const text = canonicalJson(config)
    const hash = Buffer.from(sha256(text), "hex")
    const version = yield* sql.withTransaction(
      Effect.gen(function* () {
        const [newest] = yield* sql<VersionRow>`SELECT version, hash FROM choir_control.config_versions
          ORDER BY version DESC LIMIT 1`
        if (newest !== undefined && hash.equals(newest.hash)) return newest.version
        const next = (newest?.version ?? 0) + 1
        yield* sql`INSERT INTO choir_control.config_versions (version, config, hash)
          VALUES (${next}, ${text}::jsonb, ${hash})`
        return next
      })
    )
    yield* store.number(version)
  }).pipe(Effect.orDie)
)

/**
 * Takes the next number for the running configuration, whose content is the same: an agent is bound to other models, and asks anew
 * when the number changes. The number is used by {@link ConfigStore.number}.
 */
export const nextConfigVersion = (sql: SqlClient.SqlClient, store: ConfigStore["Service"]) =>
  Effect.gen(function* () {
    const { config } = yield* store.current
    const text = canonicalJson(config)
    const [row] = yield* sql<{
      readonly version: number
    }>`INSERT INTO choir_control.config_versions (version, config, hash)
      SELECT coalesce(max(version), 0) + 1, ${text}::jsonb, ${Buffer.from(sha256(text), "hex")}
      FROM choir_control.config_versions RETURNING version`
    return row?.version ?? (yield* Effect.die(new Error("the configuration got no number")))
  }).pipe(Effect.orDie)
