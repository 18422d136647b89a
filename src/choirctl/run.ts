/** One call of choirctl, from its arguments to its exit code. */
import { Cause, Effect, Exit, Option } from "effect"
import { CliConfig, CliError, CliOutput, Command, GlobalFlag } from "effect/cli"
import { homeFolder, onHome } from "#src/shared/files/homeFolder.ts"
import { cli } from "./cli.ts"
import { EXIT, type Failure, failureOf } from "#src/choirctl/terminal/failure.ts"
import { parserServices } from "#src/choirctl/terminal/Host.ts"
import { jsonText } from "#src/choirctl/terminal/jsonText.ts"
import { paint } from "#src/choirctl/terminal/paint.ts"
import { safeText } from "#src/choirctl/terminal/safeText.ts"
import { Screen, withNotes } from "#src/choirctl/terminal/Screen.ts"
import { VERSION } from "#src/shared/program/version.ts"

const builtIns = [GlobalFlag.Help, GlobalFlag.Version]

/** Help that was asked for is a result; help that was not is left to the one-line error. Help for a group of commands is handed to `group`. */
const presenter = (
  screen: Screen["Service"],
  group: (text: string) => Effect.Effect<void>,
  unasked: (text: string) => void
): CliOutput.Presenter => {
  const formatter = CliOutput.defaultFormatter({ colors: screen.color })
  return {
    present: (event) => {
      switch (event._tag) {
        case "Version":
          return screen.print(event.version)
        case "Help": {
          if (event.reason !== "Requested") return Effect.sync(() => unasked(formatter.formatHelpDoc(event.helpDoc)))
          const text = formatter.formatHelpDoc(event.helpDoc)
          return event.helpDoc.subcommands === undefined ? screen.print(text) : group(text)
        }
        case "InvalidInvocation":
          return Effect.void
      }
    }
  }
}

const flagsOf = (args: ReadonlyArray<string>) => {
  const end = args.indexOf("--")
  return end < 0 ? args : args.slice(0, end)
}

/** The arguments may be what is wrong, so --json is looked for among them as they are. */
const wantsJson = (args: ReadonlyArray<string>) => flagsOf(args).includes("--json")

const HELP: ReadonlySet<string> = new Set(["--help", "-h"])

const show = (screen: Screen["Service"], json: boolean, { hint, message, type }: Failure) => {
  if (json) return screen.print(jsonText({ ok: false, error: { type, message, hint: hint ?? null } }))
  const lines = [`${paint(screen.transient && screen.color, "red", "error:")} ${safeText(message)}`]
  if (hint !== undefined) lines.push(`hint: ${safeText(hint)}`)
  return screen.note(lines.join("\n"))
}

const parse = Command.runWith(cli, { version: VERSION, renderErrors: false })

const called = (screen: Screen["Service"], args: ReadonlyArray<string>, presenter: CliOutput.Presenter) =>
  parse(args).pipe(
    Effect.provideService(Screen, screen),
    Effect.provideService(CliConfig.CliConfig, CliConfig.make({ builtIns: builtIns })),
    Effect.provideService(CliOutput.Presenter, presenter),
    Effect.provide(parserServices),
    Effect.exit
  )

/**
 * The library prints a group's help also where a word names none of its commands. The same call without the flag says whether one does:
 * a group does nothing by itself.
 */
const unknownCommand = Effect.fnUntraced(function* (screen: Screen["Service"], args: ReadonlyArray<string>) {
  const exit = yield* called(
    screen,
    flagsOf(args).filter((arg) => !HELP.has(arg)),
    { present: () => Effect.void }
  )
  const error = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined
  return CliError.isCliError(error) && error._tag === "ShowHelp" && error.errors.length > 0 ? exit : undefined
})

/** The home that the arguments name, which may be what is wrong with them. */
const homeOf = (args: ReadonlyArray<string>) => {
  const flags = flagsOf(args)
  const at = flags.findLastIndex((arg) => arg === "--home" || arg.startsWith("--home="))
  const flag = flags[at]
  return homeFolder(flag === "--home" ? flags[at + 1] : flag?.slice("--home=".length))
}

/** Whether no command was named at all, so that a person wants to know which there are. */
const isBare = (cause: Cause.Cause<unknown>): boolean => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return (
    CliError.isCliError(error) &&
    error._tag === "ShowHelp" &&
    error.errors.length === 0 &&
    error.commandPath.length === 1
  )
}

/** Runs the command that the arguments name, prints its result or its failure, and answers with the exit code. */
export const run = Effect.fn("choirctl.run")(function* (args: ReadonlyArray<string>) {
  const home = homeOf(args)
  const outer = yield* Screen
  // What a note tells a person to run is about the home that the flags name.
  const screen = withNotes(outer, (text) => onHome(home, text))
  let help: string | undefined
  let overview = ""
  const group = (text: string) => Effect.sync(() => void (help = text))
  const first = yield* called(
    screen,
    args,
    presenter(screen, group, (text) => void (overview = text))
  )
  const exit = help === undefined ? first : ((yield* unknownCommand(screen, args)) ?? first)
  if (Exit.isSuccess(exit)) {
    if (help !== undefined) yield* screen.print(help)
    return EXIT.done
  }
  const failure = failureOf(exit.cause)
  if (isBare(exit.cause) && !wantsJson(args) && overview !== "") yield* screen.note(overview)
  else if ("message" in failure) yield* show(screen, wantsJson(args), failure)
  return failure.exit_code
})
