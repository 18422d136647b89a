/** choirctl completions: what a shell needs to complete its commands. */
import { Effect } from "effect"
import { Argument, Command, Completions } from "effect/cli"
import { Screen } from "#src/choirctl/terminal/Screen.ts"

/** @param described answers with the whole command tree, which holds this command too. */
export const completions = (described: () => Command.Command.Any) =>
  Command.make(
    "completions",
    {
      shell: Argument.Literals("shell", ["bash", "zsh", "fish"]).pipe(
        Argument.withDescription("The shell that will read them")
      )
    },
    Effect.fnUntraced(function* ({ shell }) {
      const screen = yield* Screen
      const script = Completions.generate("choirctl", shell, Completions.fromCommand(described()))
      // Effect's header names a flag that only a program without this command has.
      yield* screen.print(script.replaceAll("choirctl --completions", "choirctl completions").trimEnd())
    })
  ).pipe(
    Command.withDescription("Print a completion script"),
    Command.withExamples([
      { command: "choirctl completions bash > ~/.local/share/bash-completion/completions/choirctl" }
    ])
  )
