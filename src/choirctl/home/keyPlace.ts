/** The secret that holds the key for a server: a stored one only where that server gets it already, else one of its own. */
import { randomUUID } from "node:crypto"
import { Redacted } from "effect"
import { SecretName } from "#schema/Ids.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { originOf, type SecretServer } from "#src/shared/config/secretServers.ts"
import { presetOf, type Provider } from "./providers.ts"
import { keyName } from "./setupAnswers.ts"

/** Names that are tried for a new secret. */
const NAMES_MAX = 1000
const NAME_CHARS_MAX = 64

type Key = Redacted.Redacted

/** The value of a secret; an empty one counts as none. */
export const storedValue = (secrets: SecretsFile, name: SecretName): Key | undefined => {
  const value = Object.hasOwn(secrets, name) ? secrets[name] : undefined
  return value === undefined || Redacted.value(value) === "" ? undefined : value
}

/** A name for a secret of its own: one without a value, so that no other key is lost. */
export const freeName = (own: string, secrets: SecretsFile): SecretName => {
  const names = Array.from({ length: NAMES_MAX }, (_, at) => {
    const tail = at === 0 ? "" : `-${at + 1}`
    return SecretName.make(`${own.slice(0, NAME_CHARS_MAX - tail.length)}${tail}`)
  })
  return names.find((name) => storedValue(secrets, name) === undefined) ?? SecretName.make(randomUUID())
}

/** The secret that a server gets already, with its value; where a key is given, one that has this value. */
export const storedFor = (
  server: string | undefined,
  uses: ReadonlyArray<SecretServer>,
  secrets: SecretsFile,
  given?: Key
) => {
  for (const { secret: name, server: other } of uses) {
    const key = other === server ? storedValue(secrets, name) : undefined
    if (key !== undefined && (given === undefined || Redacted.value(key) === Redacted.value(given)))
      return { name, key }
  }
  return undefined
}

/** The secret that is named after a provider, for the provider's own server alone: at another address nothing says whose key it is. */
export const storedAtPreset = (provider: Provider, endpoint: string, secrets: SecretsFile) => {
  const { endpoint: own } = presetOf(provider)
  const name = SecretName.make(keyName(provider))
  const key = own === undefined || originOf(own) !== originOf(endpoint) ? undefined : storedValue(secrets, name)
  return key === undefined ? undefined : { name, key }
}
