/**
 * `npm start`: an installation to keep. The first run asks what is missing, makes an agent and shows its first answer; every run ends
 * in a conversation. choird is stopped afterwards unless it ran before.
 */
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { Console, Effect, Schema } from "effect"
import { type ConfigFiles, hasValue, loadFiles } from "#src/shared/config/configFiles.ts"
import { homeFolder, onHome } from "#src/shared/files/homeFolder.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { missingSecrets } from "./missingSecrets.ts"
import { canType } from "./personPath.ts"
import { choirctl, choirctlHere, program, ready, ROOT } from "./Programs.ts"
import { runOwner } from "./runOwner.ts"
import * as Screen from "./Screen.ts"

/** How long the first answer of a new agent may take, in seconds. */
const FIRST_ANSWER_S_MAX = 120
const FIRST_MESSAGE = "Say hello in one sentence."
const NEW_AGENT = "choir"
/** Keeps `choirctl init` and `agent init` from printing next steps that are taken here. */
const BRIEF = "--brief"

/** A step that choirctl refused; it has told the person why. */
class NotStarted extends Schema.TaggedError<NotStarted>()("NotStarted", { problem: Schema.String }) {
  override get message() {
    return this.problem
  }
}

/** The person left a question of choirctl with Ctrl-C. */
class Left extends Schema.TaggedError<Left>()("Left", {}) {}
const LEFT = 130

const here = Effect.fnUntraced(function* (home: string, ...args: ReadonlyArray<string>) {
  const code = yield* choirctlHere(home, args)
  if (code === LEFT) return yield* new Left()
  if (code === 0) return
  const command = onHome(home, `choirctl ${args.filter((arg) => arg !== BRIEF).join(" ")}`)
  return yield* new NotStarted({ problem: `Stopped at: ${command} (exit code ${code})` })
})

/** Runs choirctl quietly, and shows what it printed only when it fails. */
const quietly = Effect.fnUntraced(function* (home: string, ...args: ReadonlyArray<string>) {
  const ran = yield* choirctl(home, args)
  if (ran.code !== 0) return yield* new NotStarted({ problem: (ran.stderr || ran.stdout).trim() })
  return ran.stdout
})

/** The agent to talk with; made where config.json has none. */
const agentOf = Effect.fnUntraced(function* (home: string) {
  const [known] = Object.keys((yield* loadFiles(home)).config.agents)
  if (known !== undefined) return known
  yield* Console.log(`Making your first agent, ${NEW_AGENT}`)
  yield* here(home, "agent", "init", NEW_AGENT, BRIEF)
  return NEW_AGENT
})

/** Asks for the keys that the agent's models miss, since it does not start without them. */
const askKeys = Effect.fnUntraced(function* (home: string, agent: string) {
  const { config, secrets } = yield* loadFiles(home)
  const missing = missingSecrets(config, secrets, agent)
  if (missing.length === 0) return
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    const commands = missing.map((name) => onHome(home, `choirctl secret set ${name}`)).join(" && ")
    return yield* new NotStarted({ problem: `${agent} has no key for its model: ${commands}, then: npm start` })
  }
  for (const name of missing) {
    yield* Console.log(`${agent} needs the key ${name} for its model`)
    yield* here(home, "secret", "set", name)
  }
})

/** Whether an agent never ran. */
const isNew = Effect.fnUntraced(function* (home: string, agent: string) {
  return (yield* quietly(home, "session", "list", agent, "--json")).trim() === "[]"
})

const choirdRuns = (home: string) =>
  Effect.map(choirctl(home, ["daemon", "status", "--json"]), ({ code }) => code === 0)

/** Starts choird unless it runs already; answers whether it did. */
const bringUp = Effect.fnUntraced(function* (home: string) {
  if (yield* choirdRuns(home)) return true
  yield* Console.log("Starting choird")
  const logs = join(home, "logs")
  if (!existsSync(logs)) mkdirSync(logs, { recursive: true, mode: 0o700 })
  const choird = yield* program("choird", ["--home", home])
  yield* ready("choird", choird, quietly(home, "status", "--json"))
  return false
})

