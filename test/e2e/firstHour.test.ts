/** The first hour of a person: what README says, typed into a real terminal, from an empty HOME. */
import { existsSync, statSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  answerWizard,
  CHAT_PROMPT,
  choose,
  follow,
  type Newcomer,
  PHONE_USER,
  sayInChat,
  seeOnPhone,
  sitDown,
  typeCommand,
  type Variant
} from "../support/newcomer.ts"
import { whyNoOtherUser } from "../support/ordinaryUser.ts"
import { ensureDebianPackages, whyNotRoot } from "../support/packages.ts"
import { type Block, blocksOf } from "../support/readme.ts"
import { KEYS, LATER } from "../support/terminal.ts"
import { atSize, isFull } from "../support/size.ts"

const isRoot = process.getuid?.() === 0
/** What one test may take on a busy machine. */
const VARIANT_MS_MAX = 300_000
/** The prompt while no turn runs, so that Ctrl-C leaves. */
const IDLE_PROMPT = "choir> "

const whyNotOrdinary = whyNoOtherUser("the first hour of an ordinary user")
const whyNoRoot = whyNotRoot("the first hour of root")
const whyNoSandbox = ensureDebianPackages(["bubblewrap"], "the first hour with bubblewrap")

const [DEMO, START, ...ON_THE_PATH] = blocksOf("Try it")
const [FROM_INIT, ...FIVE_MINUTES] = blocksOf("Five minutes to a real provider and a Telegram bot")

/** A message from the phone, answered there by the model that README adds. */
const writeFromPhone = Effect.fnUntraced(function* (newcomer: Newcomer, word: string) {
  const { bot, provider } = newcomer
  yield* bot.text(PHONE_USER, `say hello ${word}`)
  yield* seeOnPhone(newcomer, `hello ${word}`)
  const asked = yield* provider.requests.first(({ body }) => JSON.stringify(body).includes(`say hello ${word}`))
  assert.propertyVal(asked.body, "model", "anthropic/claude-sonnet-4")
})

/** The first `npm start`: its questions, the first answer, a conversation, and the way out. */
const npmStart = Effect.fnUntraced(function* (newcomer: Newcomer, variant: Variant, leave: string) {
  const { bot, config, terminal } = newcomer
  const conversation = Effect.gen(function* () {
    yield* answerWizard(newcomer, variant)
    if (variant.provider) {
      yield* terminal.see(/With offline-model it costs about \$0\.\d\d a day, and never more than \$/u, LATER)
      yield* terminal.see("Time of a daily brief")
      yield* terminal.line("")
    }
    yield* terminal.see("you> Say hello in one sentence.", LATER)
    yield* terminal.see("Hello! I am the offline model", LATER)
    yield* terminal.see("Talk to choir", LATER)
    if (variant.telegram) {
      yield* bot.text(PHONE_USER, "say hello phone")
      yield* seeOnPhone(newcomer, "hello phone")
    }
    yield* sayInChat(terminal, "run echo $((40 + 2)) from a real shell", "42 from a real shell")
    yield* terminal.see(IDLE_PROMPT)
    yield* terminal.type(leave)
    yield* terminal.see("Stopping. To continue: npm start")
  })
  yield* terminal.run("npm start", { meanwhile: conversation })
  const { agents, models, runtime } = config()
  assert.deepStrictEqual(agents.choir.defaults.dm, variant.telegram ? ["phone", "terminal"] : "terminal")
  assert.deepStrictEqual(models.main.fallback, variant.provider ? ["fallback"] : undefined)
  assert.deepStrictEqual(models.main.price, variant.provider ? { input: 3, output: 15 } : { input: 0, output: 0 })
  assert.strictEqual(runtime.type, variant.bubblewrap ? "sandbox" : "process")
})

const fiveMinutes = Effect.fnUntraced(function* (newcomer: Newcomer, variant: Variant) {
  yield* follow(newcomer, variant, FIVE_MINUTES)
  yield* writeFromPhone(newcomer, "from the phone")
  yield* newcomer.bot.text(PHONE_USER, "/stop")
  yield* seeOnPhone(newcomer, "◆ Nothing is running.")
  assert.match(yield* newcomer.terminal.run("choirctl doctor"), /ok +model sonnet[\s\S]*ok +gateway telegram +@/u)
})

