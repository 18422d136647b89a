/** The first hour of a person: what README says, typed into a real terminal, from an empty HOME. */
import { spawnSync } from "node:child_process"
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ROOT } from "../support/installation.ts"
import { ensureDebianPackages, leaveOut } from "../support/packages.ts"
import { emptyHome, KEYS, LATER, openTerminal, programsWithout, type Terminal } from "../support/terminal.ts"
import { failing, makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { makeTelegram } from "../support/testing/Telegram.ts"

const isRoot = process.getuid?.() === 0
/** A user that nothing on this machine belongs to. */
const ORDINARY_UID = 47_110
const PHONE_USER = 4711
const TOKEN = "1000:secret"
const KEY = "sk-first-hour"
const STOP_MS_MAX = 30_000

/** The commands of a section of README, comments left out. */
const commandsOf = (section: string): ReadonlyArray<string> => {
  const [, text = ""] = readFileSync(join(ROOT, "README.md"), "utf8").split(`\n## ${section}\n`)
  const blocks = text.split(/\n## /u)[0]?.matchAll(/```sh\n([\s\S]*?)```/gu) ?? []
  return [...blocks]
    .flatMap(([, block = ""]) => block.split("\n"))
    .flatMap((line) => {
      const command = line.replace(/\s+#.*$/u, "").trim()
      return command === "" ? [] : [command]
    })
}

const reachableByAll = (path: string): boolean =>
  (statSync(path).mode & 0o005) === 0o005 && (dirname(path) === path || reachableByAll(dirname(path)))

const whyNoOtherUser =
  isRoot && !reachableByAll(ROOT)
    ? leaveOut("the first hour of an ordinary user", `others may not read ${ROOT}`)
    : undefined
const whyNoRoot = isRoot ? undefined : leaveOut("the first hour of root", "this is not root")
const whyNoSandbox = ensureDebianPackages(["bubblewrap"], "the first hour with bubblewrap")

interface Variant {
  readonly who: "root" | "an ordinary user"
  readonly bubblewrap: boolean
  readonly telegram: boolean
  readonly provider: boolean
}

const nameOf = ({ bubblewrap, provider, telegram, who }: Variant) =>
  [
    `as ${who}`,
    bubblewrap ? "with bubblewrap" : "without bubblewrap",
    telegram ? "with Telegram" : "without Telegram",
    provider ? "with a provider" : "offline"
  ].join(", ")

/** A person with an empty HOME at a terminal in the repository, and the two services of the outside. */
const sitDown = Effect.fnUntraced(function* ({ bubblewrap, who }: Pick<Variant, "bubblewrap" | "who">) {
  const uid = who === "an ordinary user" && isRoot ? ORDINARY_UID : undefined
  const home = yield* emptyHome(uid)
  const provider = yield* makeProvider
  yield* provider.otherwise((request) =>
    request.headers["authorization"] === `Bearer ${KEY}`
      ? offlineModel(request, 0)
      : failing(401, "Incorrect API key provided")
  )
  const telegram = yield* makeTelegram
  const bot = telegram.bot(TOKEN)
  const programs = yield* programsWithout(...(bubblewrap ? [] : ["bwrap"]), "choirctl")
  chmodSync(dirname(programs), 0o755)
  const own = join(home, ".local/bin")
  mkdirSync(own, { recursive: true })
  const launcher = join(own, "choirctl")
  const node = join(ROOT, "node_modules/.bin/node")
  writeFileSync(launcher, `#!/bin/sh\nexec ${node} ${join(ROOT, "dist/choirctl.js")} "$@"\n`, { mode: 0o755 })
  if (uid !== undefined) for (const path of [join(home, ".local"), own, launcher]) chownSync(path, uid, uid)
  // A variant that fails leaves its choird running, which outlives the terminal.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      const user = uid === undefined ? {} : { uid, gid: uid }
      spawnSync(launcher, ["daemon", "stop"], { env: { HOME: home, PATH: programs }, timeout: STOP_MS_MAX, ...user })
    })
  )
  const env = { CHOIR_TELEGRAM_API_ROOT: telegram.url, npm_config_update_notifier: "false" }
  const open = openTerminal({ home, path: `${own}:${programs}`, cwd: ROOT, env, ...(uid === undefined ? {} : { uid }) })
  const config = () => JSON.parse(readFileSync(join(home, ".choir.d/config.json"), "utf8"))
  return { bot, config, home, open, provider, terminal: yield* open }
})

