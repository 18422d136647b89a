/** choirctl workspace: the folders that agents work in. */
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
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
    ),
    stop: Flag.Boolean("stop").pipe(Flag.withDescription("Stop the agent that holds it first"), Flag.withDefault(false))
  },
  Effect.fnUntraced(function* ({ name, stop }) {
    const done = yield* ask("workspaces", (choird) =>
      choird.reset({ params: { name }, payload: stop ? { stop } : {} })
    ).pipe(withProgress(`emptying ${name}`))
    yield* print(done, resetLine)
  })
).pipe(
  Command.withDescription("Delete everything in a workspace; its folder stays"),
  Command.withExamples([{ command: "choirctl workspace reset scratch --stop" }])
)

export const workspace = Command.make("workspace").pipe(
  Command.withDescription("See and empty the folders that agents work in"),
  Command.withSubcommands([list, reset])
)
