/** choirctl workspace: the folders that agents work in. */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { ResourceName } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { confirm, yesFlag } from "#src/choirctl/terminal/confirm.ts"
import { withProgress } from "#src/choirctl/terminal/progress.ts"
import { print, printAdvice } from "#src/choirctl/terminal/print.ts"
import { safeLine } from "#src/choirctl/terminal/safeText.ts"
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

/** What an operator reads before everything in a workspace is gone. A name that choird does not know is refused by choird itself. */
const losses = Effect.fnUntraced(function* (name: ResourceName) {
  const { folderContents } = yield* Effect.promise(() => import("#src/choirctl/home/folderContents.ts"))
  const rows = yield* ask("system", (choird) => choird.workspaces())
  const row = rows.find((each) => each.name === name)
  if (row === undefined) return undefined
  const contents = yield* folderContents(row.path)
  return [
    `${name} is ${safeLine(row.path)} and holds ${contents}. All of it will be deleted.`,
    ...(row.leased_by === null ? [] : [`${row.leased_by} works there and will be stopped.`])
  ]
})

const reset = Command.make(
  "reset",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("A workspace of config.json"),
      Argument.withSchema(ResourceName)
    ),
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ name, yes }) {
    const about = yes ? undefined : yield* losses(name)
    if (about !== undefined)
      yield* confirm({
        yes,
        about,
        ask: `Delete everything in ${name}?`,
        command: `choirctl workspace reset ${name} --yes`
      })
    const done = yield* ask("workspaces", (choird) => choird.reset({ params: { name } })).pipe(
      withProgress(`emptying ${name}`)
    )
    yield* printAdvice(done, resetLine)
  })
).pipe(
  Command.withDescription("Stop the agent that works in a workspace and delete everything in it; its folder stays"),
  Command.withExamples([{ command: "choirctl workspace reset scratch" }])
)

export const workspace = Command.make("workspace").pipe(
  Command.withDescription("See and empty the folders that agents work in"),
  Command.withSubcommands([list, reset])
)