/** Chooses the n-th line of a list, from 0. */
const choose = (terminal: Terminal, index: number) => terminal.type(KEYS.down.repeat(index) + KEYS.enter)

/** The provider's questions, with a mistake in each. */
const answerProvider = Effect.fnUntraced(function* (terminal: Terminal, endpoint: string) {
  yield* choose(terminal, 3)
  yield* terminal.see("Address of the API")
  yield* terminal.line("127.0.0.1")
  yield* terminal.see("Enter an address such as")
  yield* terminal.type(KEYS.eraseLine)
  yield* terminal.line(endpoint)
  yield* terminal.see("Model name, such as")
  yield* terminal.line("")
  yield* terminal.see("Enter the provider's name")
  yield* terminal.line("offline-model")
  yield* terminal.see("Key of")
  yield* terminal.line("sk-wrong")
  yield* terminal.see("refuses the key (401)")
  yield* terminal.see("Enter the key again")
  yield* choose(terminal, 0)
  yield* terminal.see("Key of")
  yield* terminal.line(KEY)
  yield* terminal.see("offline-model works: it called a tool")
  yield* terminal.see("Price in USD")
  yield* terminal.line("cheap")
  yield* terminal.see("Enter two numbers")
  yield* terminal.type(KEYS.eraseLine)
  yield* terminal.line("3/15")
})

/** Telegram's questions, with a mistake in each. */
const answerTelegram = Effect.fnUntraced(function* (terminal: Terminal) {
  yield* terminal.line("@ada")
  yield* terminal.see("A user id is a number")
  yield* terminal.type(KEYS.eraseLine)
  yield* terminal.line(String(PHONE_USER))
  yield* terminal.see("Bot token")
  yield* terminal.line("1000:wrong")
  yield* terminal.see("Telegram refuses the bot's token (401)")
  yield* terminal.see("Enter the token again")
  yield* choose(terminal, 0)
  yield* terminal.see("Bot token")
  yield* terminal.line(TOKEN)
  yield* terminal.see(/The bot is @\w+/u)
})

/** Everything that the wizard of a first `npm start` asks. */
const answerWizard = Effect.fnUntraced(function* (terminal: Terminal, variant: Variant, endpoint: string) {
  yield* terminal.see("Which model do you want to use?", LATER)
  if (variant.provider) yield* answerProvider(terminal, endpoint)
  else yield* choose(terminal, 0)
  yield* terminal.see("Your Telegram user id")
  if (variant.telegram) yield* answerTelegram(terminal)
  else yield* terminal.line("")
  if (variant.bubblewrap) return
  yield* terminal.see("bubblewrap is not installed")
  yield* terminal.see("Run agents without isolation")
  yield* terminal.type("y")
})

