/**
 * The offline model of a choird: one process that it starts and keeps running, while config.json has such a model. choird itself holds the
 * port for as long as it runs and hands each connection to the process, so that nobody can take the port while the process restarts.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { extname, join } from "node:path"
import { Context, Deferred, Effect, FiberHandle, Layer, Schema, Stream } from "effect"
import type { Config } from "#schema/Config.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { NOWHERE, OfflineAddress } from "#src/choird/config/offlineAddress.ts"
import { isServedHere } from "#src/shared/config/offlineEndpoint.ts"
import { restarted } from "#src/shared/background.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { PROGRAM_OUTPUT_CHARS_MAX } from "#src/shared/limits.ts"

/** The program: its source if choird runs from source, else the bundle beside choird's. */
const PROGRAM = join(
  packageFolder,
  extname(import.meta.url) === ".ts" ? "demo/offline-model/main.ts" : "dist/offline-model.js"
)

/** Random bytes of the key that is part of the address. */
const KEY_BYTES = 32
/** Connections that wait for the process while it starts. */
const WAITING_MAX = 64
/** The pause before a model that ended is started again; it doubles with each failure, up to the maximum. */
const RESTART_MS = 500
const RESTART_MS_MAX = 30_000
/** The longest wait of a starting choird for the model before it continues without it. */
const READY_MS_MAX = 10_000
/** The longest wait for a model to end. */
const STOP_MS_MAX = 2000

/** Keeps the offline model of the running configuration answering. */
export class OfflineModels extends Context.Service<
  OfflineModels,
  {
    /** A sentence if the offline model does not answer although config.json has one. */
    readonly problems: Effect.Effect<ReadonlyArray<string>>
  }
>()("choir/choird/OfflineModels") {
  /** Provides {@link OfflineAddress} as well. */
  static readonly layer = Layer.effectContext(
    Effect.suspend(() => make()).pipe(
      Effect.map(({ address, problems }) =>
        Context.make(OfflineModels, OfflineModels.of({ problems })).pipe(Context.add(OfflineAddress, address))
      )
    )
  )
}

const nothing = () => undefined

/** The process has a connection. Its only other message is that it is ready. */
const isTaken = Schema.is(Schema.Struct({ taken: Schema.Int }))

/** The port, and the connections to it: each goes to the process that answers now, or waits for the next one. */
const makeDoor = Effect.gen(function* () {
  const waiting = new Set<Socket>()
  /** Connections on their way to the process, by a number of their own. A process that ends first has not taken them. */
  const handed = new Map<number, Socket>()
  let last = 0
  let answering: ChildProcess | undefined
  const handOver = (child: ChildProcess, socket: Socket) => {
    last += 1
    handed.set(last, socket)
    child.send({ connection: last }, socket, { keepOpen: true }, nothing)
  }
  const taken = (number: number) => {
    handed.get(number)?.destroy()
    handed.delete(number)
  }
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    socket.on("error", nothing)
    socket.once("close", () => waiting.delete(socket))
    if (waiting.size + handed.size >= WAITING_MAX) return socket.destroy()
    if (answering?.connected === true) return handOver(answering, socket)
    return waiting.add(socket)
  })
  const closeWaiting = () => {
    for (const socket of [...waiting, ...handed.values()]) socket.destroy()
    waiting.clear()
    handed.clear()
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      closeWaiting()
      server.close()
    })
  )
  const key = randomBytes(KEY_BYTES).toString("base64url")
  const listening = Effect.callback<string, Error>((resume) => {
    server.once("error", (error) => resume(Effect.fail(error)))
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      resume(Effect.succeed(`http://127.0.0.1:${port}/${key}/v1`))
    })
  })
  return {
    key,
    /** Where agents reach the model. The port is taken when it is asked for first, and kept. */
    address: yield* Effect.cached(listening),
    /** Connections go to this process from now on. */
    open: (child: ChildProcess) => {
      answering = child
      for (const socket of waiting) handOver(child, socket)
      waiting.clear()
    },
    /** The process has this connection. */
    taken,
    /** Connections wait for the next process, also those that this one has not taken. */
    close: (child: ChildProcess) => {
      if (answering !== child) return
      answering = undefined
      for (const socket of handed.values()) waiting.add(socket)
      handed.clear()
    },
    /** Ends the connections that wait, since no process will come. */
    closeWaiting: Effect.sync(closeWaiting)
  }
})
type Door = Effect.Success<typeof makeDoor>

