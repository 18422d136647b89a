/** A person who is new to Choir: an empty HOME, a terminal in the checkout, README on paper, and the two services of the outside. */
import { spawnSync } from "node:child_process"
import { chmodSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { PROVIDERS } from "#src/choirctl/home/providers.ts"
import { ROOT } from "./installation.ts"
import type { Block } from "./readme.ts"
import { emptyHome, KEYS, LATER, NotSeen, openTerminal, programsWithout, type Terminal } from "./terminal.ts"
import { failing, makeProviderOf, offlineModel } from "./testing/Provider.ts"
import { makeTelegram } from "./testing/Telegram.ts"

const TOKEN = "1000:secret"
const KEY = "sk-first-hour"
/** The user id of README. */
export const PHONE_USER = 123_456_789
/** The prompt of the chat, where typing begins to count. */
export const CHAT_PROMPT = /choir(?: \([^)]*\))?> /u
/** A user that nothing on this machine belongs to. */
const ORDINARY_UID = 47_110
const STOP_MS_MAX = 30_000

export interface Variant {
  readonly who: "root" | "an ordinary user"
  readonly bubblewrap: boolean
  /** Whether the wizard is told of a bot. */
  readonly telegram: boolean
  /** Whether the wizard is told of a provider; the model is offline otherwise. */
  readonly provider: boolean
}

type Merged = Record<string, unknown>
const isTable = (value: unknown): value is Merged =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** What a person makes of two objects when one is to be added to the other. */
const merged = (old: Merged, more: Merged): Merged => {
  const all = { ...old }
  for (const [key, value] of Object.entries(more)) {
    const before = all[key]
    all[key] = isTable(before) && isTable(value) ? merged(before, value) : value
  }
  return all
}

/** Sits down at a terminal, until the scope closes. What still runs then is stopped. */
export const sitDown = Effect.fnUntraced(function* ({ bubblewrap, who }: Pick<Variant, "bubblewrap" | "who">) {
  const uid = who === "an ordinary user" && process.getuid?.() === 0 ? ORDINARY_UID : undefined
  const home = yield* emptyHome(uid)
  const provider = yield* makeProviderOf({ dialect: "openrouter" })
  yield* provider.otherwise((request) =>
    request.headers["authorization"] === `Bearer ${KEY}`
      ? offlineModel(request, 0)
      : failing(401, "Incorrect API key provided")
  )
  const telegram = yield* makeTelegram
  const bot = telegram.bot(TOKEN)
  const programs = yield* programsWithout(...(bubblewrap ? [] : ["bwrap"]), "choirctl", "choird")
  chmodSync(dirname(programs), 0o755)
  // A variant that fails leaves its choird running, which outlives the terminal.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      const user = uid === undefined ? {} : { uid, gid: uid }
      const env = { HOME: home, PATH: programs }
      spawnSync(join(ROOT, "bin/choirctl"), ["daemon", "stop"], { env, timeout: STOP_MS_MAX, ...user })
    })
  )
  const env = { CHOIR_TELEGRAM_API_ROOT: telegram.url, npm_config_update_notifier: "false" }
  const terminal = yield* openTerminal({
    home,
    path: programs,
    cwd: ROOT,
    env,
    ...(uid === undefined ? {} : { uid })
  })
  const file = join(home, ".choir.d/config.json")
  const config = () => JSON.parse(readFileSync(file, "utf8"))

  /** Edits config.json by hand; the addresses are those of the doubles. */
  const edit = (keys: Readonly<Record<string, unknown>>) => {
    const all = merged(config(), keys)
    for (const [name, model] of Object.entries(isTable(keys["models"]) ? keys["models"] : {}))
      merge(all, { models: { [name]: { ...(isTable(model) ? model : {}), endpoint: provider.endpoint } } })
    for (const name of Object.keys(isTable(keys["gateways"]) ? keys["gateways"] : {}))
      merge(all, { gateways: { [name]: { api_root: telegram.url } } })
    writeFileSync(file, JSON.stringify(all, undefined, 2))
  }
  const merge = (all: Merged, more: Merged) => Object.assign(all, merged(all, more))
  return { bot, config, edit, home, provider, terminal, draft: join(home, ".choir.d/init-draft.json") }
})

export type Newcomer = Effect.Success<ReturnType<typeof sitDown>>

/** Chooses the n-th line of a list, from 0. */
export const choose = (terminal: Terminal, index: number) => terminal.type(KEYS.down.repeat(index) + KEYS.enter)

/** The provider's questions, with a mistake in each. */
const answerProvider = Effect.fnUntraced(function* (terminal: Terminal, endpoint: string) {
  yield* choose(terminal, PROVIDERS.indexOf("other"))
  yield* terminal.see("Address of the API")
  yield* terminal.line("127.0.0.1")
  yield* terminal.see("Enter an address such as")
  yield* terminal.type(KEYS.eraseLine)
  yield* terminal.line(endpoint)
  yield* terminal.see("Model name, such as")
  yield* terminal.line("")
  yield* terminal.see("Enter the provider's name")
  yield* terminal.line("offline-model")
  yield* terminal.see("API key, if the API needs one")
  yield* terminal.line("sk-wrong")
  yield* terminal.see("refuses the key (401)")
  yield* terminal.see("Enter the key again")
  yield* choose(terminal, 0)
  yield* terminal.see("API key, if the API needs one")
  yield* terminal.line(KEY)
  yield* terminal.see("It works: offline-model called a tool")
  yield* terminal.see("Price in USD")
  yield* terminal.line("cheap")
  yield* terminal.see("Enter two numbers")
  yield* terminal.type(KEYS.eraseLine)
  yield* terminal.line("3/15")
  yield* terminal.see("Model to use when this one fails")
  yield* terminal.line("offline model")
  yield* terminal.see("A model name has no spaces")
  yield* terminal.type(KEYS.eraseLine)
  yield* terminal.line("offline-model")
})