/** Starts the agent unless it runs. */
const startAgent = Effect.fnUntraced(function* (home: string, agent: string) {
  yield* Console.log(`Building ${agent}`)
  yield* quietly(home, "agent", "build", agent)
  const status = yield* choirctl(home, ["agent", "status", agent, "--json"])
  if (!/"status":\s*"running"/u.test(status.stdout)) yield* here(home, "agent", "start", agent)
})

/** Sends the first message, so that a person sees an answer before typing anything. */
const firstAnswer = Effect.fnUntraced(function* (home: string, agent: string) {
  yield* Console.log(`\nyou> ${FIRST_MESSAGE}`)
  const args = ["chat", agent, "--message", FIRST_MESSAGE, "--timeout", String(FIRST_ANSWER_S_MAX)]
  if ((yield* choirctlHere(home, args)) !== 0)
    yield* Console.log(Screen.bad(onHome(home, "There was no answer. Check the model: choirctl model test main")))
})

/** The text before and after the conversation. */
const greeting = (
  home: string,
  agent: string,
  { config, secrets }: ConfigFiles,
  ranBefore: boolean,
  linked: boolean
) => {
  const [bot] = Object.entries(config.gateways).flatMap(([name, gateway]) =>
    gateway.type === "telegram" && hasValue(secrets, gateway.secret) ? [name] : []
  )
  const isPaired = Object.values(config.dms).some(({ gateway }) => gateway === bot)
  return [
    "",
    `Talk to ${agent}${bot === undefined || !isPaired ? "" : " here or through your Telegram bot"}.`,
    ...(bot === undefined || isPaired
      ? []
      : [onHome(home, `On Telegram, from another terminal: choirctl dm pair phone --gateway ${bot} --admin`)]),
    ranBefore
      ? "Ctrl-C stops an answer. Ctrl-D leaves the chat; choird and the agent keep running."
      : "Ctrl-C stops an answer. Ctrl-D leaves the chat and stops choird and the agent.",
    onHome(home, "In another terminal: choirctl status"),
    ...(linked ? [] : ["npm run link makes that command short: choirctl"]),
    ""
  ].join("\n")
}

const closingNote = (home: string, ranBefore: boolean) =>
  ranBefore
    ? onHome(home, "\nchoird keeps running. To stop it: choirctl daemon stop")
    : onHome(home, "\nStopping. To continue: npm start, or choirctl daemon start to keep it running")

/** @param linked whether the person can type choirctl. */
const main = Effect.fnUntraced(function* (home: string, linked: boolean) {
  yield* here(home, "init", BRIEF)
  const agent = yield* agentOf(home)
  yield* askKeys(home, agent)
  const ranBefore = yield* bringUp(home)
  const first = yield* isNew(home, agent)
  yield* startAgent(home, agent)
  if (first) yield* firstAnswer(home, agent)
  yield* Console.log(greeting(home, agent, yield* loadFiles(home), ranBefore, linked))
  yield* choirctlHere(home, ["chat", agent])
  yield* Console.log(closingNote(home, ranBefore))
}, Effect.scoped)

/** The text for a person who leaves before the conversation has ended. */
const leaving = (home: string) =>
  Effect.flatMap(choirdRuns(home), (runs) =>
    Console.log(
      runs
        ? onHome(home, "\nLeft. choird keeps running. To stop it: choirctl daemon stop")
        : "\nStopped. To continue: npm start"
    )
  )

// What this program and those that it runs print can be typed as it stands.
const linked = canType("choirctl")
if (!linked) process.env["CHOIR_COMMAND"] = shellQuoted(join(ROOT, "bin/choirctl"))
const { values } = parseArgs({ options: { home: { type: "string" } } })
const home = homeFolder(values.home)

runOwner(
  main(home, linked).pipe(
    Effect.onInterrupt(() => leaving(home)),
    Effect.tapError((error) => (error._tag === "Left" ? leaving(home) : Console.error(Screen.bad(error.message))))
  )
)
