/** choirctl workspace: the folders that agents work in. */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { ResourceName } from "#schema/Ids.ts"
import type { WorkspaceSummary } from "#schema/SystemApi.ts"
import type { WorkspaceReset } from "#schema/SystemApi.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { print, printAdvice, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirm, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { safeLine, table } from "#src/choirctl/terminal/text.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"

const usedText = ({ quota_bytes = null, used_bytes }: WorkspaceSummary): string => {
  if (used_bytes === undefined) return ""
  return quota_bytes === null ? bytesText(used_bytes) : `${bytesText(used_bytes)} of ${bytesText(quota_bytes)}`
}

export const workspaceTable = (rows: ReadonlyArray<WorkspaceSummary>, color: boolean): string =>
  rows.length === 0
    ? "no workspace is configured"
    : table(
        ["WORKSPACE", "HELD BY", "USED", "PATH"],
        rows.map((row) => [row.name, row.leased_by ?? "", usedText(row), row.path]),
        color
      )

const resetLine = ({ name, path, stopped }: WorkspaceReset): string =>
  stopped === null
    ? `${name} is empty: ${safeLine(path)}`
    : `${name} is empty: ${safeLine(path)}\n${stopped} was stopped for it: choirctl agent start ${stopped}`

const list = Command.make(
  "list",
  {},
  Effect.fnUntraced(function* () {
    const rows = yield* ask("system", (choird) => choird.workspaces())
    yield* print(rows, workspaceTable)
  })
).pipe(
  Command.withDescription("List workspaces, their folders and the agents that hold them"),
  Command.withExamples([{ command: "choirctl workspace list" }])
)

/** The warning before a workspace is emptied; nothing for an unknown name, which choird refuses. */
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
      Argument.withDescription("Workspace from config.json"),
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
  Command.withDescription("Delete the contents of a workspace, after stopping the agent that works in it"),
  Command.withExamples([{ command: "choirctl workspace reset scratch" }])
)

export const workspace = Command.make("workspace").pipe(
  Command.withDescription("List and reset the folders that agents work in"),
  Command.withSubcommands([list, reset])
)
