/** Questions to the person at the terminal: confirmations and passphrases, and the flags that answer them. */
import { statSync } from "node:fs"
import { Effect, Redacted } from "effect"
import { Flag, Prompt } from "effect/cli"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { CommandFailed, EXIT, usageError } from "./failure.ts"
import { onHost } from "./Host.ts"
import { readInput, withoutLineEnd } from "./input.ts"
import { root } from "./root.ts"
import { Screen } from "./Screen.ts"
import { safeLine } from "./text.ts"

/** Asks. After Ctrl-C, what is printed next begins on a line of its own and not behind the question. */
export const askPerson = <A>(prompt: Prompt.Prompt<A>) =>
  Prompt.run(prompt).pipe(Effect.tapError(() => Effect.flatMap(Screen, (screen) => screen.draw("\n"))))

/**
 * Asks for a text that is not shown, until `problem` finds nothing wrong with it. Each try begins on an empty line: nobody can correct what they
 * do not see, and the next text would only be added to it.
 */
export const askHidden = Effect.fnUntraced(function* (message: string, problem: (text: string) => string | undefined) {
  const screen = yield* Screen
  while (true) {
    const typed = yield* askPerson(Prompt.Password({ message }))
    const found = problem(Redacted.value(typed))
    if (found === undefined) return typed
    yield* screen.note(found)
  }
})

const PASSPHRASE_CHARS_MIN = 8
const PASSPHRASE_BYTES_MAX = 4096

export const passphraseFlag = Flag.Boolean("passphrase-stdin").pipe(
  Flag.withDescription("Read the passphrase of the backup from standard input"),
  Flag.withDefault(false)
)

const isShort = (text: string) => text.length < PASSPHRASE_CHARS_MIN

/** Asked for twice, since nothing opens the secrets if it was mistyped. */
const askNew = Effect.gen(function* () {
  const message = `Passphrase for the backup (at least ${PASSPHRASE_CHARS_MIN} characters)`
  const problem = (text: string) =>
    isShort(text) ? `A passphrase needs at least ${PASSPHRASE_CHARS_MIN} characters; type another one` : undefined
  const screen = yield* Screen
  while (true) {
    const first = yield* askHidden(message, problem)
    const second = yield* askPerson(Prompt.Password({ message: "Repeat the passphrase" }))
    if (Redacted.value(first) === Redacted.value(second)) return first
    yield* screen.note("the passphrases differ; type them again")
  }
})

const askGiven = askPerson(Prompt.Password({ message: "Passphrase of the backup" }))

/**
 * A new passphrase has to be long enough. One that was given to a backup is taken as it is typed: only opening the secrets says whether it
 * is right. Fails with `missing` where nobody can be asked.
 */
export const passphraseOf = Effect.fn("choirctl.passphrase")(function* (
  kind: "new" | "given",
  piped: boolean,
  missing: { readonly problem: string; readonly fix: string }
) {
  if (piped) {
    const text = withoutLineEnd(yield* readInput(PASSPHRASE_BYTES_MAX))
    if (kind === "given" || !isShort(text)) return Redacted.make(text)
    return yield* usageError(
      `the passphrase on standard input has fewer than ${PASSPHRASE_CHARS_MIN} characters`,
      "use a longer one"
    )
  }
  const { json } = yield* root
  const screen = yield* Screen
  if (json || !screen.interactive) return yield* usageError(missing.problem, missing.fix)
  return yield* kind === "new" ? askNew : askGiven
})

/** The flag that answers yes. */
export const yesFlag = Flag.Boolean("yes").pipe(
  Flag.withDescription("Do not ask for confirmation; required without a terminal and with --json"),
  Flag.withDefault(false)
)

/** A request for confirmation. */
interface Question {
  /** Whether --yes was given. */
  readonly yes: boolean
  /** The consequences, in sentences that are shown above the question. */
  readonly about: ReadonlyArray<string>
  /** A question that yes and no answer, such as `Delete everything in scratch?`. */
  readonly ask: string
  /** The command with --yes, for a caller that cannot be asked. */
  readonly command: string
}

/**
 * Returns once the operator agrees: by --yes, or by typing y at a terminal, where Enter alone means no. Fails with exit code 1 when the
 * operator declines. Without a terminal, and with --json, it is a usage error that names the command with --yes. Call it before
 * anything is touched.
 */
export const confirm = Effect.fn("choirctl.confirm")(function* ({ about, ask, command, yes }: Question) {
  if (yes) return
  const { json } = yield* root
  const screen = yield* Screen
  const unasked = "This command needs --yes when it cannot ask for confirmation."
  if (json) return yield* usageError([...about, unasked].join("\n"), command)
  for (const line of about) yield* screen.note(line)
  if (!screen.interactive) return yield* usageError(unasked, command)
  if (yield* onHost(askPerson(Prompt.Confirm({ message: ask, initial: false })))) return
  return yield* new CommandFailed({ type: "NOT_CONFIRMED", problem: "nothing was changed", exit_code: EXIT.failed })
})

/** Asks before the file of a backup is replaced. Anything but a file of that name is refused later. */
export const confirmReplaced = Effect.fn("choirctl.confirmReplaced")(function* (
  file: string,
  yes: boolean,
  command: string
) {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) return
  yield* confirm({
    yes,
    about: [`${safeLine(file)} exists and will be replaced by the new backup.`],
    ask: "Replace it?",
    command: `${command} ${shellQuoted(file)} --yes`
  })
})
