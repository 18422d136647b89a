/** Failures in one shape: for people, for programs, and as an exit code (docs/operating.md). */
import { Cause, Schema } from "effect"
import { CliError } from "effect/cli"
import type { ErrorDetail } from "#schema/ApiError.ts"
import type { ConfigRefused } from "#src/shared/config/configFiles.ts"
import { predicateOf, problemsOf, problemText } from "#src/shared/config/configProblems.ts"
import type { InvalidFile } from "#src/shared/config/decode.ts"
import { nearestWord } from "#src/shared/text/nearestWord.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** The exit codes of choirctl. */
export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 69, again: 75, config: 78, interrupted: 130 } as const

/** A failure as it is printed. */
export interface Failure {
  readonly type: string
  readonly message: string
  readonly hint?: string
  readonly exit_code: number
}

/** A command that cannot do what was asked, and the command or change that helps. */
export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", {
  type: Schema.String,
  problem: Schema.String,
  hint: Schema.optionalKey(Schema.String),
  exit_code: Schema.Int
}) {
  override get message() {
    return this.hint === undefined ? this.problem : `${this.problem}; to fix it: ${this.hint}`
  }
}

/** A command whose result was printed and is not a success. */
export class Unsuccessful extends Schema.TaggedError<Unsuccessful>()("Unsuccessful", {
  exit_code: Schema.Int
}) {
  override get message() {
    return "the printed result reports a failure"
  }
}

export const usageError = (problem: string, hint: string) =>
  new CommandFailed({ type: "USAGE", problem, hint, exit_code: EXIT.usage })

export const configError = (problem: string, hint: string) =>
  new CommandFailed({ type: "CONFIG", problem, hint, exit_code: EXIT.config })

export const failed = (type: string, problem: string, hint: string) =>
  new CommandFailed({ type, problem, hint, exit_code: EXIT.failed })

/** A refusal of choird in its own words; what may succeed later says so by its exit code. */
export const refusedByChoird = ({ hint, message, retry_after_ms, type }: ErrorDetail) =>
  new CommandFailed({
    type,
    problem: message,
    ...(hint === undefined ? {} : { hint }),
    exit_code: retry_after_ms === undefined ? EXIT.failed : EXIT.again
  })

/** Characters of a refused value that its message repeats. */
const REPEATED_MAX = 60
const SCHEMA = /^Schema validation failed: /u
const CHOICES = /^"[^"]+"(?: \| "[^"]+")+$/u

/** The choices of a flag, with the one that was probably meant; other expectations in plain words. */
const expectedText = (value: string, expected: string): string => {
  if (!CHOICES.test(expected)) return predicateOf(expected)
  const choices = expected.split(" | ").map((choice) => choice.slice(1, -1))
  const near = nearestWord(value, choices)
  return `${near === undefined ? "" : `did you mean ${near}? `}The choices are ${choices.join(", ")}`
}

/** A refused argument or flag with what is wrong about it, in the words of the command rather than of the parser. */
const refusedValue = ({ expected, kind, option, value }: CliError.InvalidValue): string => {
  const name = kind === "argument" ? option : `--${option}`
  const shown = value.length <= REPEATED_MAX ? value : `${firstPart(value, REPEATED_MAX)}…`
  return `${name} cannot be "${shown}": ${expectedText(value, expected.replace(SCHEMA, ""))}`
}

const usageProblem = (error: CliError.CliError): string =>
  error._tag === "InvalidValue" && error.value !== "" ? refusedValue(error) : error.message

const usageFailure = ({ commandPath, errors }: CliError.ShowHelp): Failure => ({
  type: "USAGE",
  message: errors.length === 0 ? "a command is missing" : errors.map(usageProblem).join("; "),
  hint: `${commandPath.join(" ")} --help`,
  exit_code: EXIT.usage
})

const text = (value: unknown, key: string): string | undefined => {
  const found = value instanceof Error ? (value as unknown as Readonly<Record<string, unknown>>)[key] : undefined
  return typeof found === "string" ? found : undefined
}

const isConfigRefused = (error: unknown): error is ConfigRefused => text(error, "_tag") === "ConfigRefused"

/** Each problem of a home's file on a line of its own, with its path in the file. */
const configFailure = ({ file, hint, problems }: ConfigRefused): Failure => {
  const lines = problemsOf(problems).map(problemText)
  return { type: "CONFIG", message: `${file} cannot be used: ${lines.join("\n")}`, hint, exit_code: EXIT.config }
}

/** The same for a file that a command reads for itself. */
const invalidFile = ({ path, problems }: InvalidFile): Failure => ({
  type: "CONFIG",
  message: `${path} is not valid:\n${problemsOf([problems]).map(problemText).join("\n")}`,
  hint: "choirctl config validate",
  exit_code: EXIT.config
})

const BY_TAG: Readonly<Record<string, Pick<Failure, "type" | "exit_code" | "hint">>> = {
  HomeUnknown: { type: "CONFIG", exit_code: EXIT.config },
  GitMissing: { type: "GIT_MISSING", exit_code: EXIT.failed },
  HomeFilesBusy: { type: "BUSY", exit_code: EXIT.again },
  GitFailed: { type: "GIT_FAILED", exit_code: EXIT.failed },
  RepoExists: { type: "REPO_EXISTS", exit_code: EXIT.failed },
  PlatformError: { type: "FILE", exit_code: EXIT.failed }
}

/** One line of an error that nobody foresaw; its stack stays where it was. */
const unforeseen = (error: unknown): Failure => ({
  type: "INTERNAL",
  message: (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] ?? "an unknown error",
  hint: "choirctl doctor",
  exit_code: EXIT.failed
})

const ofError = (error: unknown): Failure => {
  if (error instanceof CommandFailed) {
    const { exit_code, hint, problem, type } = error
    return { type, message: problem, ...(hint === undefined ? {} : { hint }), exit_code }
  }
  if (CliError.isCliError(error))
    return error._tag === "ShowHelp"
      ? usageFailure(error)
      : { type: "USAGE", message: error.message, hint: "choirctl --help", exit_code: EXIT.usage }
  if (isConfigRefused(error)) return configFailure(error)
  if (text(error, "_tag") === "InvalidFile") return invalidFile(error as InvalidFile)
  const known = BY_TAG[text(error, "_tag") ?? ""]
  if (known === undefined || !(error instanceof Error)) return unforeseen(error)
  return { ...known, message: error.message }
}

/** How to exit after a cause, and what to print of it: nothing where the result was printed or the user left. */
export const failureOf = (cause: Cause.Cause<unknown>): Failure | { readonly exit_code: number } => {
  if (Cause.hasInterruptsOnly(cause)) return { exit_code: EXIT.interrupted }
  const first = cause.reasons.find((reason) => reason._tag !== "Interrupt")
  const error = first?._tag === "Fail" ? first.error : first?._tag === "Die" ? first.defect : undefined
  return error instanceof Unsuccessful ? { exit_code: error.exit_code } : ofError(error)
}
