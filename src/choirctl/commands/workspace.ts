/** choirctl workspace: the folders that agents work in. */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { ResourceName } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/ask.ts"
import { withProgress } from "#src/choirctl/progress.ts"
import { print } from "#src/choirctl/print.ts"
import { resetLine, workspaceTable } from "#src/choirctl/render/workspaces.ts"

const list = Command.make(
  "list",
  {},
  Effect.fnUntraced(function* () {
    const rows = yield* ask("system", (choird) => choird.workspaces())
    yield* print(rows, workspaceTable)
  })
).pipe(
  Command.withDescription("List workspaces, their folders and who holds them"),
  Command.withExamples([{ command: "choirctl workspace list" }])
)

const reset = Command.make(
  "reset",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("A workspace of config.json"),
      Argument.withSchema(ResourceName)
    )
  },
  Effect.fnUntraced(function* ({ name }) {
    const done = yield* ask("workspaces", (choird) => choird.reset({ params: { name } })).pipe(
      withProgress(`emptying ${name}`)
    )
    yield* print(done, resetLine)
  })
).pipe(
  Command.withDescription("Stop the agent that works in a workspace and delete everything in it; its folder stays"),
  Command.withExamples([{ command: "choirctl workspace reset scratch" }])
)

export const workspace = Command.make("workspace").pipe(
  Command.withDescription("See and empty the folders that agents work in"),
  Command.withSubcommands([list, reset])
)
