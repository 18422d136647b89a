/** The program of the offline model: prints `{"endpoint": …}` as one line when it is ready, and serves until SIGTERM. */
import { Socket } from "node:net"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Runtime, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { VERSION } from "#src/shared/program/version.ts"
import { serveOfflineModel, takeConnections } from "./OfflineModel.ts"

/** The first message of a parent. */
const isStart = Schema.is(Schema.Struct({ key: Schema.NonEmptyString }))

/** A later one, with a connection. The parent keeps its own hold of it until it hears that it is taken. */
const isConnection = Schema.is(Schema.Struct({ connection: Schema.Int }))

/** Serves the connections that the parent hands over, until the parent ends: a parent that is killed leaves nothing running. */
const serveParent = Effect.gen(function* () {
  const ended = Effect.callback<void>((resume) => {
    if (!process.connected) return resume(Effect.void)
    process.once("disconnect", () => resume(Effect.void))
  })
  const key = yield* Effect.callback<string>((resume) => {
    process.once("message", (message: unknown) => resume(isStart(message) ? Effect.succeed(message.key) : Effect.never))
  })
  const take = yield* takeConnections(key)
  process.on("message", (message: unknown, handle: unknown) => {
    if (!isConnection(message)) return
    if (handle instanceof Socket) take(handle)
    process.send?.({ taken: message.connection })
  })
  process.send?.("ready")
  yield* ended
}).pipe(Effect.scoped)

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
    for_parent: Flag.Boolean("for-parent").pipe(
      Flag.withDescription("Listen nowhere: take the connections of the parent process, and end with it"),
      Flag.withDefault(false)
    )
  },
  Effect.fn(function* ({ for_parent, ...address }) {
    if (for_parent) return yield* serveParent
    const endpoint = yield* serveOfflineModel(address)
    yield* Console.log(JSON.stringify({ endpoint }))
    return yield* Effect.never
  }, Effect.scoped)
).pipe(Command.withDescription("A model that follows plain instructions, for trying Choir without a key"))

NodeRuntime.runMain(Command.run(cli, { version: VERSION }).pipe(Effect.provide(NodeServices.layer)), {
  teardown: (exit, done) =>
    Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? done(0) : Runtime.defaultTeardown(exit, done)
})
