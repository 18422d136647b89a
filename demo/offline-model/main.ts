/** The program of the offline model: prints `{"endpoint": …}` as one line when it is ready, and serves until SIGTERM. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Runtime } from "effect"
import { Command, Flag } from "effect/cli"
import { VERSION } from "#src/shared/program/version.ts"
import { serveOfflineModel } from "./OfflineModel.ts"

const stdinEnds = Effect.callback<void>((resume) => {
  process.stdin.once("close", () => resume(Effect.void)).resume()
})

const cli = Command.make(
  "choir-offline-model",
  {
    host: Flag.String("host").pipe(Flag.withDescription("Address to listen on"), Flag.withDefault("127.0.0.1")),
    port: Flag.Int("port").pipe(
      Flag.filter(
        (port) => port >= 0 && port <= 65_535,
        () => "a port is 0 to 65535"
      ),
      Flag.withDescription("TCP port, 0 for a free one"),
      Flag.withDefault(0)
    ),
    until_stdin_ends: Flag.Boolean("until-stdin-ends").pipe(
      Flag.withDescription("End with standard input, so that a parent that is killed leaves nothing running"),
      Flag.withDefault(false)
    )
  },
  Effect.fn(function* ({ until_stdin_ends, ...address }) {
    const endpoint = yield* serveOfflineModel(address)
    yield* Console.log(JSON.stringify({ endpoint }))
    return yield* until_stdin_ends ? stdinEnds : Effect.never
  }, Effect.scoped)
).pipe(Command.withDescription("A model that follows plain instructions, for trying Choir without a key"))

NodeRuntime.runMain(Command.run(cli, { version: VERSION }).pipe(Effect.provide(NodeServices.layer)), {
  teardown: (exit, done) =>
    Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? done(0) : Runtime.defaultTeardown(exit, done)
})
