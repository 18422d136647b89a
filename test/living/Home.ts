/**
 * A default home in which people live, with nothing of Choir replaced: its owner types the wizard's answers into a terminal, and choird asks the names
 * of the real services over TLS in a network of its own. Only the clock is turned, and behind the names are doubles.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { chmodSync, copyFileSync, readFileSync, utimesSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { Deferred, Effect } from "effect"
import { PROVIDERS } from "#src/choirctl/home/providers.ts"
import { makeAuthority } from "../support/certificate.ts"
import { temporaryFolder } from "../support/engines.ts"
import { ROOT } from "../support/installation.ts"
import { choose } from "../support/newcomer.ts"
import { outsideNetwork } from "../support/outside/outsideNetwork.ts"
import { emptyHome, KEYS, LATER, openTerminal, programsWithout } from "../support/terminal.ts"
import { failing, makeProviderOf, type ProviderRequest, type Reply } from "../support/testing/Provider.ts"
import { makeTelegram, type TelegramBot } from "../support/testing/Telegram.ts"

const TOKEN = "1000:secret"
const KEY = "sk-ant-a-key-of-a-fortnight"
/** A user that nothing on this machine belongs to. */
const UID = 47_120
const STOP_MS_MAX = 30_000
const SITE = "example.org"
export const HOSTS = ["api.anthropic.com", "api.telegram.org", SITE] as const
const ZONE = "Europe/Berlin"
/** Of that zone until summer time begins on 28 March, after all days. */
const ZONE_OFFSET = "+01:00"
const TURNED_CLOCK = join(import.meta.dirname, "turnedClock.mjs")

/** The people of the fortnight, by their numbers at Telegram. */
export const PEOPLE = { Ada: 4711, Bob: 4712, Carl: 4713 } as const
export type Person = keyof typeof PEOPLE
export const GROUP = -100_200
/** The name of the bot, by which members of the group mention it. */
export const BOT = "double_bot"
export const GROUP_TITLE = "Summer trip"

const tls = (url: string) => [{ port: 443, tls: true, to: Number(new URL(url).port) }]