/** The same home in the background: choird serves the offline model and resumes the session, and npm start leaves it running. */
const stayUp = Effect.fnUntraced(function* ({ terminal }: Newcomer) {
  yield* terminal.run("choirctl daemon start")
  assert.include(yield* terminal.run('choirctl chat choir --message "say still here"'), "still here")
  assert.include(yield* terminal.run("choirctl model test main"), "main works")
  assert.match(yield* terminal.run("choirctl doctor"), /ok +gateway telegram +@/u)
  const again = Effect.gen(function* () {
    yield* terminal.see("choird and the agent keep running", LATER)
    yield* terminal.see(CHAT_PROMPT, LATER)
    yield* terminal.type(KEYS.endOfInput)
    yield* terminal.see("choird keeps running")
  })
  yield* terminal.run("npm start", { meanwhile: again })
})

/** Ctrl-C in a chat stops a turn, and leaves where none runs. */
const stopTurn = Effect.fnUntraced(function* ({ terminal }: Newcomer) {
  yield* terminal.run("choirctl daemon start")
  const conversation = Effect.gen(function* () {
    yield* terminal.see(CHAT_PROMPT, LATER)
    yield* terminal.line("run sleep 300")
    yield* terminal.see(/choir \(running exec(?: \d+ s)?\)> /u, LATER)
    yield* terminal.type(KEYS.interrupt)
    yield* terminal.see("Stopped.")
    yield* sayInChat(terminal, "run echo $((20 + 3)) after the stop", "23 after the stop")
    yield* terminal.see(IDLE_PROMPT)
    yield* terminal.type(KEYS.interrupt)
    yield* terminal.see("You left the chat")
  })
  yield* terminal.run("choirctl chat choir", { meanwhile: conversation })
})

const tryIt = (variant: Variant, next: (newcomer: Newcomer, variant: Variant) => Effect.Effect<void, unknown>) =>
  Effect.gen(function* () {
    const newcomer = yield* sitDown(variant)
    // The demo has a test of its own.
    assert.deepStrictEqual(DEMO, ["npm ci && npm run demo"])
    assert.deepStrictEqual(START, ["npm start"])
    const leave = variant.telegram && variant.provider ? KEYS.interrupt : KEYS.endOfInput
    yield* npmStart(newcomer, variant, leave)
    yield* follow(newcomer, variant, ON_THE_PATH)
    yield* next(newcomer, variant)
    yield* newcomer.terminal.run("choirctl daemon stop")
  }).pipe(Effect.scoped)

/** The user that runs the tests. */
const HERE: Variant = {
  who: isRoot ? "root" : "an ordinary user",
  bubblewrap: true,
  telegram: false,
  provider: false
}

/** An operator who begins with choirctl, adds an agent, and changes the configuration while choird is down. */
const withoutNpmStart = Effect.gen(function* () {
  const newcomer = yield* sitDown(HERE)
  const { terminal } = newcomer
  yield* follow(newcomer, HERE, [...ON_THE_PATH.map(withoutDoctor), ...(FROM_INIT === undefined ? [] : [FROM_INIT])])
  assert.include(yield* terminal.run('choirctl chat choir --message "say nobody is online"'), "nobody is online")

  assert.include(yield* terminal.run("choirctl agent init two"), "choird knows two")
  yield* terminal.run("choirctl agent build two && choirctl agent start two")
  assert.include(yield* terminal.run('choirctl chat two --message "say two of us"'), "two of us")

  yield* terminal.run("choirctl daemon stop")
  newcomer.edit({
    models: { sonnet: { provider: "openrouter", model: "anthropic/claude-sonnet-4", secret: "openrouter-key" } },
    gateways: { bot: { type: "telegram", secret: "telegram-token" } },
    dms: { phone: { gateway: "bot", user_id: String(PHONE_USER), admin: true } },
    agents: { choir: { defaults: { llm: "sonnet" } } }
  })
  for (const name of ["openrouter-key", "telegram-token"])
    yield* typeCommand(newcomer, HERE, `choirctl secret set ${name}`)
  yield* terminal.run("choirctl daemon start")
  const refused = yield* terminal.run("choirctl agent start choir --dm=phone", { code: 1 })
  const [, hint = ""] = /hint: (choirctl agent restart choir --dm phone)\n/u.exec(refused) ?? []
  assert.notStrictEqual(hint, "", refused)
  yield* terminal.run(hint)
  assert.match(yield* terminal.run("choirctl agent status choir"), /llm sonnet[^\n]* dm phone/u)
  yield* writeFromPhone(newcomer, "after all")
  yield* terminal.run("choirctl daemon stop")
}).pipe(Effect.scoped)

