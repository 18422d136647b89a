/** The questions of the setup wizard, one by one: their words, and which answers they take. */
import { Effect, Redacted } from "effect"
import { Prompt } from "effect/cli"
import { isTimeZone } from "#schema/TimeZone.ts"
import { looksLikeKey } from "#src/choirctl/doctor/modelCheck.ts"
import { looksLikeToken } from "#src/choirctl/doctor/serviceChecks.ts"
import type { Obstacle, CheckFailed } from "#src/choirctl/doctor/checkHttp.ts"
import { parsePrice, type Price, PRICES_AS_OF } from "#src/choirctl/home/knownModels.ts"
import { hasOwnAddress, LOCAL_ENDPOINT, presetOf, type Provider, PROVIDERS } from "#src/choirctl/home/providers.ts"
import { addressProblem, isTelegramId, nameProblem, needsKey } from "#src/choirctl/home/setupAnswers.ts"
import { askHidden, askPerson } from "#src/choirctl/terminal/questions.ts"

const checked = (fits: (text: string) => boolean, problem: string) => (text: string) =>
  fits(text.trim()) ? Effect.succeed(text.trim()) : Effect.fail(problem)

/** An answer that `problem` finds nothing wrong with. */
const without = (problem: (text: string) => string | undefined) => (text: string) => {
  const found = problem(text.trim())
  return found === undefined ? Effect.succeed(text.trim()) : Effect.fail(found)
}

export const askResume = askPerson(
  Prompt.Confirm({ message: "Continue with the answers of the unfinished setup?", initial: true })
)

export const askProvider = askPerson(
  Prompt.Select({
    message: "Which model do you want to use?",
    choices: PROVIDERS.map((value) => ({ title: presetOf(value).title, value }))
  })
)

/** The address as it was typed: its path may name the API. */
export const askEndpoint = (provider: Provider) => {
  const usual = provider === "local" ? LOCAL_ENDPOINT : undefined
  return askPerson(
    Prompt.String({
      message: `Address of the API, usually ending in /v1${usual === undefined ? "" : ` (Enter: ${usual})`}`,
      validate: without((text) => (text === "" && usual !== undefined ? undefined : addressProblem(text)))
    })
  ).pipe(Effect.map((text) => (text === "" ? (usual ?? text) : text)))
}

/** Only at a provider that is known may the name be left to Choir. */
export const askName = (provider: Provider) => {
  const { model } = presetOf(provider)
  const usual = hasOwnAddress(provider) ? undefined : model
  return askPerson(
    Prompt.String({
      message: usual === undefined ? `Model name, such as ${model}` : `Model name (Enter: ${usual})`,
      validate: without((text) => (text === "" && usual !== undefined ? undefined : nameProblem(provider, text)))
    })
  ).pipe(Effect.map((text) => (text === "" ? (usual ?? text) : text)))
}

export const askPrice = (price: Price | undefined) => {
  const fallback = price === undefined ? "unknown" : `${price.input}/${price.output}, published in ${PRICES_AS_OF}`
  return askPerson(
    Prompt.String({
      message: `Price in USD per million tokens, input/output, such as 3/15 (Enter: ${fallback})`,
      validate: checked(
        (text) => text === "" || parsePrice(text) !== undefined,
        "Enter two numbers, such as 3/15, or erase the line (Ctrl-U)"
      )
    })
  ).pipe(Effect.map((text) => (text === "" ? price : parsePrice(text))))
}

/** Empty for none. The same model once more is a second try. */
export const askFallback = (provider: Provider) =>
  askPerson(
    Prompt.String({
      message: "Model to use when this one fails; the same name again is a second try (Enter: none)",
      validate: without((text) => (text === "" ? undefined : nameProblem(provider, text)))
    })
  )

/** @param host the zone of this machine. */
export const askTimeZone = (host: string) =>
  askPerson(
    Prompt.String({
      message: `Your time zone, such as Europe/Berlin (Enter: ${host}, as on this machine)`,
      validate: checked((text) => text === "" || isTimeZone(text), "Enter a region and a city, such as Europe/Berlin")
    })
  )

