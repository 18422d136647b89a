/** choirctl workspace: the folders that agents work in. */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { ResourceName } from "#schema/Ids.ts"
import type { WorkspaceSummary } from "#schema/SystemApi.ts"
import type { WorkspaceReset, WorkspaceTrusted } from "#schema/SystemApi.ts"
import type { WorkspaceLabel } from "#schema/WorkspaceLabel.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { print, printAdvice, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirm, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { safeLine, table } from "#src/choirctl/terminal/text.ts"
import { originsOf, sourceWords } from "#src/shared/session/sourceWords.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { plural } from "#src/shared/text/counts.ts"

const usedText = ({ quota_bytes = null, used_bytes }: WorkspaceSummary): string => {
  if (used_bytes === undefined) return ""
  return quota_bytes === null ? bytesText(used_bytes) : `${bytesText(used_bytes)} of ${bytesText(quota_bytes)}`
}

export const workspaceTable = (rows: ReadonlyArray<WorkspaceSummary>, color: boolean): string =>
  rows.length === 0
    ? "no workspace is configured"
    : table(
        ["WORKSPACE", "HELD BY", "USED", "FROM OUTSIDE", "PATH"],
        rows.map((row) => [row.name, row.leased_by ?? "", usedText(row), labelText(row.label), row.path]),
        color
      )

/** Labelled files that `workspace trust` lists. */
const FILES_LISTED_MAX = 20

/** Where untrusted text in a workspace may be from, and in how many files where the others have none. */
const labelText = ({ only_in, received = false, written_from }: WorkspaceLabel = {}): string => {
  const sources = written_from?.length === 0 ? "unknown" : (written_from ?? []).join(", ")
  return [
    ...(received ? ["files from people"] : []),
    ...(sources === ""
      ? []
      : [only_in === undefined ? sources : `${plural(only_in.length, "labelled path")}: ${sources}`])
  ].join(", ")
}

/** The labelled files, a line for each with its origins. */
const labelledLines = ({ only_in = [] }: WorkspaceLabel = {}): ReadonlyArray<string> => [
  ...only_in
    .slice(0, FILES_LISTED_MAX)
    .map(({ path, sources }) => `  ${safeLine(path)}: ${originsOf(sources).map(sourceWords).join(", ") || "unknown"}`),
  ...(only_in.length > FILES_LISTED_MAX ? [`  and ${only_in.length - FILES_LISTED_MAX} more`] : [])
]

/** A continued session keeps its own knowledge of the files, which no order of a person changes. */
const FRESH =
  "if a session that has read text from outside continues, it labels the workspace again; to begin a new session: choirctl agent start AGENT --fresh"

export const trustedLine = ({ label, name }: WorkspaceTrusted): string => {
  const before = labelText(label)
  return before === ""
    ? `nothing in ${name} counted as text from outside`
    : [`${name} no longer counts as text from outside (${before})`, ...labelledLines(label), FRESH].join("\n")
}

const resetLine = ({ name, path, stopped }: WorkspaceReset): string =>
  [
    `${name} is empty: ${safeLine(path)}`,
    ...(stopped === null
      ? []
      : [`${stopped} was stopped to do this; to start it again: choirctl agent start ${stopped}`]),
    FRESH
  ].join("\n")

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

/** A workspace that is there, so that nobody is asked about another one. */
const known = Effect.fnUntraced(function* (name: ResourceName) {
  const rows = yield* ask("system", (choird) => choird.workspaces())
  const row = rows.find((each) => each.name === name)
  if (row !== undefined) return row
  const names = rows.map((each) => each.name).join(", ")
  return yield* failed("UNKNOWN_WORKSPACE", `there is no workspace ${name}`, `known: ${names || "none"}`)
})

/** The warning before a workspace is emptied. */
const losses = Effect.fnUntraced(function* (name: ResourceName) {
  const { folderContents } = yield* Effect.promise(() => import("#src/choirctl/home/folderContents.ts"))
  const row = yield* known(name)
  const contents = yield* folderContents(row.path)
  return [
    `${name} is ${safeLine(row.path)} and holds ${contents}. All of it will be deleted.`,
    ...(row.leased_by === null ? [] : [`${row.leased_by} works there and will be stopped.`])
  ]
})

const name = Argument.String("name").pipe(
  Argument.withDescription("Workspace from config.json"),
  Argument.withSchema(ResourceName)
)

const reset = Command.make(
  "reset",
  {
    name,
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ name, yes }) {
    if (!yes)
      yield* confirm({
        yes,
        about: yield* losses(name),
        ask: `Delete everything in ${name}?`,
        command: `choirctl workspace reset ${name} --yes`
      })
    const done = yield* ask("workspaces", (choird) => choird.reset({ params: { name } })).pipe(
      withProgress(`emptying ${name}`)
    )
    yield* printAdvice(done, resetLine)
  })
).pipe(
  Command.withDescription("Stop the agent that uses a workspace, and delete the workspace's contents"),
  Command.withExamples([{ command: "choirctl workspace reset scratch" }])
)

const trust = Command.make(
  "trust",
  {
    name,
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ name, yes }) {
    const shown = yes ? undefined : yield* known(name)
    if (shown !== undefined && shown.leased_by !== null) {
      const { leased_by } = shown
      return yield* failed("WORKSPACE_HELD", `${leased_by} works in ${name}`, `choirctl agent stop ${leased_by}`)
    }
    yield* confirm({
      yes,
      about: [
        `Files in ${name} that came from outside, or were written after reading such text, will count as yours.`,
        ...labelledLines(shown?.label)
      ],
      ask: "Have you looked at them?",
      command: `choirctl workspace trust ${name} --yes`
    })
    const done = yield* ask("workspaces", (choird) => choird.trust({ params: { name } }))
    yield* printAdvice(done, trustedLine)
  })
).pipe(
  Command.withDescription("Stop treating the files of a workspace as text from outside; its agent must be stopped"),
  Command.withExamples([{ command: "choirctl workspace trust main" }])
)

export const workspace = Command.make("workspace").pipe(Command.withSubcommands([list, reset, trust]))
