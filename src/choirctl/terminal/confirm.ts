/** The question before a command that destroys something or changes what runs. */
import { statSync } from "node:fs"
import { Effect } from "effect"
import { Flag, Prompt } from "effect/cli"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { askPerson } from "./askPerson.ts"
import { CommandFailed, EXIT, usageError } from "./failure.ts"
import { onHost } from "./Host.ts"
import { root } from "./root.ts"
import { safeLine } from "./safeText.ts"
import { Screen } from "./Screen.ts"

/** The flag that stands for the answer yes. */
export const yesFlag = Flag.Boolean("yes").pipe(
  Flag.withDescription("Do it without asking; needed without a terminal and with --json"),
  Flag.withDefault(false)
)

/** What is about to happen. */
interface Question {
  /** Whether --yes was given. */
  readonly yes: boolean
  /** What is lost or changed, in sentences that are shown above the question. */
  readonly about: ReadonlyArray<string>
  /** A question that yes and no answer, such as `Delete everything in scratch?`. */
  readonly ask: string
  /** The command with --yes, for a caller that cannot be asked. */
  readonly command: string
}

/**
 * Returns once the operator agrees: by --yes, or by typing y at a terminal, where Enter alone means no. Fails with exit code 1 when the
 * answer is no. Without a terminal, and with --json, it is a usage error that names the command with --yes. Call it before
 * anything is touched.
 */
export const confirm = Effect.fn("choirctl.confirm")(function* ({ about, ask, command, yes }: Question) {
  if (yes) return
  const { json } = yield* root
  const screen = yield* Screen
  const unasked = "This needs --yes when nobody can be asked."
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