/** @param waits whether a code is waited for beside the question. */
export const askUserId = (waits: boolean) =>
  askPerson(
    Prompt.String({
      message: waits
        ? "Waiting for the code. Or type your Telegram user id (Enter: pair later)"
        : "Your Telegram user id, if you know it (Enter: pair with a code later)",
      validate: checked(
        (text) => text === "" || isTelegramId(text),
        waits
          ? "A user id is a number, such as 123456789. Erase the line (Ctrl-U) to pair later"
          : "A user id is a number, such as 123456789. Erase the line (Ctrl-U) to pair with a code later"
      )
    })
  )

/** A secret, or nothing when it is to follow later. */
const askSecret = (message: string, problem: (text: string) => string | undefined) =>
  Effect.map(
    askHidden(message, (typed) => (typed.trim() === "" ? undefined : problem(typed.trim()))),
    (typed) => (Redacted.value(typed).trim() === "" ? undefined : Redacted.make(Redacted.value(typed).trim()))
  )

const keyProblem = (text: string) =>
  looksLikeKey(text)
    ? undefined
    : "A key has no spaces and no special characters. Copy it again from your account at the provider, as one line"

export const askKey = (provider: Provider) =>
  askSecret(
    needsKey(provider)
      ? `API key from ${presetOf(provider).title.replace(/:.*$/u, "")} (Enter: set it later)`
      : "API key, if the API needs one (Enter: no key)",
    keyProblem
  )

export const askToken = askSecret("Bot token from @BotFather (Enter: no Telegram)", (text) =>
  looksLikeToken(text) ? undefined : "A bot token looks like 123456789:AAE... Paste it again, or press Enter to skip"
)

export type Next = "key" | "name" | "endpoint" | "again" | "all" | "keep" | "offline"

const NEXT_TITLES: Readonly<Record<Next, string>> = {
  key: "Enter the key again",
  name: "Enter another model name",
  endpoint: "Enter another address",
  again: "Try again with the same answers",
  all: "Choose another provider",
  keep: "Keep it; choirctl model test main tests it again",
  offline: "Use the offline model for now"
}

/** The next step that most likely helps. */
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

/**
 * The ways on from a failed check, always in the same order, so that a person who fails twice finds each where it was. The cursor starts at
 * the one that most likely helps. Only the address of another API is a person's to choose.
 */
export const waysOn = (provider: Provider, obstacle: Obstacle) => {
  const ways = (Object.keys(NEXT_TITLES) as Array<Next>).filter(
    (next) => next !== "endpoint" || hasOwnAddress(provider)
  )
  return { ways, best: ways.includes(BEST[obstacle]) ? BEST[obstacle] : "again" }
}

export const askNext = (provider: Provider, { obstacle }: CheckFailed) => {
  const { best, ways } = waysOn(provider, obstacle)
  return askPerson(
    Prompt.Select({
      message: "What now?",
      choices: ways.map((value) => ({ title: NEXT_TITLES[value], value, selected: value === best }))
    })
  )
}

export const askNextForFallback = ({ obstacle }: CheckFailed) =>
  askPerson(
    Prompt.Select({
      message: "What now?",
      choices: (
        [
          { title: "Enter another model name", value: "name" },
          { title: "Try again", value: "again" },
          { title: "Continue without a fallback model", value: "without" },
          { title: "Keep it; choirctl model test fallback tests it again", value: "keep" }
        ] as const
      ).map((choice) => ({ ...choice, selected: choice.value === (BEST[obstacle] === "again" ? "again" : "name") }))
    })
  )

export const askNextForBot = askPerson(
  Prompt.Select({
    message: "What now?",
    choices: [
      { title: "Enter the token again", value: "again" },
      { title: "Keep it; choirctl doctor tests it again", value: "keep" },
      { title: "Continue without Telegram", value: "without" }
    ] as const
  })
)

export const askPlainProcesses = askPerson(
  Prompt.Confirm({ message: "Run agents without isolation, as processes with your rights?", initial: false })
)
