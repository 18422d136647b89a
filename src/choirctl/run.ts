/** One call of choirctl, from its arguments to its exit code. */
import { Effect, Exit } from "effect"
import { CliConfig, CliOutput, Command, GlobalFlag } from "effect/cli"
import { cli } from "./cli.ts"
import { EXIT, type Failure, failureOf } from "./failure.ts"
import { parserServices } from "./Host.ts"
import { jsonText } from "./render/jsonText.ts"
import { paint } from "./render/paint.ts"
import { safeText } from "./render/safeText.ts"
import { Screen } from "./Screen.ts"
import { VERSION } from "./version.ts"

const builtIns = [GlobalFlag.Help, GlobalFlag.Version]

/** Help that was asked for is a result; help that was not is left to the one-line error. */
const presenter = (screen: Screen["Service"]): CliOutput.Presenter => {
  const formatter = CliOutput.defaultFormatter({ colors: screen.color })
  return {
    present: (event) => {
      switch (event._tag) {
        case "Version":
          return screen.print(event.version)
        case "Help":
          return event.reason === "Requested" ? screen.print(formatter.formatHelpDoc(event.helpDoc)) : Effect.void
        case "InvalidInvocation":
          return Effect.void
      }
    }
  }
}

/** The arguments may be what is wrong, so --json is looked for among them as they are. */
const wantsJson = (args: ReadonlyArray<string>) => {
  const end = args.indexOf("--")
  return (end < 0 ? args : args.slice(0, end)).includes("--json")
}

const show = (screen: Screen["Service"], json: boolean, { hint, message, type }: Failure) => {
  if (json) return screen.print(jsonText({ ok: false, error: { type, message, hint: hint ?? null } }))
  const lines = [`${paint(screen.transient && screen.color, "red", "error:")} ${safeText(message)}`]
  if (hint !== undefined) lines.push(`hint: ${safeText(hint)}`)
  return screen.note(lines.join("\n"))
}

/** Runs the command that the arguments name, prints its result or its failure, and answers with the exit code. */
export const run = Effect.fn("choirctl.run")(function* (args: ReadonlyArray<string>) {
  const screen = yield* Screen
  const exit = yield* Command.runWith(cli, { version: VERSION, renderErrors: false })(args).pipe(
    Effect.provideService(CliConfig.CliConfig, CliConfig.make({ builtIns: builtIns })),
    Effect.provideService(CliOutput.Presenter, presenter(screen)),
    Effect.provide(parserServices),
    Effect.exit
  )
  if (Exit.isSuccess(exit)) return EXIT.done
  const failure = failureOf(exit.cause)
  if ("message" in failure) yield* show(screen, wantsJson(args), failure)
  return failure.exit_code
})
