/** The flag that names the secret of a new entry of config.json. */
import { Flag } from "effect/cli"
import { SecretName } from "#schema/Ids.ts"

export const secretFlag = Flag.String("secret").pipe(
  Flag.withDescription("Secret to use: a stored one, or the name under which a new key is stored"),
  Flag.withMetavar("<name>"),
  Flag.withSchema(SecretName),
  Flag.optional
)
