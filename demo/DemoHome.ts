/** The throw-away home of `npm run demo`, and choirctl in it. */
import { chmodSync, cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Schema } from "effect"
import { createRepo } from "#src/shared/git/scaffold.ts"
import { writeDemoTools } from "./demoTools.ts"
import { sandboxProblem, takeRuntime } from "#tools/hostRuntime.ts"
import { choirctl, offlineModel, ROOT } from "#tools/Programs.ts"
import * as Screen from "#tools/Screen.ts"

/** The name of the demo's agent. */
export const AGENT = "demo"

/** A step of the demo did not do what it shows. */
export class DemoFailed extends Schema.TaggedError<DemoFailed>()("DemoFailed", {
  step: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `the demo failed at "${this.step}": ${this.reason}`
  }
}

/** Runs choirctl and answers its output; a failure ends the demo. */
export const must = Effect.fnUntraced(function* (home: string, ...args: ReadonlyArray<string>) {
  const ran = yield* choirctl(home, args)
  if (ran.code === 0) return ran.stdout
  return yield* new DemoFailed({ step: `choirctl ${args.join(" ")}`, reason: ran.stderr || ran.stdout })
})

/** Where bubblewrap does not work, the agent runs as a plain process, which config.json has to say. */
const chooseRuntime = Effect.fnUntraced(function* (home: string) {
  const problem = yield* sandboxProblem(home)
  yield* takeRuntime(home, problem === undefined ? "sandbox" : "process")
  yield* Console.log(Screen.step(problem ?? "bubblewrap works: the agent runs in a sandbox"))
})

/** Real input: Choir's own schemas are what the agent reads. */
const fillWorkspace = (home: string) =>
  Effect.sync(() => cpSync(join(ROOT, "schema"), join(home, "workspaces/main/schema"), { recursive: true }))

/** The agent's repository with two tools more than a new one has; `agent init` takes the one that is there. */
const makeRepo = Effect.fnUntraced(function* (home: string) {
  const starter = join(home, "starter")
  yield* Effect.sync(() => {
    cpSync(join(ROOT, "docker/agent-starter"), starter, { recursive: true })
    writeDemoTools(starter)
  })
  yield* createRepo(join(home, "sources/agents", AGENT), starter).pipe(Effect.provide(NodeServices.layer))
})

/** A home with an agent and the offline model, ready for choird; the end of the scope removes it. */
export const makeDemoHome = Effect.gen(function* () {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-demo-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  yield* Effect.sync(() => chmodSync(home, 0o700))
  const endpoint = yield* offlineModel(0)
  yield* Console.log(
    Screen.step("offline-model stands in for a language model: a small program that follows plain instructions")
  )
  yield* must(home, "init", "--model-endpoint", endpoint, "--model-name", "offline-model")
  yield* makeRepo(home)
  yield* must(home, "agent", "init", AGENT)
  yield* chooseRuntime(home)
  yield* fillWorkspace(home)
  return home
})
