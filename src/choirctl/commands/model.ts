/** choirctl model: which model an agent speaks with, and the switch to another while it runs. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { ResourceName } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/ask.ts"
import { usageError } from "#src/choirctl/failure.ts"
import { print } from "#src/choirctl/print.ts"
import { agentModelsText, modelTable } from "#src/choirctl/render/models.ts"
import { agentId } from "./arguments.ts"

const list = Command.make(
  "list",
  {},
  Effect.fnUntraced(function* () {
    const rows = yield* ask("system", (choird) => choird.models())
    yield* print(rows, modelTable)
  })
).pipe(
  Command.withDescription("List the models and voice providers that choird runs with"),
  Command.withExamples([{ command: "choirctl model list" }])
)

const get = Command.make(
  "get",
  { id: agentId },
  Effect.fnUntraced(function* ({ id }) {
    const models = yield* ask("agents", (choird) => choird.models({ params: { id } }))
    yield* print(models, agentModelsText)
  })
).pipe(
  Command.withDescription("Show the models that an agent uses, and its defaults"),
  Command.withExamples([{ command: "choirctl model get agent-1" }])
)

const model = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(description),
    Flag.withMetavar("<name>"),
    Flag.withSchema(ResourceName),
    Flag.optional
  )

const set = Command.make(
  "set",
  {
    id: agentId,
    llm: model("llm", "Model for edge, and for core jobs where they shared it"),
    core_llm: model("core-llm", "Model for core jobs")
  },
  Effect.fnUntraced(function* ({ core_llm, id, llm }) {
    if (Option.isNone(llm) && Option.isNone(core_llm))
      return yield* usageError("no model is named", `choirctl model set ${id} --llm <name>`)
    const payload = {
      ...(Option.isSome(llm) ? { llm: llm.value } : {}),
      ...(Option.isSome(core_llm) ? { core_llm: core_llm.value } : {})
    }
    const models = yield* ask("agents", (choird) => choird.setModels({ params: { id }, payload }))
    yield* print(models, agentModelsText)
  })
).pipe(
  Command.withDescription("Switch a running agent to other models from its next call on, until it is started again"),
  Command.withExamples([{ command: "choirctl model set agent-1 --llm sonnet --core-llm opus" }])
)

export const models = Command.make("model").pipe(
  Command.withDescription("Show and switch the models of agents"),
  Command.withSubcommands([list, get, set])
)
