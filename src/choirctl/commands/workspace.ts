/** choirctl workspace: the folders that agents work in. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { ask } from "#src/choirctl/ask.ts"
import { print } from "#src/choirctl/print.ts"
import { workspaceTable } from "#src/choirctl/render/workspaces.ts"

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

export const workspace = Command.make("workspace").pipe(
  Command.withDescription("See the folders that agents work in"),
  Command.withSubcommands([list])
)
