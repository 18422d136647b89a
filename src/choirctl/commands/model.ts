/** choirctl model: which model an agent speaks with, and the switch to another while it runs. */
import { Effect, Option, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type AgentId, ResourceName } from "#schema/Ids.ts"
import type { AgentModels } from "#schema/AgentsApi.ts"
import type { ModelSummary } from "#schema/AgentSummary.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirm, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { unpricedLines } from "#src/choirctl/render/agents.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { agentId } from "#src/choirctl/commands/flags/arguments.ts"
import { modelAdd } from "./modelAdd.ts"
import { removeEntry } from "./removeEntry.ts"
import { type Tried, triedWords } from "#src/choirctl/doctor/modelCheck.ts"
import { fields, safeLine, table } from "#src/choirctl/terminal/text.ts"

const orNone = (names: ReadonlyArray<string> = []): string => names.join(", ") || "-"

/** Models for people. */
const modelTable = (rows: ReadonlyArray<ModelSummary>, color: boolean): string =>
  rows.length === 0
    ? "no model is configured"
    : table(
        ["NAME", "TYPE", "PROVIDER", "MODEL", "DEFAULT OF", "FALLBACK", "USD IN/OUT"],
        rows.map(({ default_of, fallback, model, name, price, provider, type }) => [
          name,
          type,
          safeLine(provider),
          safeLine(model),
          orNone(default_of),
          orNone(fallback),
          price === undefined ? "-" : `${price.input}/${price.output}`
        ]),
        color
      )

const withDefault = (used: string, configured: string) =>
  used === configured ? used : `${used} (default ${configured})`

const agentModelsText = (models: AgentModels): string =>
  fields([
    ["agent", models.agent_id],
    ["edge", withDefault(models.llm, models.default_llm)],
    ["core jobs", withDefault(models.core_llm, models.default_core_llm)],
    ["voice", models.voice_profile ?? "none"],
    ...(models.llm === models.default_llm && models.core_llm === models.default_core_llm
      ? []
      : [["until", "the next start, which takes the default; model set --default makes it last"] as const]),
    ["in use", models.in_use ? "yes" : "from the agent's next heartbeat or start"]
  ])

const testedText = ({ model, name, ...tried }: Tried & { readonly name: string; readonly model: string }) =>
  `${name} works: ${triedWords(model, tried)}`

