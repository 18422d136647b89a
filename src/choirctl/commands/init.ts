/** choirctl init: a home in which choird starts. */
import { Effect, FileSystem, Option, Redacted, Result } from "effect"
import { Command, Flag, Prompt } from "effect/cli"
import type { Model } from "#schema/Config.ts"
import { ResourceName } from "#schema/Ids.ts"
import { isTimeZone } from "#schema/TimeZone.ts"
import { secretsPath } from "#src/choirctl/home/homeFiles.ts"
import type { Setup } from "#src/choirctl/home/initHome.ts"
import { knownPrice } from "#src/choirctl/home/knownModels.ts"
import { apiAt, hasOwnAddress, presetOf, type Provider, PROVIDERS } from "#src/choirctl/home/providers.ts"
import {
  addressProblem,
  type Given,
  isTelegramId,
  keyName,
  known,
  nameProblem,
  needsKey
} from "#src/choirctl/home/setupAnswers.ts"
import { initText } from "#src/choirctl/render/setup.ts"
import { failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { readInput } from "#src/choirctl/terminal/input.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { askPerson } from "#src/choirctl/terminal/questions.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { isLoopback } from "#src/shared/config/offlineEndpoint.ts"
import { unmappedRoot } from "#src/shared/docker/dockerInfo.ts"
import { apiAddress, apiNamedBy } from "#src/shared/wire/apiAddress.ts"
import { briefFlag } from "#src/choirctl/commands/flags/briefFlag.ts"
import { givenPrice, modelFlags } from "#src/choirctl/commands/flags/modelFlags.ts"
import { SECRET_BYTES_MAX } from "./secret.ts"

const flags = {
  provider: Flag.Literals("model-provider", PROVIDERS).pipe(
    Flag.withDescription("Provider of the first model; offline and local need no key"),
    Flag.optional
  ),
  ...modelFlags("model-"),
  name: Flag.String("model-name").pipe(
    Flag.withDescription("Model name at the provider; chosen automatically for the listed providers"),
    Flag.withMetavar("<model>"),
    Flag.optional
  ),
  test: Flag.Boolean("model-test").pipe(
    Flag.withDescription(
      "Ask the model for one tool call once the home is set up; exits with 1 and the cause if it fails"
    ),
    Flag.withDefault(false)
  ),
  fallback: Flag.String("model-fallback").pipe(
    Flag.withDescription("Model of the same provider to use when the first one is overloaded or fails"),
    Flag.withMetavar("<model>"),
    Flag.optional
  ),
  key_stdin: Flag.Boolean("model-secret-stdin").pipe(
    Flag.withDescription("Read the provider's key from standard input"),
    Flag.withDefault(false)
  ),
  telegram_user: Flag.String("telegram-user-id").pipe(
    Flag.withDescription("Your numeric Telegram user id; without it choirctl dm pair lets you in with a code"),
    Flag.withMetavar("<id>"),
    Flag.optional
  ),
  telegram_api_root: Flag.String("telegram-api-root").pipe(
    Flag.withDescription("Address of your own Bot API server (also CHOIR_TELEGRAM_API_ROOT)"),
    Flag.withMetavar("<url>"),
    Flag.optional
  ),
  timezone: Flag.String("timezone").pipe(
    Flag.withDescription("Time zone of the people, such as Europe/Berlin; default: that of this machine"),
    Flag.withMetavar("<zone>"),
    Flag.optional
  ),
  runtime: Flag.Literals("runtime", ["auto", "sandbox", "process", "docker"]).pipe(
    Flag.withDescription("Runtime of the agents; process does not isolate them"),
    Flag.optional
  ),
  unmapped_root: Flag.Boolean("allow-unmapped-root").pipe(
    Flag.withDescription("Allow a Docker engine without user namespaces"),
    Flag.withDefault(false)
  ),
  token_stdin: Flag.Boolean("telegram-secret-stdin").pipe(
    Flag.withDescription("Read the bot's token from standard input, on the line after the provider's key"),
    Flag.withDefault(false)
  ),
  brief: briefFlag
} as const

/** The model of a new home, and the one that answers when it fails. */
const MAIN = ResourceName.make("main")
const FALLBACK = ResourceName.make("fallback")

type Flags = {
  readonly [K in Exclude<keyof typeof flags, "brief">]: (typeof flags)[K] extends Flag.Flag<infer A> ? A : never
}

/** The lines of standard input that the flags promise, in order. */
const pipedSecrets = Effect.fnUntraced(function* ({ key_stdin, token_stdin }: Flags) {
  if (!key_stdin && !token_stdin) return { key: undefined, token: undefined }
  const lines = (yield* readInput(SECRET_BYTES_MAX)).split("\n").map((line) => line.trim())
  const take = (index: number) => {
    const line = lines[index] ?? ""
    return line === ""
      ? Effect.fail(usageError(`standard input has no line ${index + 1}`, "pass one line for each secret"))
      : Effect.succeed(Redacted.make(line))
  }
  const key = key_stdin ? yield* take(0) : undefined
  const token = token_stdin ? yield* take(key_stdin ? 1 : 0) : undefined
  return { key, token }
})

const providerOf = (provider: Provider | undefined, endpoint: string | undefined): Provider | undefined =>
  provider ?? (endpoint === undefined ? undefined : "other")

const flagProblem = (flag: string, problem: string | undefined) =>
  problem === undefined ? undefined : usageError(`${flag} cannot be used`, problem)

/** The answers given by flags, or the error of the first wrong one. */
const givenBy = Effect.fnUntraced(function* (wanted: Flags) {
  const telegram_user_id = Option.getOrUndefined(wanted.telegram_user)?.trim()
  if (telegram_user_id !== undefined && telegram_user_id !== "" && !isTelegramId(telegram_user_id))
    return yield* usageError(
      "a Telegram user id is a number, such as 123456789",
      "leave it out and pair with a code: choirctl dm pair"
    )
  const endpoint = Option.getOrUndefined(wanted.endpoint)
  const name = Option.getOrUndefined(wanted.name)?.trim()
  const fallback = Option.getOrUndefined(wanted.fallback)?.trim() || undefined
  const given = {
    provider: providerOf(Option.getOrUndefined(wanted.provider), endpoint),
    endpoint: endpoint === undefined ? undefined : apiAddress(endpoint),
    name,
    api: Option.getOrUndefined(wanted.api) ?? (endpoint === undefined ? undefined : apiNamedBy(endpoint)),
    fallback,
    price: yield* givenPrice("model-", wanted),
    telegram_user_id,
    telegram_api_root: Option.getOrUndefined(wanted.telegram_api_root) ?? process.env["CHOIR_TELEGRAM_API_ROOT"],
    timezone: Option.getOrUndefined(wanted.timezone),
    runtime: Option.getOrUndefined(wanted.runtime),
    allow_unmapped_root: wanted.unmapped_root
  } satisfies Given
  const wrong = [
    given.timezone === undefined || isTimeZone(given.timezone)
      ? undefined
      : flagProblem("--timezone", "enter a region and a city, such as Europe/Berlin"),
    endpoint === undefined ? undefined : flagProblem("--model-endpoint", addressProblem(endpoint.trim())),
    name === undefined ? undefined : flagProblem("--model-name", nameProblem(given.provider ?? "other", name)),
    fallback === undefined
      ? undefined
      : flagProblem("--model-fallback", nameProblem(given.provider ?? "other", fallback))
  ].find((problem) => problem !== undefined)
  return wrong === undefined ? given : yield* wrong
})

/** An engine without user namespaces is used only when the operator says so (R38); without it there is the sandbox. */
const unmappedRootOf = Effect.fnUntraced(function* ({ unmapped_root }: Flags, asks: boolean) {
  if (unmapped_root) return true
  const { askEngine } = yield* Effect.promise(() => import("#src/choirctl/doctor/dockerChecks.ts"))
  const engine = yield* askEngine(undefined)
  const plain = Result.isSuccess(engine) ? unmappedRoot(engine.success) : undefined
  if (plain === undefined) return false
  const screen = yield* Screen
  yield* screen.note(`warning: ${plain.problem}. Better: ${plain.fix}`)
  if (asks) return yield* askPerson(Prompt.Confirm({ message: "Let agents run in this engine anyway?" }))
  yield* screen.note("agents run in the sandbox; choirctl init --allow-unmapped-root lets them run in this engine")
  return false
})

/** The runtime for a model's endpoint: an agent in Docker cannot reach this host's loopback. */
const runtimeFor = Effect.fnUntraced(function* (endpoint: string) {
  if (!URL.canParse(endpoint) || !isLoopback(endpoint)) return "auto"
  const { trySandbox } = yield* Effect.promise(() => import("#src/choirctl/doctor/hostChecks.ts"))
  return (yield* trySandbox) === undefined ? "sandbox" : "auto"
})

/** The name of the key's secret. A stored value is taken only where its name says which server it is for. */
const secretName = Effect.fnUntraced(function* (
  home: string,
  provider: Provider,
  endpoint: string,
  key: Redacted.Redacted | undefined
) {
  const fs = yield* FileSystem.FileSystem
  const { loadSecrets } = yield* Effect.promise(() => import("#src/shared/config/configFiles.ts"))
  const { freeName, storedAtPreset } = yield* Effect.promise(() => import("#src/choirctl/home/keyPlace.ts"))
  const secrets = (yield* fs.exists(secretsPath(home))) ? yield* loadSecrets(home) : {}
  const stored = storedAtPreset(provider, endpoint, secrets)
  if (stored !== undefined && (key === undefined || Redacted.value(key) === Redacted.value(stored.key)))
    return stored.name
  return freeName(keyName(provider), secrets)
})

/** The setup of flags alone, where nobody can be asked. */
const setupOfFlags = Effect.fnUntraced(function* (home: string, wanted: Flags, given: Given) {
  const screen = yield* Screen
  const { key, token } = yield* pipedSecrets(wanted)
  const provider = given.provider ?? "offline"
  if (given.provider === undefined)
    yield* screen.note(
      "No model was named: agents use the offline model, which choird serves. See choirctl init --help"
    )
  const { endpoint, name: named } = known({ provider, endpoint: given.endpoint, name: given.name })
  const name = named ?? (hasOwnAddress(provider) ? undefined : presetOf(provider).model)
  if (endpoint === undefined) return yield* usageError("--model-endpoint is missing", "choirctl init --help")
  if (name === undefined) return yield* usageError("--model-name is missing", "choirctl init --help")
  if (named === undefined) yield* screen.note(`The model is ${name}; --model-name chooses another.`)
  const keyed = key !== undefined || needsKey(provider)
  const user_id = given.telegram_user_id || undefined
  const price = given.price ?? knownPrice(provider, name)
  return {
    model: {
      provider,
      endpoint,
      api: given.api ?? apiAt(provider, endpoint),
      name,
      secret: keyed ? yield* secretName(home, provider, endpoint, key) : undefined,
      key,
      price,
      fallback: given.fallback
    },
    telegram:
      user_id === undefined && token === undefined ? undefined : { user_id, token, api_root: given.telegram_api_root },
    timezone: given.timezone,
    runtime: given.runtime ?? (yield* runtimeFor(endpoint)),
    allow_unmapped_root: yield* unmappedRootOf(wanted, false)
  } satisfies Setup
})

/** The setup from the flags and, at a terminal, from the answers of a person. */
const setupOf = Effect.fnUntraced(function* (home: string, wanted: Flags, asks: boolean) {
  const given = yield* givenBy(wanted)
  if (!asks || wanted.key_stdin || wanted.token_stdin) return yield* setupOfFlags(home, wanted, given)
  const { prepareHome } = yield* Effect.promise(() => import("#src/choirctl/home/initHome.ts"))
  const { askSetup } = yield* Effect.promise(() => import("#src/choirctl/setup/wizard.ts"))
  yield* prepareHome(home)
  const allow_unmapped_root = yield* unmappedRootOf(wanted, true)
  return yield* askSetup(home, { ...given, allow_unmapped_root })
})

/** The check of the home's first model, in words. The home is set up whether or not it succeeds. */
const tryFirst = Effect.fnUntraced(function* (home: string) {
  const { loadFiles } = yield* Effect.promise(() => import("#src/shared/config/configFiles.ts"))
  const { triedWords } = yield* Effect.promise(() => import("#src/choirctl/doctor/modelCheck.ts"))
  const { tryConfigured } = yield* Effect.promise(() => import("#src/choirctl/doctor/serviceChecks.ts"))
  const screen = yield* Screen
  const { config, secrets } = yield* loadFiles(home)
  const model = config.models[MAIN]
  if (model === undefined)
    return yield* usageError(`there is no model ${MAIN} in config.json`, "choirctl model test <name>")
  const asked = Effect.fnUntraced(function* (model: Model, what: string) {
    const tried = yield* tryConfigured(model, secrets).pipe(
      withProgress(`asking ${model.model}`),
      Effect.mapError(({ fix, obstacle, problem }) =>
        failed(`MODEL_${obstacle.toUpperCase()}`, `the home is set up, and its ${what} does not work: ${problem}`, fix)
      )
    )
    yield* screen.note(`It works: ${triedWords(model.model, tried)}`)
    return tried
  })
  const tried = yield* asked(model, "model")
  const fallback = config.models[FALLBACK]
  if (fallback !== undefined && fallback.model !== model.model) yield* asked(fallback, "fallback model")
  return tried
})

export const init = Command.make(
  "init",
  flags,
  Effect.fnUntraced(function* ({ brief, ...wanted }) {
    const { home, json } = yield* root
    const screen = yield* Screen
    const { initHome, isConfigured } = yield* Effect.promise(() => import("#src/choirctl/home/initHome.ts"))
    const configured = yield* isConfigured(home)
    const answered = Object.values(wanted).some((value) =>
      Option.isOption(value) ? Option.isSome<unknown>(value) : value
    )
    if (configured && answered) yield* screen.note("config.json already exists, so the flags are ignored")
    const setup = configured ? undefined : yield* setupOf(home, wanted, screen.interactive && !json)
    const done = yield* initHome(home, setup).pipe(withProgress("setting up"))
    const tried = wanted.test ? yield* tryFirst(home) : undefined
    if (!brief || json) yield* print({ ok: true, ...done, ...(tried === undefined ? {} : { tried }) }, initText)
  }, onHost)
).pipe(
  Command.withExamples([
    { command: "choirctl init --model-provider openrouter --model-name openai/gpt-4o --model-secret-stdin < key.txt" }
  ])
)
