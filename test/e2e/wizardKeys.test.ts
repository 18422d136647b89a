/** The wizard in a real terminal, between two servers that have a key each. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { waysOn } from "#src/choirctl/setup/wizardQuestions.ts"
import { MAIN } from "../support/choirctl.ts"
import { ROOT } from "../support/installation.ts"
import { emptyHome, KEYS, LATER, openTerminal, type Terminal } from "../support/terminal.ts"
import { PHONE_USER } from "../support/newcomer.ts"
import { callTools, failing, makeProviderOf, type Provider } from "../support/testing/Provider.ts"
import { makeTelegram } from "../support/testing/Telegram.ts"

const TOKEN = "1000:secret"
const STRANGER = 666
const KEY_A = "sk-of-the-server-a-0123"
const KEY_B = "sk-of-the-server-b-4567"

const ready = callTools([{ name: "choir_check", input: { word: "ready" } }])

/** A server that has one key, and one model that works. */
const serverOf = Effect.fnUntraced(function* (key: string) {
  const provider = yield* makeProviderOf({})
  yield* provider.otherwise(({ body, headers }) => {
    if (headers["authorization"] !== `Bearer ${key}`) return failing(401, "Incorrect API key provided")
    return JSON.stringify(body).includes('"model":"works"') ? ready : failing(404, "no such model")
  })
  return provider
})

const keysAt = ({ requests }: Provider) =>
  Effect.map(requests.all, (all) => new Set(all.map(({ headers }) => headers["authorization"])))

/** Chooses a line of the list of ways on, in which the cursor may be anywhere, from its top. */
const choose = (terminal: Terminal, from: number, to: number, lines: number) =>
  terminal.type(KEYS.down.repeat((to - from + lines) % lines) + KEYS.enter)

describe("the wizard", () => {
  it.live("asks for the key again when the address changes, and tries the fallback model like the first", () =>
    Effect.gen(function* () {
      const [a, b] = [yield* serverOf(KEY_A), yield* serverOf(KEY_B)]
      const person = yield* emptyHome(undefined)
      const home = join(person, "choir")
      const terminal = yield* openTerminal({ home: person, path: process.env["PATH"] ?? "", cwd: ROOT })
      const flags = ["--model-provider=other", `--model-endpoint=${a.endpoint}`, "--model-name=broken"]
      yield* terminal.line([process.execPath, MAIN, "--home", home, "init", ...flags, "--runtime=process"].join(" "))
      yield* terminal.see("API key, if the API needs one", LATER)
      yield* terminal.line("not a key")
      yield* terminal.see("A key has no spaces")
      yield* terminal.line(KEY_A)
      yield* terminal.see("What now?", LATER)
      const { best, ways } = waysOn("other", "name")
      yield* choose(terminal, ways.indexOf(best), ways.indexOf("endpoint"), ways.length)
      yield* terminal.see("Address of the API")
      yield* terminal.line(b.endpoint)
      yield* terminal.see("API key, if the API needs one")
      yield* terminal.line(KEY_B)
      yield* terminal.see("What now?", LATER)
      yield* choose(terminal, ways.indexOf(best), ways.indexOf("name"), ways.length)
      yield* terminal.see("Model name, such as")
      yield* terminal.line("works")
      yield* terminal.see("It works: works called a tool", LATER)
      yield* terminal.see("Price in USD")
      yield* terminal.line("")
      yield* terminal.see("Model to use when this one fails")
      yield* terminal.line("3/15")
      yield* terminal.see("no such model", LATER)
      yield* terminal.see("Continue without a fallback model")
      yield* terminal.line("")
      yield* terminal.see("Model to use when this one fails")
      yield* terminal.line("works-not")
      yield* terminal.see("Continue without a fallback model", LATER)
      yield* terminal.type(KEYS.down.repeat(2) + KEYS.enter)
      yield* terminal.see("Bot token", LATER)
      yield* terminal.line("")
      yield* terminal.see("Next:", LATER)

      assert.deepStrictEqual(yield* keysAt(a), new Set([`Bearer ${KEY_A}`]))
      assert.deepStrictEqual(yield* keysAt(b), new Set([`Bearer ${KEY_B}`]))
      const { models } = JSON.parse(readFileSync(join(home, "config.json"), "utf8"))
      assert.deepInclude(models.main, { endpoint: b.endpoint, model: "works", secret: "other-key-2" })
      assert.notProperty(models, "fallback")
      assert.deepStrictEqual(JSON.parse(readFileSync(join(home, "secrets.json"), "utf8")), {
        "other-key": KEY_A,
        "other-key-2": KEY_B
      })
    }).pipe(Effect.scoped)
  )

  it.live("pairs the phone by a code that the bot is sent, and lets nobody in by a wrong one", () =>
    Effect.gen(function* () {
      const telegram = yield* makeTelegram
      const bot = telegram.bot(TOKEN)
      yield* bot.name(PHONE_USER, "Ada")
      const person = yield* emptyHome(undefined)
      const home = join(person, "choir")
      const env = { CHOIR_TELEGRAM_API_ROOT: telegram.url }
      const terminal = yield* openTerminal({ home: person, path: process.env["PATH"] ?? "", cwd: ROOT, env })
      const flags = ["--model-provider=offline", "--runtime=process"]
      yield* terminal.line([process.execPath, MAIN, "--home", home, "init", ...flags].join(" "))
      yield* terminal.see("Bot token", LATER)
      yield* terminal.line("not-a-token")
      yield* terminal.see("A bot token looks like")
      yield* terminal.line(TOKEN)
      const offered = yield* terminal.see(/t\.me\/\w+\?start=\w+/u, LATER)
      const [, code = ""] = /on Telegram: (\w{4}-\w{4})/u.exec(offered) ?? []
      assert.include(offered, `?start=${code.replace("-", "")}`)
      yield* terminal.see("Waiting for the code")
      yield* terminal.line("me")
      yield* terminal.see("A user id is a number")
      yield* bot.text(STRANGER, "hello")
      yield* bot.text(STRANGER, "ABCD-EFGH")
      yield* bot.textInGroup(-1009, PHONE_USER, code)
      yield* bot.text(PHONE_USER, `/start ${code.replace("-", "").toLowerCase()}`)
      yield* terminal.see(`Your phone is paired: the Telegram user ${PHONE_USER} is the admin, as ada`, LATER)
      yield* terminal.see("Your time zone", LATER)
      yield* terminal.line("")
      const news = yield* terminal.drawn
      // What was below the question is erased before the news takes its line.
      assert.include(news.slice(news.lastIndexOf("to pair later"), news.indexOf("Your phone is paired")), "\n\u001b[J")
      yield* terminal.see("Next:", LATER)
      const { dms } = JSON.parse(readFileSync(join(home, "config.json"), "utf8"))
      assert.deepStrictEqual(dms.ada, { gateway: "telegram", user_id: String(PHONE_USER), admin: true })
      const sent = yield* bot.sent.all
      assert.deepStrictEqual(
        sent.map(({ chat, text }) => [chat.id, text?.slice(0, 12)]),
        [[PHONE_USER, "◆ You are in"]]
      )
      // choird is not shown the code as a message.
      assert.strictEqual(yield* bot.pending, 0)
    }).pipe(Effect.scoped)
  )
})
