/** The running configuration and the secrets, as one snapshot that is replaced as a whole. */
import { Context, Effect, Layer, type Redacted, Schema, type Stream, SubscriptionRef } from "effect"
import type { Config } from "#schema/Config.ts"
import { SecretName } from "#schema/Ids.ts"
import type { ResourceBindings } from "#schema/ResourceBindings.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { hasValue, loadFiles } from "#src/shared/config/configFiles.ts"
import { boundSecrets } from "./agentShare.ts"

/** A configured secret without a value. */
export class SecretMissing extends Schema.TaggedError<SecretMissing>()("SecretMissing", { secret: SecretName }) {
  override get message() {
    return `the secret "${this.secret}" has no value`
  }
  get hint() {
    return `choirctl secret set ${this.secret} && choirctl secret apply`
  }
}

export interface RunningConfig {
  readonly version: number
  readonly config: Config
}

/** The running configuration with its secrets; it never leaves choird. */
interface Snapshot extends RunningConfig {
  readonly secrets: SecretsFile
}

/** Holds the running configuration and the secrets. */
export class ConfigStore extends Context.Service<
  ConfigStore,
  {
    /** The home folder, an absolute real path. */
    readonly home: string
    /** The newest value of `changes`; take one snapshot per operation. */
    readonly current: Effect.Effect<RunningConfig>
    /**
     * The running configuration, then each that replaces it, changes of secrets included. The only source of a version number, which is 0
     * until `ConfigVersions` has set it.
     */
    readonly changes: Stream.Stream<RunningConfig>
    /** A secret's value. */
    secret(name: SecretName): Effect.Effect<Redacted.Redacted, SecretMissing>
    /** The values of several secrets at one moment (R35); a secret without a value is left out. */
    secretValues(names: Iterable<SecretName>): Effect.Effect<ReadonlyMap<SecretName, Redacted.Redacted>>
    /** The secrets that the bound resources name, and no other: all that GET_SECRETS may hand out. */
    secretsOf(bindings: ResourceBindings): Effect.Effect<ReadonlySet<SecretName>>
    /** All secrets, to compare them with those of a file. */
    readonly secrets: Effect.Effect<SecretsFile>
    /** Replaces all of it at once. For `ConfigVersions` alone, the one writer of version numbers. */
    replace(next: RunningConfig & { readonly secrets?: SecretsFile | undefined }): Effect.Effect<void>
  }
>()("choir/choird/ConfigStore") {
  /**
   * Reads the files of a home, and logs a warning for everything in them that will stop a part of choird. `file` is read instead of
   * config.json.
   */
  static readonly layer = (options: { readonly home: string; readonly file?: string }) =>
    Layer.effect(
      ConfigStore,
      Effect.gen(function* () {
        const { config, home, secrets, warnings } = yield* loadFiles(options.home, options.file)
        yield* Effect.forEach(warnings, ({ message, path }) => Effect.logWarning(`${path}: ${message}`))
        const running = yield* SubscriptionRef.make<Snapshot>({ version: 0, config, secrets })
        const snapshot = SubscriptionRef.get(running)

        const valueIn = (secrets: SecretsFile, name: SecretName) => {
          const value = secrets[name]
          return hasValue(secrets, name) ? value : undefined
        }
        return ConfigStore.of({
          home,
          current: snapshot,
          changes: SubscriptionRef.changes(running),
          secret: Effect.fn("ConfigStore.secret")(function* (name) {
            return valueIn((yield* snapshot).secrets, name) ?? (yield* new SecretMissing({ secret: name }))
          }),
          secretValues: Effect.fn("ConfigStore.secretValues")(function* (names) {
            const { secrets } = yield* snapshot
            return new Map(
              [...names].flatMap((name) => {
                const value = valueIn(secrets, name)
                return value === undefined ? [] : [[name, value] as const]
              })
            )
          }),
          secretsOf: (bindings) => Effect.map(snapshot, ({ config }) => boundSecrets(config, bindings)),
          secrets: Effect.map(snapshot, ({ secrets }) => secrets),
          replace: ({ config, secrets, version }) =>
            SubscriptionRef.update(running, (before) => ({ version, config, secrets: secrets ?? before.secrets }))
        })
      })
    )
}