const list = Command.make(
  "list",
  {},
  Effect.fnUntraced(function* () {
    const rows = yield* ask("system", (choird) => choird.models())
    yield* print(rows, modelTable)
  })
).pipe(
  Command.withDescription("List the models and voice providers of the running configuration"),
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

/** Models by what they are for, as a switch takes them. */
type Chosen = Readonly<Partial<Record<"core_llm" | "llm", ResourceName>>>

/** Writes the defaults of an agent, and switches the agent to them if it runs. */
const keepModels = Effect.fnUntraced(function* (id: AgentId, chosen: Chosen) {
  const { home } = yield* root
  const screen = yield* Screen
  const { setDefaults } = yield* Effect.promise(() => import("#src/choirctl/home/configEntries.ts"))
  const { applyEntries } = yield* Effect.promise(() => import("./applyConfig.ts"))
  const { applied, note } = yield* applyEntries(id, yield* onHost(setDefaults(home, id, chosen)))
  if (note !== undefined) yield* screen.note(safeLine(note))
  const switched =
    applied === true
      ? yield* Effect.result(ask("agents", (choird) => choird.setModels({ params: { id }, payload: chosen })))
      : undefined
  const refused = switched !== undefined && Result.isFailure(switched) ? switched.failure : undefined
  if (refused !== undefined && refused.type !== "NOT_RUNNING") return yield* refused
  const in_use = switched !== undefined && refused === undefined
  const names = Object.values(chosen).join(" and ")
  yield* print(
    { ok: true, agent_id: id, default: chosen, applied, in_use },
    () => `${names}: the default of ${id}, ${in_use ? "and in use from its next step" : "from its next start"}`
  )
})

const set = Command.make(
  "set",
  {
    id: agentId,
    llm: model("llm", "Model for edge, and for core jobs if they use the same one"),
    core_llm: model("core-llm", "Model for core jobs"),
    keep: Flag.Boolean("default").pipe(
      Flag.withDescription("Also make it the agent's default in config.json, which further starts use"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ core_llm, id, keep, llm }) {
    if (Option.isNone(llm) && Option.isNone(core_llm))
      return yield* usageError("no model was given", `choirctl model set ${id} --llm <name>`)
    const payload = {
      ...(Option.isSome(llm) ? { llm: llm.value } : {}),
      ...(Option.isSome(core_llm) ? { core_llm: core_llm.value } : {})
    }
    if (keep) return yield* keepModels(id, payload)
    const models = yield* ask("agents", (choird) => choird.setModels({ params: { id }, payload }))
    // The switch has been made, whether or not this question is answered.
    const detail = Option.getOrUndefined(
      yield* Effect.option(ask("agents", (choird) => choird.status({ params: { id } })))
    )
    const screen = yield* Screen
    for (const line of detail === undefined ? [] : unpricedLines(detail.budgets.cost_usd)) yield* screen.note(line)
    yield* print(models, agentModelsText)
  })
).pipe(
  Command.withDescription(
    "Switch a running agent to other models from its next call, until it is restarted or, with --default, for good"
  ),
  Command.withExamples([{ command: "choirctl model set agent-1 --llm sonnet --core-llm opus" }])
)

const test = Command.make(
  "test",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("Model from config.json"),
      Argument.withSchema(ResourceName)
    ),
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ name, yes }) {
    const { home } = yield* root
    const { loadFiles } = yield* Effect.promise(() => import("#src/shared/config/configFiles.ts"))
    const { tryConfigured } = yield* Effect.promise(() => import("#src/choirctl/doctor/serviceChecks.ts"))
    const { config, secrets } = yield* loadFiles(home)
    const model = Object.hasOwn(config.models, name) ? config.models[name] : undefined
    if (model === undefined)
      return yield* usageError(
        `there is no model ${name} in config.json`,
        `known: ${Object.keys(config.models).join(", ") || "none"}`
      )
    const { unappliedServers } = yield* Effect.promise(() => import("#src/choirctl/home/unappliedServers.ts"))
    const sent = (yield* unappliedServers(home, config)).find(({ path }) => path === `models.${name}.secret`)
    if (sent !== undefined)
      yield* confirm({
        yes,
        about: [`${sent.message.charAt(0).toUpperCase()}${sent.message.slice(1)}.`],
        ask: "Send it there?",
        command: `choirctl model test ${name} --yes`
      })
    const tried = yield* tryConfigured(model, secrets).pipe(
      withProgress(`asking ${name}`),
      Effect.mapError(({ fix, obstacle, problem }) => failed(`MODEL_${obstacle.toUpperCase()}`, problem, fix))
    )
    yield* print({ ok: true, name, model: model.model, ...tried }, testedText)
  })
).pipe(
  Command.withDescription("Test a model from config.json with one tool call; exits with 1 and the cause if it fails"),
  Command.withExamples([{ command: "choirctl model test sonnet" }])
)

const remove = Command.make(
  "remove",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("Model from config.json"),
      Argument.withSchema(ResourceName)
    ),
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ name, yes }) {
    const { modelRemoval } = yield* Effect.promise(() => import("#src/choirctl/home/removedEntries.ts"))
    yield* removeEntry({ noun: "model", name, yes }, (home) => modelRemoval(home, name))
  }, onHost)
).pipe(
  Command.withDescription("Take a model out of config.json; refused while an agent or another model uses it"),
  Command.withExamples([{ command: "choirctl model remove sonnet" }])
)

export const models = Command.make("model").pipe(Command.withSubcommands([list, get, set, test, modelAdd, remove]))