const tryIt = (variant: Variant) =>
  Effect.gen(function* () {
    const { bot, config, provider, terminal } = yield* sitDown(variant)
    assert.include(commandsOf("Try it"), "npm start")
    yield* terminal.line("npm start")
    yield* answerWizard(terminal, variant, provider.endpoint)
    yield* terminal.see("you> Say hello in one sentence.", LATER)
    yield* terminal.see("hello in one sentence", LATER)
    yield* terminal.see("Talk to choir", LATER)
    yield* terminal.see(CHAT_PROMPT, LATER)
    yield* terminal.line("run echo $((40 + 2)) from a real shell")
    yield* terminal.see("42 from a real shell", LATER)
    if (variant.telegram) {
      yield* bot.text(PHONE_USER, "say hello phone")
      yield* bot.sent.first(({ text }) => text === "hello phone")
    }
    yield* terminal.type(KEYS.endOfInput)
    yield* terminal.see("Stopping. To go on: npm start")
    yield* terminal.run("true")
    const { agents, models, runtime } = config()
    assert.deepStrictEqual(agents.choir.defaults.dm, variant.telegram ? ["telegram", "terminal"] : "terminal")
    assert.deepStrictEqual(models.main.price, variant.provider ? { input: 3, output: 15 } : { input: 0, output: 0 })
    assert.strictEqual(runtime.type, variant.bubblewrap ? "sandbox" : "process")

    // The same home without npm start: choird brings its own offline model and the agent's session on.
    yield* terminal.run("choirctl daemon start")
    assert.include(yield* terminal.run('choirctl chat choir --message "say still here"'), "still here")
    assert.include(yield* terminal.run("choirctl model test main"), "main works")
    const doctor = yield* terminal.run("choirctl doctor")
    assert.match(doctor, variant.telegram ? /ok +gateway telegram +@/u : /skip +telegram/u)
    yield* terminal.line("npm start")
    yield* terminal.see("choird and the agent keep running", LATER)
    yield* terminal.see(CHAT_PROMPT, LATER)
    yield* terminal.type(KEYS.endOfInput)
    yield* terminal.see("choird keeps running")
    yield* terminal.run("choirctl daemon stop")
  }).pipe(Effect.scoped)

/** Ctrl-C in the middle of the wizard, and what the next run makes of it. */
const leaveAndGoOn = Effect.gen(function* () {
  const { config, home, terminal } = yield* sitDown({ who: isRoot ? "root" : "an ordinary user", bubblewrap: true })
  const draft = join(home, ".choir.d/init-draft.json")
  yield* terminal.line("choirctl init; echo left with $?")
  yield* terminal.see("Which model do you want to use?")
  yield* choose(terminal, 1)
  yield* terminal.see("Model name, such as")
  yield* terminal.line("anthropic/claude-sonnet-4")
  yield* terminal.see("Key of OpenRouter")
  yield* terminal.type(KEYS.interrupt)
  yield* terminal.see("the answers so far are kept")
  yield* terminal.see("left with 130")
  assert.strictEqual(statSync(draft).mode & 0o777, 0o600)
  yield* terminal.line("choirctl init --runtime sandbox; echo ended with $?")
  yield* terminal.see("Go on with the answers of the unfinished setup?")
  yield* terminal.line("")
  yield* terminal.see("Key of OpenRouter")
  yield* terminal.line("")
  yield* terminal.see("choirctl secret set openrouter-key")
  yield* terminal.see("Enter: 3/15")
  yield* terminal.line("")
  yield* terminal.see("Your Telegram user id")
  yield* terminal.line("")
  yield* terminal.see("ended with 0")
  const { model, price, secret } = config().models.main
  assert.deepStrictEqual(
    { model, price, secret },
    { model: "anthropic/claude-sonnet-4", price: { input: 3, output: 15 }, secret: "openrouter-key" }
  )
  assert.isFalse(existsSync(draft))
}).pipe(Effect.scoped)

const VARIANTS: ReadonlyArray<Variant> = [
  { who: "root", bubblewrap: true, telegram: false, provider: false },
  { who: "root", bubblewrap: false, telegram: true, provider: true },
  { who: "an ordinary user", bubblewrap: true, telegram: true, provider: false },
  { who: "an ordinary user", bubblewrap: false, telegram: false, provider: true }
]

/** The prompt of the chat, where typing begins to count. */
const CHAT_PROMPT = /choir(?: \([^)]*\))?> /u
const VARIANT_MS_MAX = 300_000

describe("the first hour", () => {
  it.live("keeps the answers of a setup that was left, and goes on with them", () => leaveAndGoOn, VARIANT_MS_MAX)

  for (const variant of VARIANTS) {
    const leftOut =
      (variant.who === "root" ? whyNoRoot : whyNoOtherUser) ?? (variant.bubblewrap ? whyNoSandbox : undefined)
    it.live.skipIf(leftOut !== undefined)(
      `goes as README says: ${nameOf(variant)}`,
      () => tryIt(variant),
      VARIANT_MS_MAX
    )
  }
})
