/** The secrets of the bound resources, in this process's memory only (spec 14.3). */
import { Context, Effect, Layer, type Redacted, Ref } from "effect"
import type { SecretName } from "#schema/Ids.ts"

type Secrets = ReadonlyMap<SecretName, Redacted.Redacted>

/** Keeps secrets. Each change is one swap: who took a value keeps it, whoever asks afterwards gets the new one (R35). */
export class SecretStore extends Context.Service<
  SecretStore,
  {
    get(name: SecretName): Effect.Effect<Redacted.Redacted | undefined>
    /** Takes over what a tool's manifest names, at start; the names are remembered for later refreshes. */
    add(named: ReadonlyArray<SecretName>, secrets: Secrets): Effect.Effect<void>
    /** The names that manifests use. */
    named(): ReadonlySet<SecretName>
    /** Replaces all secrets at once; those that are not named again are gone. */
    replaceAll(secrets: Secrets): Effect.Effect<void>
  }
>()("choir/agent/SecretStore") {
  static readonly layer = Layer.effect(
    SecretStore,
    Effect.map(Ref.make<Secrets>(new Map()), (held) => {
      const names = new Set<SecretName>()
      return SecretStore.of({
        get: (name) => Effect.map(Ref.get(held), (secrets) => secrets.get(name)),
        add: (named, secrets) => {
          for (const name of named) names.add(name)
          return Ref.update(held, (before) => new Map([...before, ...secrets]))
        },
        named: () => names,
        replaceAll: (secrets) => Ref.set(held, secrets)
      })
    })
  )
}
