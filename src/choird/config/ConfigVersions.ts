/**
 * The numbers of the configurations that ran, so that a version means the same across restarts of choird (R56). Every change of the running
 * configuration goes through here: first the row, then the one swap in memory.
 */
import { Context, Effect, Layer, Option, Semaphore } from "effect"
import { SqlClient } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import type { VersionSummary } from "#schema/ConfigApi.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { ConfigStore, type RunningConfig } from "./ConfigStore.ts"

/** Versions that `config history` shows. */
const CONFIG_VERSIONS_SHOWN_MAX = 100

/** The reason for a version, and who asked for it. */
export interface VersionEntry {
  readonly action: "apply" | "rollback" | "secret apply" | "model set"
  readonly who: string
}

/** The configuration to run; absent parts stay. */
export interface NextConfig {
  readonly config?: Config
  readonly secrets?: SecretsFile
  /** Runs between the row and the swap, so that it is done before the new number is visible. */
  readonly before?: Effect.Effect<unknown>
}

interface NewestRow {
  readonly version: number
  readonly hash: Uint8Array
}

/** Numbers configurations, one at a time. */
export class ConfigVersions extends Context.Service<
  ConfigVersions,
  {
    /**
     * Makes the configuration that `next` decides on the running one, under the next number; followers read the number from
     * `ConfigStore.changes`. `next` gets the running configuration, which nothing else changes meanwhile; if it returns nothing,
     * everything stays. Row and swap are uninterruptible.
     */
    commit<E>(
      entry: VersionEntry,
      next: (running: RunningConfig) => Effect.Effect<NextConfig | undefined, E>
    ): Effect.Effect<void, E>
    /** The newest versions, the newest first, at most CONFIG_VERSIONS_SHOWN_MAX. */
    readonly history: Effect.Effect<ReadonlyArray<VersionSummary>>
    /** The content of a version, as it was stored. */
    content(version: number): Effect.Effect<Option.Option<unknown>>
  }
>()("choir/choird/ConfigVersions") {
  /** Numbers the configuration that choird started with: the newest version if the content is the same, else the next one. */
  static readonly layer = Layer.effect(
    ConfigVersions,
    Effect.suspend(() => make())
  )
}

/** The content is config.json with its defaults; secrets are left out, since their digest could be guessed at. */
const contentOf = (config: Config) => {
  const text = canonicalJson(config)
  return { text, hash: Buffer.from(sha256(text), "hex") }
}

const make = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const store = yield* ConfigStore
  const one = yield* Semaphore.make(1)

  const newest = Effect.map(
    sql<NewestRow>`SELECT version, hash FROM choir_control.config_versions ORDER BY version DESC LIMIT 1`,
    ([row]) => row
  )
  const insert = Effect.fnUntraced(function* (version: number, config: Config, action: string, who: string) {
    const { hash, text } = contentOf(config)
    yield* sql`INSERT INTO choir_control.config_versions (version, config, hash, action, who)
      VALUES (${version}, ${text}::jsonb, ${hash}, ${action}, ${who})`
  })

  const started = yield* store.current
  const first = yield* sql.withTransaction(
    Effect.gen(function* () {
      const last = yield* newest
      if (last !== undefined && contentOf(started.config).hash.equals(last.hash)) return last.version
      const version = (last?.version ?? 0) + 1
      yield* insert(version, started.config, "start", "choird")
      return version
    })
  )
  yield* store.replace({ ...started, version: first })

  const enter = ({ action, who }: VersionEntry, running: RunningConfig, next: NextConfig) =>
    Effect.gen(function* () {
      const { before = Effect.void, config = running.config, secrets } = next
      const version = yield* sql.withTransaction(
        Effect.gen(function* () {
          const version = ((yield* newest)?.version ?? 0) + 1
          yield* insert(version, config, action, who)
          return version
        })
      )
      yield* before
      yield* store.replace({ version, config, secrets })
    }).pipe(Effect.orDie, Effect.uninterruptible)

  return ConfigVersions.of({
    commit: Effect.fn("ConfigVersions.commit")(function* (entry, next) {
      const running = yield* store.current
      const wanted = yield* next(running)
      if (wanted !== undefined) yield* enter(entry, running, wanted)
    }, one.withPermit),
    history: Effect.gen(function* () {
      const { version: running } = yield* store.current
      const rows = yield* sql<Omit<VersionSummary, "running" | "created_at"> & { readonly created_at: Date }>`
        SELECT version, created_at, action, who FROM choir_control.config_versions
        ORDER BY version DESC LIMIT ${CONFIG_VERSIONS_SHOWN_MAX}`
      return rows.map((row) => ({
        ...row,
        created_at: row.created_at.toISOString(),
        running: row.version === running
      }))
    }).pipe(Effect.orDie),
    content: Effect.fn("ConfigVersions.content")(function* (version) {
      const rows = yield* sql<{
        readonly config: unknown
      }>`SELECT config FROM choir_control.config_versions WHERE version = ${version}`
      return Option.map(Option.fromNullishOr(rows[0]), ({ config }) => config)
    }, Effect.orDie)
  })
}, Effect.orDie)
