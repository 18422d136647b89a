/** The offline models of config.json, each in a process that choird starts and keeps running. */
import { spawn } from "node:child_process"
import { extname, join } from "node:path"
import { Context, Deferred, Effect, FiberMap, Layer, Stream } from "effect"
import { restarted } from "#src/shared/background.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { PROGRAM_OUTPUT_CHARS_MAX } from "#src/shared/limits.ts"
import { type OfflinePlace, offlinePlaces } from "#src/shared/config/offlineEndpoint.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"

/** The program: its source if choird runs from source, else the bundle beside choird's. */
const PROGRAM = join(
  packageFolder,
  extname(import.meta.url) === ".ts" ? "demo/offline-model/main.ts" : "dist/offline-model.js"
)

/** The pause before a model that ended is started again; it doubles with each failure, up to the maximum. */
const RESTART_MS = 500
const RESTART_MS_MAX = 30_000
/** The interval between checks whether a model of another program still answers. */
const LOOK_MS = 5000
/** The longest check whether a model answers. */
const LOOK_MS_MAX = 2000
/** The longest wait of a starting choird for the models to answer before it continues without them. */
const READY_MS_MAX = 10_000
/** The longest wait for a model to end. */
const STOP_MS_MAX = 2000

/** Keeps the offline models of the running configuration answering. */
export class OfflineModels extends Context.Service<
  OfflineModels,
  {
    /** One sentence for each offline model that does not answer. */
    readonly problems: Effect.Effect<ReadonlyArray<string>>
  }
>()("choir/choird/OfflineModels") {
  static readonly layer = Layer.effect(
    OfflineModels,
    Effect.suspend(() => make())
  )
}

/** Whether an offline model answers at a place. Its only model has a name that no other server has. */
const answers = ({ endpoint }: OfflinePlace) =>
  Effect.tryPromise(async (signal) => {
    const response = await fetch(`${endpoint}/models`, { signal, redirect: "error" })
    return response.ok && (await response.text()).includes('"offline-model"')
  }).pipe(
    Effect.timeout(LOOK_MS_MAX),
    Effect.orElseSucceed(() => false)
  )

/** The reason why the program ended, from its last output. */
const reasonOf = (output: string, { port }: OfflinePlace, code: number | null) => {
  if (output.includes("EADDRINUSE"))
    return `another program uses port ${port}; stop it, or change the model's endpoint in config.json`
  return output.trim().split("\n").at(-1)?.trim() || `it ended with ${code ?? "a signal"}`
}

/**
 * Runs the program until it ends, and returns what it printed last. It ends with the scope, and by itself when choird is
 * killed: its standard input closes then.
 */
const serve = (place: OfflinePlace, onReady: () => void) =>
  Effect.gen(function* () {
    const ended = yield* Deferred.make<string>()
    let output = ""
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-PROGRAM_OUTPUT_CHARS_MAX)
    }
    const args = [PROGRAM, "--host", place.host, "--port", String(place.port), "--until-stdin-ends"]
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "pipe"], detached: true })
        child.stdout.once("data", onReady)
        child.stderr.on("data", keep)
        child.once("error", (error) => Deferred.doneUnsafe(ended, Effect.succeed(error.message)))
        child.once("close", (code) => {
          Deferred.doneUnsafe(ended, Effect.succeed(reasonOf(output, place, code)))
        })
        return child
      }),
      (child) =>
        Effect.andThen(
          Effect.sync(() => child.kill("SIGTERM")),
          Deferred.await(ended)
        ).pipe(Effect.timeoutOrElse({ duration: STOP_MS_MAX, orElse: () => Effect.sync(() => child.kill("SIGKILL")) }))
    )
    child.stdin.on("error", () => undefined)
    return yield* Deferred.await(ended)
  }).pipe(Effect.scoped)

const make = Effect.fnUntraced(function* () {
  const config = yield* ConfigStore
  const running = yield* FiberMap.make<string>()
  const problems = new Map<string, string>()

  /** Serves one place for as long as its fiber lives. */
  const keep = Effect.fnUntraced(function* (place: OfflinePlace, ready: Deferred.Deferred<void>) {
    const { endpoint } = place
    const isUp = () => {
      problems.delete(endpoint)
      Deferred.doneUnsafe(ready, Effect.void)
    }
    let pause_ms = RESTART_MS
    for (;;) {
      if (yield* answers(place)) {
        // Another choird of this host serves it, and may stop at any time.
        isUp()
        yield* Effect.sleep(LOOK_MS)
        continue
      }
      const onReady = () => {
        pause_ms = RESTART_MS
        isUp()
      }
      const reason = yield* serve(place, onReady)
      problems.set(endpoint, `the offline model is not running at ${endpoint}: ${reason}`)
      yield* Effect.logWarning(`the offline model at ${endpoint} ended; starting it again in ${pause_ms} ms`, {
        reason
      })
      yield* Effect.sleep(pause_ms)
      pause_ms = Math.min(2 * pause_ms, RESTART_MS_MAX)
    }
  })

  /** Starts the models that a configuration adds and stops those that it drops; returns when the new ones are ready. */
  const follow = Effect.fnUntraced(function* (places: ReadonlyArray<OfflinePlace>) {
    const wanted = new Map(places.map((place) => [place.endpoint, place]))
    for (const endpoint of Array.from(running, ([endpoint]) => endpoint).filter((name) => !wanted.has(name))) {
      yield* FiberMap.remove(running, endpoint)
      problems.delete(endpoint)
    }
    return yield* Effect.forEach(wanted.values(), (place) =>
      Effect.gen(function* () {
        const ready = yield* Deferred.make<void>()
        if (yield* FiberMap.has(running, place.endpoint)) return Effect.void
        const supervised = restarted(`the offline model at ${place.endpoint}`)(keep(place, ready))
        yield* FiberMap.run(running, place.endpoint, supervised, { onlyIfMissing: true })
        return Deferred.await(ready)
      })
    )
  })

  const first = yield* follow(offlinePlaces((yield* config.current).config))
  yield* Effect.timeoutOption(Effect.all(first, { concurrency: "unbounded", discard: true }), READY_MS_MAX)
  yield* Stream.runForEach(config.changes, ({ config }) => follow(offlinePlaces(config))).pipe(
    restarted("the choice of offline models"),
    Effect.forkScoped
  )
  return OfflineModels.of({ problems: Effect.sync(() => [...problems.values()]) })
})
