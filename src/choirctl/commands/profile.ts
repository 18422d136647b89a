/** choirctl profile: the job profiles of an agent, and how their jobs ended. */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { AgentType } from "#schema/JobProfile.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { profileTable, profileText } from "#src/choirctl/render/runs.ts"
import { usageError } from "#src/choirctl/terminal/failure.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { agentId } from "#src/choirctl/commands/flags/arguments.ts"

const list = Command.make(
  "list",
  { id: agentId },
  Effect.fnUntraced(function* ({ id }) {
    const rows = yield* ask("runs", (choird) => choird.profiles({ params: { id } }))
    yield* print(rows, profileTable)
  })
).pipe(
  Command.withDescription("List the job profiles of an agent's newest image, with how their jobs ended"),
  Command.withExamples([{ command: "choirctl profile list agent-1" }])
)

const show = Command.make(
  "show",
  {
    id: agentId,
    type: Argument.String("type").pipe(
      Argument.withDescription("Job type from choirctl profile list"),
      Argument.withSchema(AgentType)
    )
  },
  Effect.fnUntraced(function* ({ id, type }) {
    const rows = yield* ask("runs", (choird) => choird.profiles({ params: { id } }))
    const found = rows.find(({ profile }) => profile.agent_type === type)
    if (found === undefined)
      return yield* usageError(
        `${id} has no job type ${type}`,
        `known: ${rows.map(({ profile }) => profile.agent_type).join(", ") || "none"}`
      )
    yield* print(found, profileText)
  })
).pipe(
  Command.withDescription("Show the limits and permissions of a job profile"),
  Command.withExamples([{ command: "choirctl profile show agent-1 scout" }])
)

export const profile = Command.make("profile").pipe(Command.withSubcommands([list, show]))
