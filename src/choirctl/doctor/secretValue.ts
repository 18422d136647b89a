/** The value of a secret that an entry of config.json names. */
import { Effect, Redacted } from "effect"
import type { SecretName } from "#schema/Ids.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { hasValue } from "#src/shared/config/configFiles.ts"
import { CheckFailed } from "./checkHttp.ts"

const withoutValue = (secret: SecretName) =>
  new CheckFailed({
    obstacle: "key",
    problem: `its secret "${secret}" has no value`,
    fix: `choirctl secret set ${secret}`
  })

/** `undefined` where the entry names no secret; fails where the secret has no value. */
export const valueOf = (secrets: SecretsFile, secret: SecretName | undefined) => {
  if (secret === undefined) return Effect.undefined
  return hasValue(secrets, secret)
    ? Effect.succeed(secrets[secret] ?? Redacted.make(""))
    : Effect.fail(withoutValue(secret))
}
