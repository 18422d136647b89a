/** The questions of `choirctl init` to a person at a terminal. Each answer is checked and kept before the next question. */
import { Effect, Redacted, Schema } from "effect"
import { Prompt } from "effect/cli"
import { RuntimeConfig } from "#schema/Config.ts"
import { SecretName } from "#schema/Ids.ts"
import { isLoopback } from "#src/shared/offlineEndpoint.ts"
import { looksLikeToken, TELEGRAM_API_ROOT, tryBot } from "./botTrial.ts"
import { askEngine, whyNoDocker } from "./dockerTrials.ts"
import { sandboxFix, trySandbox } from "./doctorTrials.ts"
import { CommandFailed, EXIT } from "./failure.ts"
import { type Setup, TELEGRAM_SECRET } from "./initHome.ts"
import { knownPrice, parsePrice, type Price, PRICES_AS_OF } from "./knownPrices.ts"
import { type Given, isTelegramId } from "./setupGiven.ts"
import { keyName, known, MODEL_EXAMPLES, PROVIDER_TITLES, PROVIDERS, type Provider, takesKey } from "./modelChoices.ts"
import { isInTheClear } from "#src/shared/clearText.ts"
import { tryModel } from "./modelTrial.ts"
import { withProgress } from "./progress.ts"
import { safeLine } from "./render/safeText.ts"
import { Screen } from "./Screen.ts"
import { secretValue, setSecret } from "./secretsFile.ts"
import { openDraft, type Answers, type SetupDraft } from "./setupDraft.ts"
import type { Obstacle, TrialFailed } from "./trialHttp.ts"

const URL_WORDS = "an address such as http://127.0.0.1:11434/v1 or https://llm.example.org/v1"

const checked = (fits: (text: string) => boolean, problem: string) => (text: string) =>
  fits(text.trim()) ? Effect.succeed(text.trim()) : Effect.fail(problem)