/** doctor has nothing to look at before there is a home. */
const withoutDoctor = (block: Block): Block => block.filter((command) => command !== "choirctl doctor")

/** Ctrl-C in the middle of the wizard, and what the next run makes of it. */
const leaveAndGoOn = Effect.gen(function* () {
  const newcomer = yield* sitDown(HERE)
  const { config, draft, terminal } = newcomer
  yield* follow(newcomer, HERE, ON_THE_PATH.map(withoutDoctor))
  yield* terminal.line("choirctl init; echo left with $?")
  yield* terminal.see("Which model do you want to use?")
  yield* choose(terminal, 1)
  yield* terminal.see("Model name (Enter: anthropic/")
  yield* terminal.line("anthropic/claude-sonnet-4")
  yield* terminal.see("API key from OpenRouter")
  yield* terminal.type(KEYS.interrupt)
  yield* terminal.see("the answers so far are kept")
  yield* terminal.see("left with 130")
  assert.strictEqual(statSync(draft).mode & 0o777, 0o600)
  yield* terminal.line("choirctl init --runtime sandbox; echo ended with $?")
  yield* terminal.see("Continue with the answers of the unfinished setup?")
  yield* terminal.line("")
  yield* terminal.see("API key from OpenRouter")
  yield* terminal.line("")
  yield* terminal.see("choirctl secret set openrouter-key")
  yield* terminal.see("Enter: 3/15")
  yield* terminal.line("")
  yield* terminal.see("Model to use when this one fails")
  yield* terminal.line("")
  yield* terminal.see("Bot token")
  yield* terminal.line("")
  yield* terminal.see("ended with 0")
  const { context_window, model, price, secret } = config().models.main
  assert.deepStrictEqual(
    { context_window, model, price, secret },
    {
      context_window: 200_000,
      model: "anthropic/claude-sonnet-4",
      price: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 },
      secret: "openrouter-key"
    }
  )
  assert.isFalse(existsSync(draft))
}).pipe(Effect.scoped)

type Hour = readonly [
  Variant,
  what: string,
  next: (newcomer: Newcomer, variant: Variant) => Effect.Effect<void, unknown>
]

/** With and without bubblewrap, Telegram and a provider. */
const VARIANTS = atSize<Hour>(
  [[{ who: "an ordinary user", bubblewrap: true, telegram: true, provider: false }, "it stays up", stayUp]],
  [
    [
      { who: "an ordinary user", bubblewrap: false, telegram: false, provider: true },
      "five minutes later",
      fiveMinutes
    ],
    [{ who: "root", bubblewrap: true, telegram: false, provider: false }, "five minutes later", fiveMinutes],
    [{ who: "root", bubblewrap: false, telegram: true, provider: true }, "Ctrl-C leaves", stopTurn]
  ]
)

const nameOf = ({ bubblewrap, provider, telegram, who }: Variant) =>
  [
    `as ${who}`,
    bubblewrap ? "with bubblewrap" : "without bubblewrap",
    telegram ? "with Telegram" : "without Telegram",
    provider ? "with a provider" : "offline"
  ].join(", ")

describe("the first hour", () => {
  it.live("keeps the answers of a setup that was left, and goes on with them", () => leaveAndGoOn, VARIANT_MS_MAX)

  for (const [variant, what, next] of VARIANTS) {
    const leftOut =
      (variant.who === "root" ? whyNoRoot : whyNotOrdinary) ?? (variant.bubblewrap ? whyNoSandbox : undefined)
    it.live.skipIf(leftOut !== undefined)(
      `goes as README says: ${nameOf(variant)}; ${what}`,
      () => tryIt(variant, next),
      VARIANT_MS_MAX
    )
  }

  if (!isFull) return
  it.live.skipIf(whyNoSandbox !== undefined)(
    "goes as README says without npm start, takes a second agent, and follows the hint of a refused start",
    () => withoutNpmStart,
    VARIANT_MS_MAX
  )
})
