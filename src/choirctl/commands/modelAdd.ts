/** choirctl model add: a model in config.json with its provider's key, tried before it is written. */
import { Effect, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { modelEntry } from "#src/choirctl/home/initHome.ts"
import { modelUse } from "#src/choirctl/home/modelUse.ts"
import { knownPrice } from "#src/choirctl/home/knownModels.ts"
import { apiAt, hasOwnAddress, presetOf, type Provider, PROVIDERS } from "#src/choirctl/home/providers.ts"
import type { CheckFailed } from "#src/choirctl/doctor/checkHttp.ts"
import { addressProblem, nameProblem, needsKey, takesKey } from "#src/choirctl/home/setupAnswers.ts"
import { failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { readInput, withoutLineEnd } from "#src/choirctl/terminal/input.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { yesFlag } from "#src/choirctl/terminal/questions.ts"
import { root, startCommand } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { onHome } from "#src/shared/files/homeFolder.ts"
import { apiAddress, apiNamedBy } from "#src/shared/wire/apiAddress.ts"
import { applyEntries } from "./applyConfig.ts"
import type { ChosenKey } from "./chosenKey.ts"
import { givenPrice, modelFlags } from "#src/choirctl/commands/flags/modelFlags.ts"
import { secretFlag } from "#src/choirctl/commands/flags/secretFlag.ts"
import { SECRET_BYTES_MAX } from "./secret.ts"

const flags = {
  name: Argument.String("name").pipe(
    Argument.withDescription("Name of the model in config.json, such as sonnet"),
    Argument.withSchema(ResourceName)
  ),
  provider: Flag.Literals("provider", PROVIDERS).pipe(
    Flag.withDescription("Provider of the model; offline and local need no key"),
    Flag.optional
  ),
  model: Flag.String("model").pipe(
    Flag.withDescription("Its name at the provider; chosen automatically for the listed providers"),
    Flag.withMetavar("<model>"),
    Flag.optional
  ),
  ...modelFlags(""),
  agent: Flag.String("agent").pipe(
    Flag.withDescription("Make it the default model of this agent"),
    Flag.withMetavar("<agent-id>"),
    Flag.withSchema(AgentId),
    Flag.optional
  ),
  fallback_for: Flag.String("fallback-for").pipe(
    Flag.withDescription("Use it when this model of config.json is overloaded or fails"),
    Flag.withMetavar("<name>"),
    Flag.withSchema(ResourceName),
    Flag.optional
  ),
  secret: secretFlag,
  yes: yesFlag,
  untested: Flag.Boolean("untested").pipe(
    Flag.withDescription("Add it without asking it for a tool call first"),
    Flag.withDefault(false)
  )
} as const

type Flags = {
  readonly [K in keyof typeof flags]: (typeof flags)[K] extends Flag.Flag<infer A>
    ? A
    : (typeof flags)[K] extends Argument.Argument<infer A>
      ? A
      : never
}

/** Asks what no flag answers, where a person can be asked. */
const questions = Effect.fnUntraced(function* (name: string) {
  const { json } = yield* root
  const screen = yield* Screen
  if (json || !screen.interactive)
    return (flag: string) =>
      Effect.fail(usageError(`${flag} is missing`, `choirctl model add ${name} --help lists the flags`))
  return undefined
})

/** The provider, the address and the model, from the flags and else from a person. */
const chosen = Effect.fnUntraced(function* (wanted: Flags) {
  const missing = yield* questions(wanted.name)
  const { askEndpoint, askName, askProvider } = yield* Effect.promise(
    () => import("#src/choirctl/setup/wizardQuestions.ts")
  )
  const provider: Provider = Option.isSome(wanted.provider)
    ? wanted.provider.value
    : Option.isSome(wanted.endpoint)
      ? "other"
      : yield* missing?.("--provider") ?? askProvider
  const preset = presetOf(provider)
  const typed = Option.getOrUndefined(wanted.endpoint)?.trim()
  const address = typed ?? preset.endpoint ?? (yield* missing?.("--endpoint") ?? askEndpoint(provider))
  const model =
    Option.getOrUndefined(wanted.model)?.trim() ??
    (missing === undefined
      ? yield* askName(provider)
      : hasOwnAddress(provider)
        ? yield* missing("--model")
        : preset.model)
  const problem = addressProblem(address) ?? nameProblem(provider, model)
  if (problem !== undefined) return yield* usageError("the model cannot be added", problem)
  const api = Option.getOrUndefined(wanted.api) ?? apiNamedBy(address) ?? apiAt(provider, address)
  return { provider, endpoint: apiAddress(address), model, api }
})

type Choice = Effect.Success<ReturnType<typeof chosen>>

/** The key of the model: one that its server gets already, else from standard input or a person. */
const keyOf = Effect.fnUntraced(function* (home: string, wanted: Flags, { endpoint, provider }: Choice) {
  const screen = yield* Screen
  if (!takesKey(provider)) {
    if (Option.isNone(wanted.secret)) return undefined
    return yield* usageError(`the provider ${provider} takes no key`, "leave out --secret, or choose --provider other")
  }
  const { chosenKey } = yield* Effect.promise(() => import("./chosenKey.ts"))
  const { askKey } = yield* Effect.promise(() => import("#src/choirctl/setup/wizardQuestions.ts"))
  const typed = screen.typed_input ? "" : withoutLineEnd(yield* readInput(SECRET_BYTES_MAX)).trim()
  const chosen = yield* chosenKey({
    home,
    address: endpoint,
    own: `${wanted.name}-key`,
    named: wanted.secret,
    piped: typed === "" ? undefined : Redacted.make(typed),
    reuses: true,
    ask: screen.typed_input && screen.interactive ? askKey(provider) : Effect.undefined,
    yes: wanted.yes,
    command: `choirctl model add ${wanted.name} …`
  })
  if (chosen === undefined && (needsKey(provider) || Option.isSome(wanted.secret)))
    return yield* usageError(
      "no key was given",
      `type it, or pass it on standard input: choirctl model add … < key.txt`
    )
  return chosen
})

/** A refused key that another model uses as well is not replaced: this one gets a key of its own. */
const keyFix = (name: string, secret: ChosenKey | undefined, { fix, obstacle }: CheckFailed) =>
  obstacle === "key" && secret !== undefined && secret.value === undefined
    ? `give this model a key of its own: choirctl model add ${name} … --secret ${name}-key < key.txt`
    : fix

export const modelAdd = Command.make(
  "add",
  flags,
  Effect.fnUntraced(function* (wanted) {
    const { home } = yield* root
    const screen = yield* Screen
    const { name } = wanted
    const choice = yield* chosen(wanted)
    const { api, endpoint, model, provider } = choice
    const price = (yield* givenPrice("", wanted)) ?? knownPrice(provider, model)
    const secret = yield* keyOf(home, wanted, choice)
    const { addEntry } = yield* Effect.promise(() => import("#src/choirctl/home/configEntries.ts"))
    const { tryModel, triedWords } = yield* Effect.promise(() => import("#src/choirctl/doctor/modelCheck.ts"))
    // choird serves the offline model itself, and may not run yet.
    const tried =
      wanted.untested || provider === "offline"
        ? undefined
        : yield* tryModel({ api, endpoint, model, provider, price }, secret?.key).pipe(
            withProgress(`asking ${model}`),
            Effect.mapError((found) =>
              failed(`MODEL_${found.obstacle.toUpperCase()}`, found.problem, keyFix(name, secret, found))
            )
          )
    if (tried !== undefined) yield* screen.note(`It works: ${triedWords(model, tried)}`)
    if (price === undefined)
      yield* screen.note(
        "warning: its price is unknown, so its calls do not count towards budgets.max_cost_usd; give --price-in and --price-out"
      )
    const agent = Option.getOrUndefined(wanted.agent)
    const value = modelEntry({ provider, name: model, endpoint, api, price, secret: secret?.name })
    const fallback_for = Option.getOrUndefined(wanted.fallback_for)
    const added = yield* addEntry(home, { section: "models", name, value, secret, agent, fallback_for })
    const { applied, note } = yield* applyEntries(name, added)
    if (note !== undefined) yield* screen.note(note)
    // A fallback is asked from the next model call on.
    const use =
      agent !== undefined
        ? [`choirctl agent restart ${agent}`]
        : fallback_for === undefined
          ? [yield* modelUse(home, name)]
          : []
    const next = (
      applied === null
        ? [startCommand(home)]
        : [...(applied ? [] : ["choirctl config apply"]), ...use].map((command) => onHome(home, command))
    ) as ReadonlyArray<string>
    const told = `added ${model} as ${name}${fallback_for === undefined ? "" : `, for when ${fallback_for} fails`}`
    const answer = { ok: true, name, model, provider, secret: secret?.name ?? null, applied, next }
    yield* print({ ...answer, ...(fallback_for === undefined ? {} : { fallback_for }) }, () =>
      [told, ...(next.length === 0 ? [] : ["", "Next:", ...next.map((command) => `  ${command}`)])].join("\n")
    )
  }, onHost)
).pipe(
  Command.withDescription(
    "Add a model; its key is asked for without echo or read from standard input, and it is tried with one tool call"
  ),
  Command.withExamples([
    { command: "choirctl model add sonnet --provider openrouter --model anthropic/claude-sonnet-4.6 --agent choir" },
    {
      command: "choirctl model add second --provider openrouter --model anthropic/claude-sonnet-4.6 --fallback-for main"
    }
  ])
)
