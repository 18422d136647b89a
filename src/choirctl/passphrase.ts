/** The passphrase that seals the secrets of a backup, from standard input. */
import { Effect, Redacted } from "effect"
import { Flag } from "effect/cli"
import { usageError } from "./failure.ts"
import { readInput, withoutLineEnd } from "./readInput.ts"

export const PASSPHRASE_CHARS_MIN = 8
const PASSPHRASE_BYTES_MAX = 4096

export const passphraseFlag = Flag.Boolean("passphrase-stdin").pipe(
  Flag.withDescription("Read the passphrase of the secrets from standard input"),
  Flag.withDefault(false)
)

/** All of standard input, without the line end that `echo` adds. */
export const pipedPassphrase = Effect.gen(function* () {
  const text = withoutLineEnd(yield* readInput(PASSPHRASE_BYTES_MAX))
  if (text.length >= PASSPHRASE_CHARS_MIN) return Redacted.make(text)
  return yield* usageError(
    `the passphrase on standard input has fewer than ${PASSPHRASE_CHARS_MIN} characters`,
    "hand over a longer one"
  )
})