/** Telegram's questions, with a mistake in each. */
const answerTelegram = Effect.fnUntraced(function* (terminal: Terminal) {
  yield* terminal.line("1000:wrong")
  yield* terminal.see("Telegram refuses the bot's token (401)")
  yield* terminal.see("Enter the token again")
  yield* choose(terminal, 0)
  yield* terminal.see("Bot token")
  yield* terminal.line(TOKEN)
  yield* terminal.see(/The bot is @\w+/u)
  yield* terminal.see("Waiting for the code. Or type your Telegram user id")
  yield* terminal.line("@ada")
  yield* terminal.see("A user id is a number")
  yield* terminal.type(KEYS.eraseLine)
  yield* terminal.line(String(PHONE_USER))
  yield* terminal.see("Your time zone")
  yield* terminal.line("Berlin")
  yield* terminal.see("Enter a region and a city")
  yield* terminal.type(KEYS.eraseLine)
  yield* terminal.line("Europe/Berlin")
})

/** Everything that a first `npm start` or `choirctl init` asks. */
export const answerWizard = Effect.fnUntraced(function* ({ provider, terminal }: Newcomer, variant: Variant) {
  yield* terminal.see("Which model do you want to use?", LATER)
  if (variant.provider) yield* answerProvider(terminal, provider.endpoint)
  else yield* choose(terminal, 0)
  yield* terminal.see("Bot token")
  if (variant.telegram) yield* answerTelegram(terminal)
  else yield* terminal.line("")
  if (variant.bubblewrap) return
  yield* terminal.see("bubblewrap is not installed")
  yield* terminal.see("Run agents without isolation")
  yield* terminal.type("y")
})

/** Says something in the chat of the terminal and waits for the answer. */
export const sayInChat = Effect.fnUntraced(function* (terminal: Terminal, text: string, answer: string) {
  yield* terminal.see(CHAT_PROMPT, LATER)
  yield* terminal.line(text)
  yield* terminal.see(answer, LATER)
})

/** Waits until the phone shows a message. */
export const seeOnPhone = ({ bot, terminal }: Newcomer, wanted: string) =>
  bot.sent
    .first(({ text }) => text === wanted)
    .pipe(
      Effect.timeoutOrElse({
        duration: LATER,
        orElse: () =>
          Effect.flatMap(terminal.screen, (screen) => new NotSeen({ wanted: `${wanted} on the phone`, screen }))
      })
    )

const VALUES: Readonly<Record<string, string>> = { "openrouter-key": KEY, "telegram-token": TOKEN }
const PAIRING_CODE = /within ten minutes: (\S{4}-\S{4})/u

/** What a person does while a command of README runs; most ask nothing. */
const dialogue = Effect.fnUntraced(function* (newcomer: Newcomer, variant: Variant, command: string) {
  const { terminal } = newcomer
  const [, secret] = /^choirctl secret set (\S+)$/u.exec(command) ?? []
  if (secret !== undefined) {
    yield* terminal.see(`Value of ${secret}`)
    yield* terminal.line(VALUES[secret] ?? "")
  } else if (command === "choirctl init") yield* answerWizard(newcomer, variant)
  else if (command.startsWith("choirctl model add")) {
    // The double stands for both providers, so the wizard's key is one of the same server.
    yield* terminal.see(variant.provider ? "which goes to" : "API key from OpenRouter")
    if (!variant.provider) yield* terminal.line(KEY)
  } else if (command.startsWith("choirctl gateway add")) {
    yield* terminal.see("Token from @BotFather")
    yield* terminal.line(TOKEN)
  } else if (command === "choirctl chat choir") {
    yield* sayInChat(terminal, "run echo $((40 + 2)) from the terminal", "42 from the terminal")
    yield* terminal.line("/stop")
    yield* terminal.see("Nothing is running.")
    yield* terminal.type(KEYS.endOfInput)
  }
})

/** Types one command of README and answers what it asks; it has to succeed. Only the provider's address is that of the double. */
export const typeCommand = Effect.fnUntraced(function* (newcomer: Newcomer, variant: Variant, command: string) {
  const { bot, provider, terminal } = newcomer
  const typed = command.startsWith("choirctl model add") ? `${command} --endpoint ${provider.endpoint}` : command
  const shown = yield* terminal.run(typed, { meanwhile: dialogue(newcomer, variant, command) })
  const [, code] = PAIRING_CODE.exec(shown) ?? []
  if (code === undefined) return
  yield* bot.text(PHONE_USER, code)
  yield* bot.sent.first(({ text }) => text?.startsWith("◆ You are in, as phone.") === true)
})

/** Does what some of README's blocks say, in order. */
export const follow = Effect.fnUntraced(function* (newcomer: Newcomer, variant: Variant, blocks: ReadonlyArray<Block>) {
  for (const command of blocks.flat()) yield* typeCommand(newcomer, variant, command)
})
