/** `choirctl voice`: the voices of config.json, and the one in which an agent speaks. */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import type { AgentModels } from "#schema/AgentsApi.ts"
import type { ModelSummary } from "#schema/AgentSummary.ts"
import { ResourceName } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { fields, safeLine, table } from "#src/choirctl/terminal/text.ts"
import { agentId } from "#src/choirctl/commands/flags/arguments.ts"

const voiceTable = (rows: ReadonlyArray<ModelSummary>, color: boolean): string =>
  rows.length === 0
    ? "no voice profile is configured"
    : table(
        ["NAME", "SERVICE", "VOICE"],
        rows.map(({ model, name, provider }) => [name, safeLine(provider), safeLine(model)]),
        color
      )

const voiceText = ({ agent_id, in_use, voice_profile }: AgentModels): string =>
  fields([
    ["agent", agent_id],
    ["voice", voice_profile ?? "none"],
    ["in use", in_use ? "yes" : "from the agent's next heartbeat or start"]
  ])

const list = Command.make(
  "list",
  {},
  Effect.fnUntraced(function* () {
    const rows = yield* ask("system", (choird) => choird.models())
    yield* print(
      rows.filter(({ type }) => type === "voice"),
      voiceTable
    )
  })
).pipe(
  Command.withDescription("List the voice profiles of the running configuration"),
  Command.withExamples([{ command: "choirctl voice list" }])
)

const get = Command.make(
  "get",
  { id: agentId },
  Effect.fnUntraced(function* ({ id }) {
    yield* print(yield* ask("agents", (choird) => choird.models({ params: { id } })), voiceText)
  })
).pipe(
  Command.withDescription("Show the voice profile of an agent"),
  Command.withExamples([{ command: "choirctl voice get agent-1" }])
)

const set = Command.make(
  "set",
  {
    id: agentId,
    name: Argument.String("name").pipe(
      Argument.withDescription("Voice profile from config.json"),
      Argument.withSchema(ResourceName)
    )
  },
  Effect.fnUntraced(function* ({ id, name }) {
    const payload = { voice_profile: name }
    yield* print(yield* ask("agents", (choird) => choird.setModels({ params: { id }, payload })), voiceText)
  })
).pipe(
  Command.withDescription("Switch a running agent to another voice, until it is restarted"),
  Command.withExamples([{ command: "choirctl voice set agent-1 default-en" }])
)

export const voice = Command.make("voice").pipe(Command.withSubcommands([list, get, set]))