const isAddress = (text: string) => /^https?:\/\/[^\s/?#@]+([/?#]|$)/u.test(text) && URL.canParse(text)

const askProvider = Prompt.run(
  Prompt.Select({
    message: "Which model do you want to use?",
    choices: PROVIDERS.map((value) => ({ title: PROVIDER_TITLES[value], value }))
  })
)

const askEndpoint = Prompt.run(
  Prompt.String({
    message: "Address of the API, usually ending in /v1",
    validate: checked(isAddress, `Enter ${URL_WORDS}`)
  })
)

const askName = (provider: Provider) =>
  Prompt.run(
    Prompt.String({
      message: `Model name, such as ${MODEL_EXAMPLES[provider]}`,
      validate: checked(
        (text) => text !== "",
        `Enter the provider's name of the model, such as ${MODEL_EXAMPLES[provider]}`
      )
    })
  )

const askPrice = (price: Price | undefined) => {
  const fallback = price === undefined ? "unknown" : `${price.input}/${price.output}, published in ${PRICES_AS_OF}`
  return Prompt.run(
    Prompt.String({
      message: `Price in USD per million tokens, input/output, such as 3/15 (Enter: ${fallback})`,
      validate: checked(
        (text) => text === "" || parsePrice(text) !== undefined,
        "Enter two numbers, such as 3/15, or press Enter"
      )
    })
  ).pipe(Effect.map((text) => (text === "" ? price : parsePrice(text))))
}

const askUserId = Prompt.run(
  Prompt.String({
    message: "Your Telegram user id; @userinfobot tells you (Enter: no Telegram)",
    validate: checked(
      (text) => text === "" || isTelegramId(text),
      "A user id is a number, such as 123456789. Send @userinfobot a message to learn yours, or press Enter to skip"
    )
  })
)

/** A secret, or nothing when it is to follow later. */
const askSecret = (message: string, validate: (value: string) => Effect.Effect<string, string> = Effect.succeed) =>
  Effect.map(Prompt.run(Prompt.Password({ message: `${message} (Enter: later)`, validate })), (typed) =>
    Redacted.value(typed).trim() === "" ? undefined : Redacted.make(Redacted.value(typed).trim())
  )

const askToken = askSecret(
  "Bot token from @BotFather",
  checked((text) => text === "" || looksLikeToken(text), "A bot token looks like 123456789:AAE...; press Enter to skip")
)

type Next = "key" | "name" | "endpoint" | "again" | "all" | "keep" | "offline"

const NEXT_TITLES: Readonly<Record<Next, string>> = {
  key: "Enter the key again",
  name: "Enter another model name",
  endpoint: "Enter another address",
  again: "Try again with the same answers",
  all: "Choose another provider",
  keep: "Keep it as it is; choirctl model test main tries it again later",
  offline: "Use the offline model for now"
}

/** What most likely helps comes first. */
const BEST: Readonly<Record<Obstacle, Next>> = {
  key: "key",
  credit: "again",
  name: "name",
  address: "endpoint",
  busy: "again",
  broken: "again",
  unreachable: "endpoint",
  answer: "name",
  tools: "name"
}

/** The ways on from a failed trial. Only the address of another API is a person's to choose. */
export const waysOn = (provider: Provider, obstacle: Obstacle): ReadonlyArray<Next> => {
  const possible = (Object.keys(NEXT_TITLES) as Array<Next>).filter(
    (next) => next !== "endpoint" || provider === "other"
  )
  const best = possible.includes(BEST[obstacle]) ? BEST[obstacle] : "again"
  return [best, ...possible.filter((next) => next !== best)]
}

const askNext = (provider: Provider, { obstacle }: TrialFailed) => {
  return Prompt.run(
    Prompt.Select({
      message: "What now?",
      choices: waysOn(provider, obstacle).map((value) => ({ title: NEXT_TITLES[value], value }))
    })
  )
}

/** The answers that each way on asks for again. */
const FORGOTTEN: Readonly<Record<Next, ReadonlyArray<keyof Answers>>> = {
  key: ["key_asked"],
  name: ["name"],
  endpoint: ["endpoint"],
  again: [],
  all: ["provider", "endpoint", "name", "key_asked"],
  keep: [],
  offline: ["endpoint", "name", "key_asked"]
}

/** The answer that is there, or that of the question, kept. */
const answered = Effect.fnUntraced(function* <K extends keyof Answers, E, R>(
  draft: SetupDraft,
  name: K,
  question: Effect.Effect<NonNullable<Answers[K]>, E, R>
) {
  const before = draft.answers()[name]
  if (before !== undefined && before !== null) return before
  const answer = yield* question
  yield* draft.keep({ [name]: answer })
  return answer
})

const modelQuestions = Effect.fnUntraced(function* (home: string, draft: SetupDraft) {
  const screen = yield* Screen
  for (;;) {
    const provider = yield* answered(draft, "provider", askProvider)
    const preset = known({ provider, endpoint: undefined, name: undefined })
    const endpoint = yield* answered(
      draft,
      "endpoint",
      preset.endpoint === undefined ? askEndpoint : Effect.succeed(preset.endpoint)
    )
    const name = yield* answered(
      draft,
      "name",
      preset.name === undefined ? askName(provider) : Effect.succeed(preset.name)
    )
    const secret = SecretName.make(keyName(provider))
    if (takesKey(provider) && draft.answers().key_asked !== true) {
      const typed = yield* askSecret(`Key of ${PROVIDER_TITLES[provider]}`)
      if (typed !== undefined) yield* setSecret(home, secret, typed)
      yield* draft.keep({ key_asked: true })
    }
    const key = takesKey(provider) ? yield* secretValue(home, secret) : undefined
    if (key !== undefined && isInTheClear(endpoint)) {
      yield* screen.note(
        `The key would cross the network in the clear: enter an https:// address, or one of this host, or no key.`
      )
      yield* draft.forget("endpoint", "key_asked")
      continue
    }
    const model = { provider, endpoint, name, secret: key === undefined ? undefined : secret, key: undefined }
    // choird serves the offline model itself, and does not run yet.
    if (provider === "offline" || draft.answers().model_accepted === true) return model
    if (key === undefined && provider !== "other") {
      yield* screen.note(`The model is not tried, since its key is missing: choirctl secret set ${secret}`)
      return { ...model, secret }
    }
    const tried = yield* Effect.result(tryModel({ endpoint, model: name }, key).pipe(withProgress(`asking ${name}`)))
    if (tried._tag === "Success") {
      yield* screen.note(`${name} works: it called a tool after ${(tried.success / 1000).toFixed(1)} s`)
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

const telegramQuestions = Effect.fnUntraced(function* (home: string, draft: SetupDraft, given: Given) {
  const screen = yield* Screen
  const user_id = yield* answered(draft, "telegram_user_id", askUserId)
  if (user_id === "") return undefined
  const api_root = given.telegram_api_root
  const telegram = { user_id, token: undefined, api_root }
  const secret = SecretName.make(TELEGRAM_SECRET)
  while (draft.answers().bot_accepted !== true) {
    const typed = yield* askToken
    if (typed === undefined) {
      yield* screen.note(`Set it later: choirctl secret set ${secret}`)
      yield* draft.keep({ bot_accepted: true })
      break
    }
    yield* setSecret(home, secret, typed)
    const tried = yield* Effect.result(
      tryBot(api_root ?? TELEGRAM_API_ROOT, typed).pipe(withProgress("asking Telegram"))
    )
    if (tried._tag === "Success") {
      yield* screen.note(`The bot is @${safeLine(tried.success)}`)
      yield* draft.keep({ bot_accepted: true })
      break
    }
    yield* screen.note(`${tried.failure.problem}. ${tried.failure.fix}.`)
    const next = yield* Prompt.run(
      Prompt.Select({
        message: "What now?",
        choices: [
          { title: "Enter the token again", value: "again" },
          { title: "Keep it as it is; choirctl doctor tries it again later", value: "keep" },
          { title: "Go on without Telegram", value: "without" }
        ] as const
      })
    )
    if (next === "keep") yield* draft.keep({ bot_accepted: true })
    if (next === "without") {
      yield* draft.keep({ telegram_user_id: "", bot_accepted: true })
      return undefined
    }
  }
  return telegram
})

const AUTO = Schema.decodeSync(RuntimeConfig)({})

/** A runtime that works here. What isolates nothing is taken only when a person says so. */
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
  const plain = yield* Prompt.run(
    Prompt.Confirm({ message: "Run agents without isolation, as processes with your rights?", initial: false })
  )
  const runtime = plain ? "process" : "auto"
  yield* draft.keep({ runtime })
  return runtime
})

const goOn = Effect.fnUntraced(function* (draft: SetupDraft) {
  if (Object.keys(draft.answers()).length === 0) return
  const same = yield* Prompt.run(
    Prompt.Confirm({ message: "Go on with the answers of the unfinished setup?", initial: true })
  )
  if (!same) yield* draft.forget(...(Object.keys(draft.answers()) as Array<keyof Answers>))
})

/** Takes the flags as answers, once. Another model than the draft's leaves none of the answers about that one. */
export const takeFlags = Effect.fnUntraced(function* (draft: SetupDraft, given: Given) {
  const { endpoint, name, provider, telegram_user_id } = given
  const before = draft.answers()
  const model = {
    ...(provider === undefined ? {} : { provider }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(name === undefined ? {} : { name })
  }
  const differs = (Object.keys(model) as Array<keyof typeof model>).some((key) => model[key] !== before[key])
  if (differs) yield* draft.forget("endpoint", "name", "key_asked", "model_accepted", "price")
  yield* draft.keep({ ...model, ...(telegram_user_id === undefined ? {} : { telegram_user_id }) })
})

/** Asks what no flag answers. The home has its secrets.json already. */
export const askSetup = Effect.fn("wizard.ask")(
  function* (home: string, given: Given) {
    const draft = yield* openDraft(home)
    yield* goOn(draft)
    yield* takeFlags(draft, given)
    const model = yield* modelQuestions(home, draft)
    const price = yield* priceQuestion(draft, given, model.provider, model.name)
    const telegram = yield* telegramQuestions(home, draft, given)
    const runtime = yield* runtimeQuestion(draft, given, model.endpoint)
    const { allow_unmapped_root } = given
    return { model: { ...model, price }, telegram, runtime, allow_unmapped_root } satisfies Setup
  },
  Effect.catchTag("QuitError", () =>
    Effect.fail(
      new CommandFailed({
        type: "INTERRUPTED",
        problem: "setup was left before its end; the answers so far are kept for the next run",
        exit_code: EXIT.interrupted
      })
    )
  )
)
