/** choirctl tool: what tools an agent has. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { ask } from "#src/choirctl/client/ask.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { toolTable } from "#src/choirctl/render/skills.ts"
import { agentId } from "./arguments.ts"

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

export const tool = Command.make("tool").pipe(
  Command.withDescription("See the tools of agents"),
  Command.withSubcommands([list])
)
