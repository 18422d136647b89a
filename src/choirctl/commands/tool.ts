/** choirctl tool: the tools of an agent, and one call of one outside of every session. */
import { Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import type { ToolSummary } from "#schema/AgentsApi.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { triedToolText } from "#src/choirctl/render/trials.ts"
import { EXIT, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirm, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { safeLine, table } from "#src/choirctl/terminal/text.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { agentId } from "#src/choirctl/commands/flags/arguments.ts"
import { inputOf } from "#src/choirctl/commands/flags/inputOf.ts"
import { agentFlag, agentOf, inputFlag } from "#src/choirctl/commands/flags/tryFlags.ts"

const toolTable = (rows: ReadonlyArray<ToolSummary>, color: boolean): string =>
  table(
    ["TOOL", "FROM", "VERSION", "EFFECT", "LANES", "DESCRIPTION"],
    rows.map(({ description, effect, exposure, name, not_offered, source, version }) => [
      name,
      source,
      safeLine(version ?? ""),
      effect ?? "",
      exposure ?? "",
      safeLine(not_offered === undefined ? (description ?? "") : `(not available: ${not_offered}) ${description ?? ""}`)
    ]),
    color
  )

const list = Command.make(
  "list",
  { id: agentId },
  Effect.fnUntraced(function* ({ id }) {
    const rows = yield* ask("skills", (choird) => choird.tools({ params: { id } }))
    yield* print(rows, toolTable)
  })
).pipe(
  Command.withDescription("List the tools of an agent: the built-in ones and those of its newest image"),
  Command.withExamples([{ command: "choirctl tool list agent-1" }])
)

const attempt = Command.make(
  "try",
  {
    tool: Argument.String("tool").pipe(Argument.withDescription("Tool name from choirctl tool list")),
    input: inputFlag("tool"),
    agent: agentFlag,
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ agent, input, tool, yes }) {
    const id = yield* agentOf(agent)
    const value = Option.isSome(input) ? yield* inputOf(input.value) : {}
    const call = (confirmed: boolean) =>
      ask("skills", (choird) => choird.tryTool({ params: { id }, payload: { tool, input: value, confirmed } })).pipe(
        withProgress(`calling ${safeLine(tool)}`)
      )
    const first = yield* call(yes)
    if (first.type === "asks")
      yield* confirm({
        yes,
        about: [`This calls ${safeLine(tool)} for real: ${safeLine(first.why)}.`, safeLine(JSON.stringify(value)), ""],
        ask: "Call it?",
        command: `choirctl tool try ${tool} --agent ${id} --input ${shellQuoted(JSON.stringify(value))} --yes`
      })
    const tried = first.type === "asks" ? yield* call(true) : first
    yield* print(tried, triedToolText(tool))
    if (tried.type === "asks" || tried.status !== "success") return yield* new Unsuccessful({ exit_code: EXIT.failed })
  }, onHost)
).pipe(
  Command.withDescription("Call a tool once outside of every session, to check a key, an account or your own tool"),
  Command.withExamples([
    { command: `choirctl tool try choir.web.search --input '{"query":"effect typescript"}'` },
    { command: "choirctl tool try choir.email.check --agent agent-1" }
  ])
)

export const tool = Command.make("tool").pipe(Command.withSubcommands([list, attempt]))
