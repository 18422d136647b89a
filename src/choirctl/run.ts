/** One call of choirctl, from its arguments to its exit code. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Effect, Exit, Layer, Option, References, Result } from "effect"
import { CliConfig, CliError, CliOutput, Command, GlobalFlag } from "effect/cli"
import { EXIT, type Failure, failureOf } from "#src/choirctl/terminal/failure.ts"
import { Host, parserServices } from "#src/choirctl/terminal/Host.ts"
import { Screen, surviveClosedPipes, withNotes } from "#src/choirctl/terminal/Screen.ts"
import { jsonText, paint, safeText } from "#src/choirctl/terminal/text.ts"
import { homeFolder, onHome } from "#src/shared/files/homeFolder.ts"
import { trustHome } from "#src/choirctl/client/trustHome.ts"
import { VERSION } from "#src/shared/program/version.ts"
import { cli } from "./cli.ts"

const builtIns = [GlobalFlag.Help, GlobalFlag.Version]

/** Requested help is a result; unrequested help gives way to the one-line error. Help for a group of commands goes to `group`. */
const makePresenter = Effect.fnUntraced(function* (
  group: (text: string) => Effect.Effect<void>,
  unrequested: (text: string) => void
) {
  const screen = yield* Screen
  const formatter = CliOutput.defaultFormatter({ colors: screen.color })
  const presenter: CliOutput.Presenter = {
    present: (event) => {
      switch (event._tag) {
        case "Version":
          return screen.print(event.version)
        case "Help": {
          if (event.reason !== "Requested")
            return Effect.sync(() => unrequested(formatter.formatHelpDoc(event.helpDoc)))
          const text = formatter.formatHelpDoc(event.helpDoc)
          return event.helpDoc.subcommands === undefined ? screen.print(text) : group(text)
        }
        case "InvalidInvocation":
          return Effect.void
      }
    }
  }
  return presenter
})

const flagsOf = (args: ReadonlyArray<string>) => {
  const end = args.indexOf("--")
  return end < 0 ? args : args.slice(0, end)
}

/** Read from the raw arguments, since they may not parse. */
const wantsJson = (args: ReadonlyArray<string>) => flagsOf(args).includes("--json")

const HELP: ReadonlySet<string> = new Set(["--help", "-h"])

const show = Effect.fnUntraced(function* (json: boolean, { hint, message, type }: Failure) {
  const screen = yield* Screen
  if (json) return yield* screen.print(jsonText({ ok: false, error: { type, message, hint: hint ?? null } }))
  const lines = [`${paint(screen.transient && screen.color, "red", "error:")} ${safeText(message)}`]
  if (hint !== undefined) lines.push(`hint: ${safeText(hint)}`)
  return yield* screen.note(lines.join("\n"))
})

const call = (args: ReadonlyArray<string>, presenter: CliOutput.Presenter) =>
  cli(args).pipe(
    Effect.flatMap((tree) => Command.runWith(tree, { version: VERSION, renderErrors: false })(args)),
    Effect.provideService(CliConfig.CliConfig, CliConfig.make({ builtIns: builtIns })),
    Effect.provideService(CliOutput.Presenter, presenter),
    Effect.provide(parserServices),
    Effect.exit
  )

/**
 * The failure of a call whose help was requested for a command that does not exist. The library prints the group's help there as well;
 * the same call without the flag tells the two apart, since a group alone does nothing.
 */
const unknownCommand = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const exit = yield* call(
    flagsOf(args).filter((arg) => !HELP.has(arg)),
    { present: () => Effect.void }
  )
  const error = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined
  return CliError.isCliError(error) && error._tag === "ShowHelp" && error.errors.length > 0 ? exit : undefined
})

/** The home that the raw arguments name, since they may not parse; none where nothing names one. */
const homeOf = (args: ReadonlyArray<string>): string | undefined => {
  const flags = flagsOf(args)
  const at = flags.findLastIndex((arg) => arg === "--home" || arg.startsWith("--home="))
  const flag = flags[at]
  const named = flag === "--home" ? flags[at + 1] : flag?.slice("--home=".length)
  return Result.getOrUndefined(Result.try(() => homeFolder(named)))
}

/** Whether no command was named at all; a person then gets the overview. */
const isBare = (cause: Cause.Cause<unknown>): boolean => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return (
    CliError.isCliError(error) &&
    error._tag === "ShowHelp" &&
    error.errors.length === 0 &&
    error.commandPath.length === 1
  )
}

/** Runs the command that the arguments name, prints its result or its failure, and returns the exit code. */
export const run = Effect.fn("choirctl.run")(
  function* (args: ReadonlyArray<string>) {
    const screen = yield* Screen
    const home = homeOf(args)
    if (home !== undefined) yield* Effect.promise(() => trustHome(home))
    let help: string | undefined
    let overview = ""
    const presenter = yield* makePresenter(
      (text) => Effect.sync(() => void (help = text)),
      (text) => void (overview = text)
    )
    const first = yield* call(args, presenter)
    const exit = help === undefined ? first : ((yield* unknownCommand(args)) ?? first)
    if (Exit.isSuccess(exit)) {
      if (help !== undefined) yield* screen.print(help)
      return EXIT.done
    }
    const failure = failureOf(exit.cause)
    if (isBare(exit.cause) && !wantsJson(args) && overview !== "") yield* screen.note(overview)
    else if ("message" in failure) yield* show(wantsJson(args), failure)
    return failure.exit_code
  },
  // The commands that a note advises to run are for the home that the flags name.
  (running, args) =>
    Effect.updateService(running, Screen, (screen) => {
      const home = homeOf(args)
      return home === undefined ? screen : withNotes(screen, (text) => onHome(home, text))
    })
)

const Platform = Layer.mergeAll(Host.layer, Screen.layer, Layer.succeed(References.LogToStderr, true))

/** Runs choirctl as this process. */
export const main = (args: ReadonlyArray<string>): void => {
  surviveClosedPipes()
  NodeRuntime.runMain(
    run(args).pipe(
      Effect.tap((code) => Effect.sync(() => void (process.exitCode = code))),
      Effect.provide(Platform)
    ),
    { disableErrorReporting: true }
  )
}
