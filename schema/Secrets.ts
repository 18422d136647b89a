/** secrets.json: names to values, readable by its owner alone. Values never appear anywhere else. */
import { Schema } from "effect"
import { SecretName } from "./Ids.ts"

/** A value is at most 64 KiB of text and is printed as `<redacted>` wherever it shows. */
export const SecretsFile = Schema.Record(
  SecretName,
  Schema.RedactedFromValue(Schema.String.check(Schema.isMaxLength(65_536)))
)
export type SecretsFile = typeof SecretsFile.Type
