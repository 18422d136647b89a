/** Runs choirctl as a process. */
import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer, References } from "effect"
import { surviveClosedPipes } from "#src/choirctl/terminal/closedPipe.ts"
import { Host } from "#src/choirctl/terminal/Host.ts"
import { run } from "./run.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"

surviveClosedPipes()

const Platform = Layer.mergeAll(Host.layer, Screen.layer, Layer.succeed(References.LogToStderr, true))

NodeRuntime.runMain(
  run(process.argv.slice(2)).pipe(
    Effect.tap((code) => Effect.sync(() => void (process.exitCode = code))),
    Effect.provide(Platform)
  ),
  { disableErrorReporting: true }
)
