/** secrets.json as choirctl changes it: owner-only, whole or not at all, and never shown. */
import { Effect, Redacted } from "effect"
import type { SecretName } from "#schema/Ids.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { loadSecrets } from "#src/shared/config/configFiles.ts"
import { withHomeFilesLock } from "#src/shared/files/homeFilesLock.ts"
import { fileText, secretsPath, writePrivate } from "./homeFiles.ts"

/** Kept in the order of their names, so that a diff of the file shows one line for one change. */
const write = (home: string, secrets: SecretsFile) =>
  writePrivate(
    secretsPath(home),
    fileText(
      Object.fromEntries(
        Object.entries(secrets)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, value]) => [name, Redacted.value(value)])
      )
    )
  )

/** The names in secrets.json, sorted. */
export const secretNames = (home: string) => Effect.map(loadSecrets(home), (secrets) => Object.keys(secrets).sort())

/** The value of a secret, or nothing. */
export const secretValue = (home: string, name: SecretName) =>
  Effect.map(loadSecrets(home), (secrets) => (Object.hasOwn(secrets, name) ? secrets[name] : undefined))

/** Sets a secret, and returns whether it had a value before. */
export const setSecret = Effect.fn("setSecret")(function* (home: string, name: SecretName, value: Redacted.Redacted) {
  const set = Effect.gen(function* () {
    const secrets = yield* loadSecrets(home)
    yield* write(home, { ...secrets, [name]: value })
    return Object.hasOwn(secrets, name)
  })
  return yield* withHomeFilesLock(home)(set)
})

/** Adds secrets that have no value yet; others keep theirs. For a caller that holds the lock of the files. */
export const addSecrets = Effect.fn("addSecrets")(function* (home: string, added: SecretsFile) {
  const secrets = yield* loadSecrets(home)
  if (Object.keys(added).some((name) => !Object.hasOwn(secrets, name))) yield* write(home, { ...added, ...secrets })
})

/** Deletes a secret, and returns whether it existed. */
export const deleteSecret = Effect.fn("deleteSecret")(function* (home: string, name: SecretName) {
  const remove = Effect.gen(function* () {
    const secrets = yield* loadSecrets(home)
    if (!Object.hasOwn(secrets, name)) return false
    yield* write(home, Object.fromEntries(Object.entries(secrets).filter(([other]) => other !== name)))
    return true
  })
  return yield* withHomeFilesLock(home)(remove)
})
