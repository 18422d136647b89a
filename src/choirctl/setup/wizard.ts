/** The questions of `choirctl init` to a person at a terminal. Each answer is checked and kept before the next question. */
import { Effect, Redacted, Schema } from "effect"
import { RuntimeConfig } from "#schema/Config.ts"
import { SecretName } from "#schema/Ids.ts"
import { askEngine, whyNoDocker } from "#src/choirctl/doctor/dockerChecks.ts"
import { sandboxFix, trySandbox } from "#src/choirctl/doctor/hostChecks.ts"
import { triedWords, tryModel } from "#src/choirctl/doctor/modelCheck.ts"
import type { Setup } from "#src/choirctl/home/initHome.ts"
import { freeName, storedAtPreset, storedValue } from "#src/choirctl/home/keyPlace.ts"
import { knownPrice } from "#src/choirctl/home/knownModels.ts"
import { apiAddress, apiNamedBy } from "#src/shared/wire/apiAddress.ts"
import { apiAt, type Provider } from "#src/choirctl/home/providers.ts"
import { secretValue, setSecret } from "#src/choirctl/home/secretsFile.ts"
import { type Given, keyName, known, needsKey, takesKey } from "#src/choirctl/home/setupAnswers.ts"
import { type Answers, answered, openDraft, type SetupDraft } from "#src/choirctl/home/setupDraft.ts"
import { EXIT, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { withProgress } from "#src/choirctl/terminal/print.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { loadSecrets } from "#src/shared/config/configFiles.ts"
import { originOf } from "#src/shared/config/secretServers.ts"
import { isInTheClear } from "#src/shared/config/clearText.ts"
import { isLoopback } from "#src/shared/config/offlineEndpoint.ts"
import {
  askEndpoint,
  askFallback,
  askKey,
  askName,
  askNext,
  askNextForFallback,
  askPlainProcesses,
  askPrice,
  askProvider,
  askResume,
  askTimeZone,
  type Next
} from "./wizardQuestions.ts"
import { telegramQuestions } from "./wizardTelegram.ts"

/** The answers that each way on asks for again. */
export const FORGOTTEN: Readonly<Record<Next, ReadonlyArray<keyof Answers>>> = {
  key: ["key_asked"],
  name: ["name", "price", "fallback", "fallback_accepted"],
  endpoint: ["endpoint", "price", "fallback", "fallback_accepted"],
  again: [],
  all: ["provider", "endpoint", "name", "key_asked", "price", "fallback", "fallback_accepted"],
  keep: [],
  offline: ["endpoint", "name", "key_asked", "price", "fallback", "fallback_accepted"]
}

const NO_KEY = { key: undefined, secret: undefined }

/** The key for a server, asked for once. After a change of the address it is asked for again: nobody gave the earlier key to the new server. */
const keyQuestion = Effect.fnUntraced(function* (
  home: string,
  draft: SetupDraft,
  provider: Provider,
  endpoint: string
) {
  const server = originOf(endpoint) ?? endpoint
  const { key_asked, key_secret, key_server } = draft.answers()
  const own = key_server === server ? key_secret : undefined
  const secrets = yield* loadSecrets(home)
  if (key_asked === true && key_server === server) {
    const secret = SecretName.make(own ?? keyName(provider))
    return { key: own === undefined ? undefined : storedValue(secrets, secret), secret }
  }
  const typed = yield* askKey(provider)
  const stored = storedAtPreset(provider, endpoint, secrets)
  const same = typed === undefined || (stored !== undefined && Redacted.value(stored.key) === Redacted.value(typed))
  const found = same ? stored : undefined
  // A key that is typed again for the same server replaces the one that this setup has stored.
  const secret = found?.name ?? (own === undefined ? freeName(keyName(provider), secrets) : SecretName.make(own))
  if (typed !== undefined && found === undefined) yield* setSecret(home, secret, typed)
  const key = found?.key ?? typed
  yield* draft.keep({ key_asked: true, key_server: server, ...(key === undefined ? {} : { key_secret: secret }) })
  if (key === undefined) yield* draft.forget("key_secret")
  return { key, secret }
})

const modelQuestions = Effect.fnUntraced(function* (home: string, draft: SetupDraft, given: Given) {
  const screen = yield* Screen
  for (;;) {
    const provider = yield* answered(draft, "provider", askProvider)
    const preset = known({ provider, endpoint: undefined, name: undefined })
    const typed = yield* answered(
      draft,
      "endpoint",
      preset.endpoint === undefined ? askEndpoint(provider) : Effect.succeed(preset.endpoint)
    )
    const endpoint = apiAddress(typed)
    const name = yield* answered(
      draft,
      "name",
      preset.name === undefined ? askName(provider) : Effect.succeed(preset.name)
    )
    const { key, secret } = takesKey(provider) ? yield* keyQuestion(home, draft, provider, endpoint) : NO_KEY
    if (key !== undefined && isInTheClear(endpoint)) {
      yield* screen.note(
        `The key would be sent unencrypted: enter an https:// address, an address on this host, or no key.`
      )
      yield* draft.forget("endpoint", "key_asked")
      continue
    }
    const api = given.api ?? apiNamedBy(typed) ?? apiAt(provider, endpoint)
    const model = { provider, endpoint, api, name, secret: key === undefined ? undefined : secret, key: undefined }
    // choird serves the offline model itself, and does not run yet.
    if (provider === "offline" || draft.answers().model_accepted === true) return model
    if (key === undefined && needsKey(provider)) {
      yield* screen.note(
        `The model was not tested because its key is missing. Set it later: choirctl secret set ${secret}`
      )
      return { ...model, secret }
    }
    const price = given.price ?? knownPrice(provider, name)
    const tried = yield* Effect.result(
      tryModel({ api, endpoint, model: name, provider, price }, key).pipe(withProgress(`asking ${name}`))
    )
    if (tried._tag === "Success") {
      yield* screen.note(`It works: ${triedWords(name, tried.success)}`)
      yield* draft.keep({ model_accepted: true })
      return model
    }
    yield* screen.note(`${tried.failure.problem}. ${tried.failure.fix}.`)
    const next = yield* askNext(provider, tried.failure)
    yield* draft.forget(...FORGOTTEN[next])
    if (next === "keep") yield* draft.keep({ model_accepted: true })
    if (next === "offline") yield* draft.keep({ provider: "offline" })
  }
})

const priceQuestion = Effect.fnUntraced(function* (draft: SetupDraft, given: Given, provider: Provider, name: string) {
  if (given.price !== undefined) return given.price
  const before = draft.answers().price
  if (before !== undefined) return before ?? undefined
  const published = knownPrice(provider, name)
  const price = provider === "offline" ? published : yield* askPrice(published)
  yield* draft.keep({ price: price ?? null })
  return price
})

/** The provider's name of the model that answers when the first one cannot, tried like the first; the offline model never fails. */
const fallbackQuestion = Effect.fnUntraced(function* (
  home: string,
  draft: SetupDraft,
  given: Given,
  model: Omit<Setup["model"], "price">
) {
  const { api, endpoint, provider, secret } = model
  if (provider === "offline") return given.fallback
  const screen = yield* Screen
  if (given.fallback !== undefined) yield* draft.keep({ fallback: given.fallback })
  for (;;) {
    const name = yield* answered(draft, "fallback", askFallback(provider))
    if (name === "" || name === model.name || draft.answers().fallback_accepted === name) return name || undefined
    const key = secret === undefined ? undefined : yield* secretValue(home, SecretName.make(secret))
    if (key === undefined && needsKey(provider)) return name
    const tried = yield* Effect.result(
      tryModel({ api, endpoint, model: name, provider, price: knownPrice(provider, name) }, key).pipe(
        withProgress(`asking ${name}`)
      )
    )
    if (tried._tag === "Success") {
      yield* screen.note(`It works: ${triedWords(name, tried.success)}`)
      yield* draft.keep({ fallback_accepted: name })
      return name
    }
    yield* screen.note(`${tried.failure.problem}. ${tried.failure.fix}.`)
    const next = yield* askNextForFallback(tried.failure)
    if (next === "name") yield* draft.forget("fallback")
    if (next === "without") yield* draft.keep({ fallback: "" })
    if (next === "keep") yield* draft.keep({ fallback_accepted: name })
  }
})

/** The zone of a machine whose clock nobody has set, as that of most servers. */
const UNSET_ZONE = "UTC"

/** The time zone of the person, who reads times on a phone: asked where this machine does not know it. */
const zoneQuestion = Effect.fnUntraced(function* (draft: SetupDraft, given: Given) {
  if (given.timezone !== undefined) return given.timezone
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  if (timeZone !== UNSET_ZONE) return undefined
  return (yield* answered(draft, "timezone", askTimeZone(timeZone))) || undefined
})

const AUTO = Schema.decodeSync(RuntimeConfig)({})

/** A runtime that works here. One without isolation is chosen only by a person. */
const runtimeQuestion = Effect.fnUntraced(function* (draft: SetupDraft, given: Given, endpoint: string) {
  if (given.runtime !== undefined) return given.runtime
  const before = draft.answers().runtime
  if (before !== undefined) return before
  const screen = yield* Screen
  const sandbox = yield* trySandbox
  if (sandbox === undefined) return isLoopback(endpoint) ? "sandbox" : "auto"
  const docker = whyNoDocker(yield* askEngine(undefined), { ...AUTO, allow_unmapped_root: given.allow_unmapped_root })
  if (docker === undefined && !isLoopback(endpoint)) return "auto"
  yield* screen.note(`Agents cannot be isolated on this machine: ${sandbox}. Fix: ${sandboxFix(sandbox)}`)
  if (!(yield* askPlainProcesses)) {
    // No agent could start here, so nothing is set up that would only fail later.
    yield* screen.note("Nothing was set up, and your answers are kept. Install what is missing, then run this again.")
    return yield* new Unsuccessful({ exit_code: EXIT.interrupted })
  }
  yield* draft.keep({ runtime: "process" })
  return "process" as const
})

const KEPT: ReadonlyArray<readonly [keyof Answers, string]> = [
  ["provider", "model provider"],
  ["endpoint", "address of the API"],
  ["name", "model name"],
  ["fallback", "model to use when it fails"],
  ["telegram_user_id", "Telegram user id"],
  ["timezone", "time zone"],
  ["runtime", "runtime"]
]

/** The answers of an unfinished setup, for a person who decides whether to continue it. */
const keptLines = (answers: Answers): ReadonlyArray<string> => [
  "An earlier setup was not finished. Its answers:",
  ...KEPT.flatMap(([key, what]) => {
    const answer = answers[key]
    return typeof answer === "string" && answer !== "" ? [safeLine(`  ${what}: ${answer}`)] : []
  })
]

const resume = Effect.fnUntraced(function* (draft: SetupDraft) {
  if (Object.keys(draft.answers()).length === 0) return
  const screen = yield* Screen
  for (const line of keptLines(draft.answers())) yield* screen.note(line)
  if (!(yield* askResume)) yield* draft.forget(...(Object.keys(draft.answers()) as Array<keyof Answers>))
})

/** Takes the flags as answers, once. If they name another model than the draft, the draft's answers about its model are dropped. */
export const takeFlags = Effect.fnUntraced(function* (draft: SetupDraft, given: Given) {
  const { endpoint, name, provider, telegram_user_id } = given
  const before = draft.answers()
  const model = {
    ...(provider === undefined ? {} : { provider }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(name === undefined ? {} : { name })
  }
  const differs = (Object.keys(model) as Array<keyof typeof model>).some((key) => model[key] !== before[key])
  if (differs)
    yield* draft.forget("endpoint", "name", "key_asked", "model_accepted", "price", "fallback", "fallback_accepted")
  if (telegram_user_id !== undefined) yield* draft.forget("telegram_first_name")
  yield* draft.keep({ ...model, ...(telegram_user_id === undefined ? {} : { telegram_user_id }) })
})

/** Asks what no flag answers. The home already has its secrets.json. */
export const askSetup = Effect.fn("wizard.ask")(
  function* (home: string, given: Given) {
    const draft = yield* openDraft(home)
    yield* resume(draft)
    yield* takeFlags(draft, given)
    const model = yield* modelQuestions(home, draft, given)
    const price = yield* priceQuestion(draft, given, model.provider, model.name)
    const fallback = yield* fallbackQuestion(home, draft, given, model)
    const telegram = yield* telegramQuestions(home, draft, given)
    const timezone = telegram === undefined ? given.timezone : yield* zoneQuestion(draft, given)
    const runtime = yield* runtimeQuestion(draft, given, model.endpoint)
    const { allow_unmapped_root } = given
    return { model: { ...model, price, fallback }, telegram, timezone, runtime, allow_unmapped_root } satisfies Setup
  },
  Effect.catchTag(
    "QuitError",
    Effect.fnUntraced(function* () {
      const screen = yield* Screen
      yield* screen.note("Setup is not finished; the answers so far are kept for the next run.")
      return yield* new Unsuccessful({ exit_code: EXIT.interrupted })
    })
  )
)
