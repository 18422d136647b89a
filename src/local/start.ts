/**
 * `npm start`: the same parts as the demo, kept. The first run asks what is missing; then choird, the offline model where config.json
 * uses it, the agent, and a conversation. Leaving the conversation stops them in order.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Option, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { homeFolder } from "#src/shared/homeFolder.ts"
import { sandboxProblem, takeRuntime } from "./hostRuntime.ts"
import { choirctl, choirctlHere, offlineModel, program, ready } from "./Programs.ts"
import * as Screen from "./Screen.ts"

/** A step that choirctl refused; it has told the person why. */
class NotStarted extends Schema.TaggedError<NotStarted>()("NotStarted", { problem: Schema.String }) {
  override get message() {
    return this.problem
  }
}

const readConfig = (home: string) =>
  Schema.decodeEffect(Schema.fromJsonString(Config))(readFileSync(join(home, "config.json"), "utf8"))

const here = Effect.fnUntraced(function* (home: string, ...args: ReadonlyArray<string>) {
  const code = yield* choirctlHere(home, args)
  if (code !== 0) return yield* new NotStarted({ problem: `choirctl ${args.join(" ")} ended with ${code}` })
})

/** Runs choirctl quietly, and shows what it printed only when it fails. */
const quietly = Effect.fnUntraced(function* (home: string, ...args: ReadonlyArray<string>) {
  const ran = yield* choirctl(home, args)
  if (ran.code !== 0) return yield* new NotStarted({ problem: (ran.stderr || ran.stdout).trim() })
})

/** The port of a loopback endpoint that config.json gives to the offline model. */
const offlinePort = (config: Config): Option.Option<number> => {
  const model = Object.values(config.models).find(({ model }) => model === "offline-model")
  return Option.map(Option.fromNullishOr(model), ({ endpoint }) => Number(new URL(endpoint).port))
}

const main = Effect.gen(function* () {
  const { values } = parseArgs({ options: { home: { type: "string" } } })
  const home = homeFolder(values.home)
  yield* here(home, "init")
  let config = yield* readConfig(home)
  if (Object.keys(config.agents).length === 0) {
    if ((yield* sandboxProblem(home)) === undefined) yield* takeRuntime(home, "sandbox")
    yield* here(home, "agent", "init", "choir")
    config = yield* readConfig(home)
  }
  const agent = Object.keys(config.agents)[0] ?? "choir"
  const port = offlinePort(config)
  if (Option.isSome(port))
    yield* Console.log(Screen.good(`offline-model answers at ${yield* offlineModel(port.value)}`))
  const logs = join(home, "logs")
  if (!existsSync(logs)) mkdirSync(logs, { recursive: true, mode: 0o700 })
  const choird = yield* program("choird", ["--home", home])
  yield* ready("choird", choird, quietly(home, "status", "--json"))
  yield* here(home, "agent", "build", agent)
  const status = yield* choirctl(home, ["agent", "status", agent, "--json"])
  if (!/"status":\s*"running"/u.test(status.stdout)) yield* here(home, "agent", "start", agent)
  yield* Console.log(`\nTalk to ${agent}; Ctrl-D leaves and stops everything. Another terminal: choirctl status\n`)
  yield* choirctlHere(home, ["chat", agent])
}).pipe(Effect.scoped)

NodeRuntime.runMain(
  Effect.tapError(main, ({ message }) => Console.error(Screen.bad(message))),
  { disableErrorReporting: true }
)
