/** A backup or a restore that is killed when a step begins: `killedAtStep.ts backup|restore HOME FILE STEP`. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { backupHome } from "#src/choirctl/backup/backupHome.ts"
import { restoreHome } from "#src/choirctl/backup/restoreHome.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { bundledChoird } from "./bundles.ts"

const [what, home = "", file = "", last] = process.argv.slice(2)

const step =
  (name: string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.andThen(
      Effect.sync(() => name === last && process.kill(process.pid, "SIGKILL")),
      work
    )

const options = { home, file, step }
const work = Effect.gen(function* () {
  if (what === "backup")
    yield* backupHome<never>({
      ...options,
      version: "0.1.0",
      workspaces: true,
      archives: true,
      secrets: false,
      passphrase: undefined
    })
  else
    yield* restoreHome<never, never>({
      ...options,
      force: false,
      agree: () => Effect.succeed({ passphrase: undefined, secrets: false })
    })
})

const command = root.pipe(Command.withSubcommands([Command.make("work", {}, () => work)]))
await Effect.runPromise(
  Command.runWith(command, { version: "0" })(["--home", home, "work"]).pipe(
    Effect.provide(Layer.mergeAll(NodeServices.layer, Screen.layer, bundledChoird))
  )
)
