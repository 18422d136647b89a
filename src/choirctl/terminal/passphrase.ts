/** The passphrase that seals the secrets of a backup: from standard input, or from a person at the terminal. */
import { Effect, Redacted } from "effect"
import { Flag, Prompt } from "effect/cli"
import { askPerson } from "./askPerson.ts"
import { usageError } from "./failure.ts"
import { readInput, withoutLineEnd } from "./readInput.ts"
import { root } from "./root.ts"
import { Screen } from "./Screen.ts"

const PASSPHRASE_CHARS_MIN = 8
const PASSPHRASE_BYTES_MAX = 4096

export const passphraseFlag = Flag.Boolean("passphrase-stdin").pipe(
  Flag.withDescription("Read the passphrase of the secrets from standard input"),
  Flag.withDefault(false)
)

const isShort = (text: string) => text.length < PASSPHRASE_CHARS_MIN

/** Asked for twice, since nothing opens the secrets if it was mistyped. */
const askNew = Effect.gen(function* () {
  const message = `Passphrase for the secrets (at least ${PASSPHRASE_CHARS_MIN} characters)`
  const validate = (text: string) =>
    isShort(text) ? Effect.fail(`at least ${PASSPHRASE_CHARS_MIN} characters`) : Effect.succeed(text)
  const screen = yield* Screen
  while (true) {
    const first = yield* askPerson(Prompt.Password({ message, validate }))
    const second = yield* askPerson(Prompt.Password({ message: "The same passphrase again" }))
    if (Redacted.value(first) === Redacted.value(second)) return first
    yield* screen.note("the two differ; please type them again")
  }
})

const askGiven = askPerson(Prompt.Password({ message: "Passphrase of the secrets" }))

/**
 * A new passphrase has to be long enough. One that was given to a backup is taken as it is typed: only opening the secrets says whether it
 * is right. Fails with `missing` where nobody can be asked.
 */
export const passphraseOf = Effect.fn("choirctl.passphrase")(function* (
  kind: "new" | "given",
  piped: boolean,
  missing: string
) {
  if (piped) {
    const text = withoutLineEnd(yield* readInput(PASSPHRASE_BYTES_MAX))
    if (kind === "given" || !isShort(text)) return Redacted.make(text)
    return yield* usageError(
      `the passphrase on standard input has fewer than ${PASSPHRASE_CHARS_MIN} characters`,
      "hand over a longer one"
    )
  }
  const { json } = yield* root
  const screen = yield* Screen
  if (json || !screen.interactive)
    return yield* usageError(
      missing,
      "add --passphrase-stdin and hand the passphrase over by standard input, or --without-secrets"
    )
  return yield* kind === "new" ? askNew : askGiven
})
