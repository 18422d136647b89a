/** The running configuration and the secrets, read once at start and held as one snapshot each (spec 17.7). */
import { Context, Effect, Layer, type Redacted, Ref, Schema } from "effect"
import type { AgentConfig, Config } from "#schema/Config.ts"
import type { ResourceBindings } from "#schema/ResourceBindings.ts"
import { SecretName } from "#schema/Ids.ts"
import { hasValue, loadFiles } from "#src/shared/configFiles.ts"
import { agentConfig, boundSecrets } from "./agentShare.ts"

/** A configured secret that secrets.json does not hold. */
export class SecretMissing extends Schema.TaggedError<SecretMissing>()("SecretMissing", { secret: SecretName }) {
  override get message() {
    return `the secret "${this.secret}" has no value`
  }
  get hint() {
    return `choirctl secret set ${this.secret}`
  }
}

export interface RunningConfig {
  readonly version: number
  readonly config: Config
}

/** Owns config.json and secrets.json. */
export class ConfigStore extends Context.Service<
  ConfigStore,
  {
    /** The home folder, an absolute real path. */
    readonly home: string
    /** The configuration that runs; take one snapshot per operation. Its version is 0 until `ConfigVersions` numbered it. */
    readonly current: Effect.Effect<RunningConfig>
    /** A secret's value. */
    secret(name: SecretName): Effect.Effect<Redacted.Redacted, SecretMissing>
    /** What an agent with these bindings is told: its bound models and their fallbacks, budgets, intervals. */
    agentConfig(bindings: ResourceBindings): Effect.Effect<AgentConfig>
    /** The secrets that the bound resources name, and no other: all that GET_SECRETS may hand out. */
    secretsOf(bindings: ResourceBindings): Effect.Effect<ReadonlySet<SecretName>>
    /** Gives the running configuration its version. For `ConfigVersions` alone, since the database comes after the files. */
    number(version: number): Effect.Effect<void>
  }
>()("choir/choird/ConfigStore") {
  /** Reads the files of a home, and logs a warning for each thing in them that will stop a part of choird. */
  static readonly layer = (options: { readonly home: string }) =>
    Layer.effect(
      ConfigStore,
      Effect.gen(function* () {
        const { config, home, secrets, warnings } = yield* loadFiles(options.home)
        yield* Effect.forEach(warnings, ({ message, path }) => Effect.logWarning(`${path}: ${message}`))
        const running = yield* Ref.make<RunningConfig>({ version: 0, config })
        return ConfigStore.of({
          home,
          current: Ref.get(running),
          secret: Effect.fn("ConfigStore.secret")(function* (name) {
            const value = secrets[name]
            return value === undefined || !hasValue(secrets, name) ? yield* new SecretMissing({ secret: name }) : value
          }),
          agentConfig: (bindings) => Effect.map(Ref.get(running), ({ config }) => agentConfig(config, bindings)),
          secretsOf: (bindings) => Effect.map(Ref.get(running), ({ config }) => boundSecrets(config, bindings)),
          number: (version) => Ref.update(running, ({ config }) => ({ version, config }))
        })
      })
    )
}
