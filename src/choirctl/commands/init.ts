/** choirctl init: a home in which choird starts. */
import { Effect, Option, Redacted, Result } from "effect"
import { Command, Flag, Prompt } from "effect/cli"
import { onHost } from "#src/choirctl/Host.ts"
import { unmappedRoot } from "#src/shared/dockerInfo.ts"
import { SECRET_BYTES_MAX } from "#src/shared/limits.ts"
import type { Setup } from "#src/choirctl/initHome.ts"
import { usageError } from "#src/choirctl/failure.ts"
import { keyName, known, PROVIDERS, type Provider, takesKey } from "#src/choirctl/modelChoices.ts"
import { print } from "#src/choirctl/print.ts"
import { withProgress } from "#src/choirctl/progress.ts"
import { readInput } from "#src/choirctl/readInput.ts"
import { root } from "#src/choirctl/root.ts"
import { Screen } from "#src/choirctl/Screen.ts"
import { initText } from "#src/choirctl/render/setup.ts"

const flags = {
  provider: Flag.Literals("model-provider", PROVIDERS).pipe(
    Flag.withDescription("Where the first model comes from; offline needs no key"),
    Flag.optional
  ),
  endpoint: Flag.String("model-endpoint").pipe(
    Flag.withDescription("Address of an OpenAI-compatible API, ending in /v1"),
    Flag.withMetavar("<url>"),
    Flag.optional
  ),
  name: Flag.String("model-name").pipe(
    Flag.withDescription("The provider's name of the model"),
    Flag.withMetavar("<model>"),
    Flag.optional
  ),
  key_stdin: Flag.Boolean("model-secret-stdin").pipe(
    Flag.withDescription("Read the provider's key from standard input"),
    Flag.withDefault(false)
  ),
  telegram_user: Flag.String("telegram-user-id").pipe(
    Flag.withDescription("Your numeric id at Telegram, to talk with agents there"),
    Flag.withMetavar("<id>"),
    Flag.optional
  ),
  unmapped_root: Flag.Boolean("allow-unmapped-root").pipe(
    Flag.withDescription("Let agents run in a Docker engine without user namespaces"),
    Flag.withDefault(false)
  ),
  token_stdin: Flag.Boolean("telegram-secret-stdin").pipe(
    Flag.withDescription("Read the bot's token from standard input, in the line after the provider's key"),
    Flag.withDefault(false)
  )
} as const

type Flags = { readonly [K in keyof typeof flags]: (typeof flags)[K] extends Flag.Flag<infer A> ? A : never }

const given = (value: Option.Option<string>) => Option.getOrUndefined(value)

const PROVIDER_TITLES: Readonly<Record<Provider, string>> = {
  offline: "the offline model: no key, follows plain instructions only",
  openrouter: "OpenRouter",
  openai: "OpenAI",
  other: "another OpenAI-compatible endpoint"
}

/** The lines of standard input that the flags promise, in order. */
const pipedSecrets = Effect.fnUntraced(function* ({ key_stdin, token_stdin }: Flags) {
  if (!key_stdin && !token_stdin) return { key: undefined, token: undefined }
  const lines = (yield* readInput(SECRET_BYTES_MAX)).split("\n").map((line) => line.trim())
  const take = (index: number) => {
    const line = lines[index] ?? ""
    return line === ""
      ? Effect.fail(usageError(`standard input has no line ${index + 1}`, "hand over one line for each secret"))
      : Effect.succeed(Redacted.make(line))
  }
  const key = key_stdin ? yield* take(0) : undefined
  const token = token_stdin ? yield* take(key_stdin ? 1 : 0) : undefined
  return { key, token }
})

/** A text that was given, is asked for, or is missing: then the error names its flag. */
const answer = (flag: string, value: string | undefined, asks: boolean, message: string) => {
  if (value !== undefined) return Effect.succeed(value)
  const nonEmpty = (text: string) => (text.trim() === "" ? Effect.fail("please answer") : Effect.succeed(text.trim()))
  return asks
    ? Prompt.run(Prompt.String({ message, validate: nonEmpty }))
    : Effect.fail(usageError(`--${flag} is missing`, "choirctl init --help"))
}

/** A secret that may be left for later with an empty answer. */
const optionalSecret = (value: Redacted.Redacted | undefined, asks: boolean, message: string) =>
  value !== undefined || !asks
    ? Effect.succeed(value)
    : Effect.map(Prompt.run(Prompt.Password({ message: `${message} (empty: later)` })), (typed) =>
        Redacted.value(typed) === "" ? undefined : typed
      )

