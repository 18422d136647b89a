/** The running configuration and the secrets, read once at start and held as one snapshot each (spec 17.7). */
import { Context, type Effect, type Redacted, Schema } from "effect"
import type { AgentConfig, Config, ResourceBindings } from "#schema/Config.ts"
import { SecretName } from "#schema/Ids.ts"

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
    /** The configuration that runs; take one snapshot per operation. */
    readonly current: Effect.Effect<RunningConfig>
    /** A secret's value. */
    secret(name: SecretName): Effect.Effect<Redacted.Redacted, SecretMissing>
    /** What an agent with these bindings is told: its bound models and their fallbacks, budgets, intervals. */
    agentConfig(bindings: ResourceBindings): Effect.Effect<AgentConfig>
    /** The secrets that the bound resources name, and no other: all that GET_SECRETS may hand out. */
    secretsOf(bindings: ResourceBindings): Effect.Effect<ReadonlySet<SecretName>>
  }
>()("choir/choird/ConfigStore") {}