/** Runs the program until it ends, and returns why. It ends with the scope, and by itself with choird, to which it is connected. */
const serve = (door: Door, onReady: () => void) =>
  Effect.gen(function* () {
    const ended = yield* Deferred.make<string>()
    let output = ""
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const args = [PROGRAM, "--for-parent"]
        const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe", "ipc"], detached: true })
        child.stderr?.on("data", (chunk: Buffer) => {
          output = (output + chunk.toString()).slice(-PROGRAM_OUTPUT_CHARS_MAX)
        })
        child.on("message", (message) => {
          if (isTaken(message)) return door.taken(message.taken)
          door.open(child)
          return onReady()
        })
        child.on("error", (error) => Deferred.doneUnsafe(ended, Effect.succeed(error.message)))
        child.once("close", (code) => {
          door.close(child)
          const said = output.trim().split("\n").at(-1)?.trim() ?? ""
          Deferred.doneUnsafe(ended, Effect.succeed(said === "" ? `it ended with ${code ?? "a signal"}` : said))
        })
        // The key is on no command line, which everybody on the host may read.
        child.send({ key: door.key }, nothing)
        return child
      }),
      (child) =>
        Effect.andThen(
          Effect.sync(() => child.kill("SIGTERM")),
          Deferred.await(ended)
        ).pipe(Effect.timeoutOrElse({ duration: STOP_MS_MAX, orElse: () => Effect.sync(() => child.kill("SIGKILL")) }))
    )
    return yield* Deferred.await(ended).pipe(Effect.ensuring(Effect.sync(() => door.close(child))))
  }).pipe(Effect.scoped)

const isWanted = ({ models }: Pick<Config, "models">) => Object.values(models).some(isServedHere)

const make = Effect.fnUntraced(function* () {
  const config = yield* ConfigStore
  const door = yield* makeDoor
  const running = yield* FiberHandle.make()
  let problem: string | undefined

  /** Serves for as long as its fiber lives. */
  const keep = Effect.fnUntraced(function* (ready: Deferred.Deferred<void>) {
    let pause_ms = RESTART_MS
    for (;;) {
      const reason = yield* serve(door, () => {
        pause_ms = RESTART_MS
        problem = undefined
        Deferred.doneUnsafe(ready, Effect.void)
      })
      problem = `the offline model is not running: ${reason}`
      yield* Effect.logWarning(`the offline model ended; starting it again in ${pause_ms} ms`, { reason })
      yield* Effect.sleep(pause_ms)
      pause_ms = Math.min(2 * pause_ms, RESTART_MS_MAX)
    }
  })

  /** Starts the model when a configuration has one and stops it when none has; answers what to wait for until it is ready. */
  const follow = Effect.fnUntraced(function* (wanted: boolean) {
    if (!wanted) {
      yield* FiberHandle.clear(running)
      yield* door.closeWaiting
      problem = undefined
      return Effect.void
    }
    if (FiberHandle.getUnsafe(running)._tag === "Some") return Effect.void
    const ready = yield* Deferred.make<void>()
    const supervised = door.address.pipe(
      Effect.tapError(({ message }) => Effect.sync(() => (problem = `the offline model is not running: ${message}`))),
      Effect.andThen(keep(ready)),
      restarted("the offline model")
    )
    yield* FiberHandle.run(running, supervised)
    return Deferred.await(ready)
  })

  const first = yield* follow(isWanted((yield* config.current).config))
  yield* Effect.timeoutOption(first, READY_MS_MAX)
  yield* Stream.runForEach(config.changes, ({ config }) => follow(isWanted(config))).pipe(
    restarted("the choice of the offline model"),
    Effect.forkScoped
  )
  return {
    address: Effect.orElseSucceed(door.address, () => NOWHERE),
    problems: Effect.sync(() => (problem === undefined ? [] : [problem]))
  }
})