const providerOf = Effect.fnUntraced(function* (wanted: Flags, asks: boolean) {
  if (Option.isSome(wanted.provider)) return wanted.provider.value
  if (Option.isSome(wanted.endpoint)) return "other"
  if (!asks) return "offline"
  return yield* Prompt.run(
    Prompt.Select({
      message: "Which model shall agents use?",
      choices: PROVIDERS.map((value) => ({ title: PROVIDER_TITLES[value], value }))
    })
  )
})

/** An engine without user namespaces is used only when the operator says so (R38); without it there is the sandbox. */
const unmappedRootOf = Effect.fnUntraced(function* ({ unmapped_root }: Flags, asks: boolean) {
  if (unmapped_root) return true
  const { askEngine } = yield* Effect.promise(() => import("#src/choirctl/dockerTrials.ts"))
  const engine = yield* askEngine(undefined)
  const plain = Result.isSuccess(engine) ? unmappedRoot(engine.success) : undefined
  if (plain === undefined) return false
  const screen = yield* Screen
  yield* screen.note(`warning: ${plain.problem}. Better: ${plain.fix}`)
  if (asks) return yield* Prompt.run(Prompt.Confirm({ message: "Let agents run in this engine all the same?" }))
  yield* screen.note("agents run in the sandbox; choirctl init --allow-unmapped-root lets them run in this engine")
  return false
})

/** Asks only what no flag answers, and only a person at a terminal. */
const setupOf = Effect.fnUntraced(function* (wanted: Flags, asks: boolean) {
  const piped = yield* pipedSecrets(wanted)
  const provider = yield* providerOf(wanted, asks)
  const preset = known({ provider, endpoint: given(wanted.endpoint), name: given(wanted.name) })
  const endpoint = yield* answer("model-endpoint", preset.endpoint, asks, "Address of the API, ending in /v1")
  const name = yield* answer("model-name", preset.name, asks, "Name of the model")
  const keyed = takesKey(provider) || piped.key !== undefined
  const key = keyed ? yield* optionalSecret(piped.key, asks, "Key of the provider") : undefined
  // An endpoint of one's own may take no key, so the question decides whether config.json names one.
  const secret = keyed && (provider !== "other" || key !== undefined) ? keyName(provider) : undefined
  const typedUser =
    Option.isNone(wanted.telegram_user) && asks
      ? yield* Prompt.run(Prompt.String({ message: "Your numeric id at Telegram (empty: without Telegram)" }))
      : (given(wanted.telegram_user) ?? "")
  const user_id = typedUser.trim()
  if (user_id === "" && piped.token !== undefined)
    return yield* usageError("--telegram-user-id is missing", "it says who may talk with the bot")
  if (user_id !== "" && !/^[1-9][0-9]{0,15}$/u.test(user_id))
    return yield* usageError("a Telegram user id is a number", "see your account there; a name or phone number is none")
  const token = user_id === "" ? undefined : yield* optionalSecret(piped.token, asks, "Token of the bot")
  return {
    model: { provider, endpoint, name, secret, key },
    telegram: user_id === "" ? undefined : { user_id, token },
    allow_unmapped_root: yield* unmappedRootOf(wanted, asks)
  } satisfies Setup
})

export const init = Command.make(
  "init",
  flags,
  Effect.fnUntraced(function* (wanted) {
    const { home, json } = yield* root
    const screen = yield* Screen
    const { initHome, isConfigured } = yield* Effect.promise(() => import("#src/choirctl/initHome.ts"))
    const configured = yield* isConfigured(home)
    const answered = Object.values(wanted).some((value) => (Option.isOption(value) ? Option.isSome(value) : value))
    if (configured && answered) yield* screen.note("config.json is there already: what the flags say is not used")
    const setup = configured ? undefined : yield* setupOf(wanted, screen.interactive && !json)
    const done = yield* initHome(home, setup).pipe(withProgress("setting up"))
    yield* print({ ok: true, ...done }, initText)
  }, onHost)
).pipe(
  Command.withDescription("Set up a home: folders, config.json, secrets.json and the global repository"),
  Command.withExamples([
    { command: "choirctl init --model-provider openrouter --model-name openai/gpt-4o --model-secret-stdin < key.txt" }
  ])
)
