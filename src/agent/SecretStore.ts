/** The secrets of the bound resources, in this process's memory only (spec 14.3). */
import { Context, Effect, Layer, type Redacted, Ref } from "effect"
import type { SecretName } from "#schema/Ids.ts"

/** Keeps secrets; a refresh replaces all of them at once. */
export class SecretStore extends Context.Service<
  SecretStore,
  {
    get(name: SecretName): Effect.Effect<Redacted.Redacted | undefined>
    replaceAll(secrets: ReadonlyMap<SecretName, Redacted.Redacted>): Effect.Effect<void>
  }
>()("choir/agent/SecretStore") {
  static readonly layer = Layer.effect(
    SecretStore,
    Effect.map(Ref.make<ReadonlyMap<SecretName, Redacted.Redacted>>(new Map()), (held) =>
      SecretStore.of({
        get: (name) => Effect.map(Ref.get(held), (secrets) => secrets.get(name)),
        replaceAll: (secrets) => Ref.set(held, secrets)
      })
    )
  )
}