/** A site with some pages, by their paths, that notes what it is asked for. */
const site = (pages: Readonly<Record<string, string>>, asked: Array<string>) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer(({ method = "", url = "" }, response) => {
        asked.push(`${method} ${url}`)
        const page = pages[url]
        response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/html; charset=utf-8" })
        response.end(page ?? "<p>There is no such page.</p>")
      }).listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`))

/** What a provider in trouble answers; undefined where the model does. */
export type Trouble = (request: ProviderRequest) => Reply | undefined

export interface HomePlan {
  readonly pages: Readonly<Record<string, string>>
  readonly model: (request: ProviderRequest, bot: TelegramBot) => Reply
  /** Sets the clock of the doubles ahead by so much more. */
  readonly set: (by_ms: number) => void
}

/** Moves into a new home, until the scope closes. */
export const moveIn = Effect.fnUntraced(function* ({ model, pages, set }: HomePlan) {
  const folder = yield* temporaryFolder
  chmodSync(folder, 0o755)
  const agent = join(folder, "choir-agent.js")
  const built = join(ROOT, "dist/choir-agent.js")
  const [first = "", ...rest] = readFileSync(built, "utf8").split("\n")
  writeFileSync(agent, [first, readFileSync(TURNED_CLOCK, "utf8"), ...rest].join("\n"))
  copyFileSync(TURNED_CLOCK, join(folder, "turnedClock.mjs"))

  let ahead = 0
  /** Turns every clock of the home and of the doubles to this minute of the home's time zone. */
  const turnTo = (date: string, time: string) =>
    Effect.sync(() => {
      const wanted = Date.parse(`${date}T${time}:00${ZONE_OFFSET}`) - Date.now()
      utimesSync(agent, wanted / 1000, wanted / 1000)
      set(wanted - ahead)
      ahead = wanted
    })

  const asked: Array<string> = []
  const authority = yield* makeAuthority(HOSTS)
  const telegram = yield* makeTelegram
  const bot = telegram.bot(TOKEN)
  const provider = yield* makeProviderOf({ dialect: "anthropic", vision: true })
  let trouble: Trouble = () => undefined
  let met = Deferred.makeUnsafe<void>()
  const troubled = (request: ProviderRequest) => {
    const reply = trouble(request)
    if (reply !== undefined) Deferred.doneUnsafe(met, Effect.void)
    return reply
  }
  yield* provider.otherwise((request) =>
    request.headers["x-api-key"] === KEY
      ? (troubled(request) ?? model(request, bot))
      : failing(401, "invalid x-api-key")
  )
  /** Lets the provider answer otherwise than the model would, or no more, from now on. */
  const ail = (by: Trouble) =>
    Effect.sync(() => {
      trouble = by
      met = Deferred.makeUnsafe()
    })
  /** The provider is well again, once somebody has met its trouble. */
  const repair = Effect.andThen(
    Effect.suspend(() => Deferred.await(met)),
    ail(() => undefined)
  )
  for (const [name, id] of Object.entries(PEOPLE)) yield* bot.name(id, name)
  yield* bot.name(GROUP, GROUP_TITLE)
  const network = yield* outsideNetwork({
    authority,
    families: "IPv4",
    hosts: {
      "api.anthropic.com": tls(provider.endpoint),
      "api.telegram.org": tls(telegram.url),
      [SITE]: tls(yield* site(pages, asked))
    }
  })
  /** Gives the agent its turned clock. Before that the build is as it was made, since `npm start` makes another one anew. */
  const giveClock = Effect.sync(() => {
    const [program, ...args] = [...network.within, "mount", "--bind", agent, built]
    execFileSync(program, args)
  })
  const home = yield* emptyHome(UID)
  const programs = yield* programsWithout("choirctl", "choird")
  chmodSync(dirname(programs), 0o755)
  const env = {
    ...network.env,
    NODE_OPTIONS: `--import=${join(folder, "turnedClock.mjs")}`,
    CHOIR_TEST_CLOCK: agent,
    TZ: ZONE,
    npm_config_update_notifier: "false"
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      const [program, ...args] = [...network.within, "setpriv", `--reuid=${UID}`, `--regid=${UID}`, "--clear-groups"]
      spawnSync(program, [...args, join(ROOT, "bin/choirctl"), "daemon", "stop"], {
        env: { HOME: home, PATH: programs, ...env },
        timeout: STOP_MS_MAX
      })
    })
  )
  const terminal = yield* openTerminal({
    home,
    path: programs,
    cwd: ROOT,
    uid: UID,
    env,
    within: [...network.within, "env", `--chdir=${ROOT}`]
  })
  return { ail, asked, bot, giveClock, home, repair, network, provider, telegram, terminal, turnTo }
})

export type Home = Effect.Success<ReturnType<typeof moveIn>>

/** The first `npm start`, with a model and without a bot; Ctrl-D leaves it. */
export const firstStart = Effect.fnUntraced(function* ({ giveClock, terminal }: Home) {
  yield* terminal.run("npm run link")
  yield* terminal.run('export PATH="$HOME/.local/bin:$PATH"')
  yield* terminal.run("npm start", {
    meanwhile: Effect.gen(function* () {
      yield* terminal.see("Which model do you want to use?", LATER)
      yield* giveClock
      yield* choose(terminal, PROVIDERS.indexOf("anthropic"))
      yield* terminal.see("Model name")
      yield* terminal.line("")
      yield* terminal.see("API key from Anthropic")
      yield* terminal.line(KEY)
      yield* terminal.see("It works", LATER)
      yield* terminal.see("Price in USD")
      yield* terminal.line("")
      yield* terminal.see("Model to use when this one fails")
      yield* terminal.line("")
      yield* terminal.see("Bot token")
      yield* terminal.line("")
      yield* terminal.see("Time of a daily brief", LATER)
      yield* terminal.line("")
      yield* terminal.see("Talk to choir", LATER)
      yield* terminal.see("choir> ", LATER)
      yield* terminal.type(KEYS.endOfInput)
      yield* terminal.see("Stopping.", LATER)
    })
  })
})

const CODE = /\b[A-Z2-9]{4}-[A-Z2-9]{4}\b/u

/** Lets a person in: the code that the terminal shows is what they send. */
export const letIn = Effect.fnUntraced(function* ({ bot, terminal }: Home, who: Person, command: string) {
  const shown = yield* terminal.run(command)
  const [code = ""] = CODE.exec(shown) ?? []
  yield* bot.text(PEOPLE[who], code)
})

/** Lets the group in, with an agent of its own: Ada writes there what the terminal shows. */
export const letGroupIn = Effect.fnUntraced(function* ({ bot, terminal }: Home) {
  yield* terminal.run("choirctl agent init trip-agent", {
    meanwhile: Effect.gen(function* () {
      yield* terminal.see("search each other's memory")
      yield* terminal.line("")
    })
  })
  yield* terminal.run("choirctl agent build trip-agent")
  yield* terminal.run("choirctl agent start trip-agent")
  const shown = yield* terminal.run("choirctl dm pair trip --gateway telegram --group --agent trip-agent")
  const [code = ""] = CODE.exec(shown) ?? []
  yield* bot.textInGroup(GROUP, PEOPLE.Ada, `/start@${BOT} ${code}`)
})

/** What README says about the bot and the phone. */
export const pairPhone = Effect.fnUntraced(function* (home: Home) {
  const { terminal } = home
  yield* terminal.run("choirctl daemon start")
  yield* terminal.run("choirctl gateway add telegram", {
    meanwhile: Effect.gen(function* () {
      yield* terminal.see("Token from @BotFather")
      yield* terminal.line(TOKEN)
    })
  })
  yield* letIn(home, "Ada", "choirctl dm pair phone --gateway telegram --admin")
})
