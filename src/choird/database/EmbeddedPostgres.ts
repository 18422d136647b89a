import { Deferred, Effect, Exit, Schema, type Scope } from "effect"
import { extname, join } from "node:path"
import { Duplex } from "node:stream"
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { TAKEN, type WorkerOptions, type WorkerOrder, type WorkerReport } from "./workerProtocol.ts"
import { IDLE_IN_TRANSACTION_MS_MAX } from "./PostgresServer.ts"

/**
 * A write ends when the other side has read it, so Node's own high-water mark bounds the bytes in the port. One that is not read
 * within `stuckMs` milliseconds is reported to `onStuck`.
 */
class PortStream extends Duplex {
  readonly #port: MessagePort
  readonly #stuckMs: number
  readonly #onStuck: () => void
  #timer: NodeJS.Timeout | undefined
  #taken: (() => void) | undefined

  constructor(port: MessagePort, stuckMs: number, onStuck: () => void) {
    super({ allowHalfOpen: false })
    this.#port = port
    this.#stuckMs = stuckMs
    this.#onStuck = onStuck
    port.on("message", (message: Uint8Array | typeof TAKEN) => {
      if (message !== TAKEN) return void this.push(message)
      clearTimeout(this.#timer)
      this.#taken?.()
    })
    port.on("close", () => this.destroy())
  }

  // Each message is one answer, which the other side caps; there is nothing to ask for.
  override _read() {}

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: () => void) {
    this.#taken = done
    this.#timer = setTimeout(this.#onStuck, this.#stuckMs)
    // A copy without the client's pooled buffer around it.
    const bytes = new Uint8Array(chunk)
    this.#port.postMessage(bytes, [bytes.buffer])
  }

  override _final(done: () => void) {
    done()
    this.destroy()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void) {
    clearTimeout(this.#timer)
    this.#port.close()
    done(error)
  }
}

/** How long the embedded database may be deaf before it counts as stuck; an index build is the longest thing that it does. */
const EMBEDDED_STUCK_MS_MAX = 300_000
/** How long the embedded database may take to open; making a folder without a template is the slow case. */
export const EMBEDDED_OPEN_MS_MAX = 60_000
/** How long the embedded database may take to close before its thread is ended. */
const EMBEDDED_CLOSE_MS_MAX = 10_000

/** Refusals of the system, which say nothing about the database itself, and the fix of each. */
const HOST_FIXES: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bENOSPC\b|\bEDQUOT\b/u, "Free some space on its disk: an empty one takes 40 MB. The database is as it was"],
  [/\bEFBIG\b/u, "Let choird write larger files: ulimit -f unlimited. The database is as it was"],
  [/\bEROFS\b/u, "Put the home on a disk that may be written to. The database is as it was"],
  [
    /\bEACCES\b|\bEPERM\b/u,
    "Give the folder and all in it to the user that runs choird: chown -R. The database is as it was"
  ],
  [/\bEMFILE\b|\bENFILE\b/u, "Let choird open more files: ulimit -n 4096. The database is as it was"]
]

/** The folder cannot be opened as an embedded database. */
export class EmbeddedUnusable extends Schema.TaggedError<EmbeddedUnusable>()("EmbeddedUnusable", {
  folder: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    const fix =
      HOST_FIXES.find(([words]) => words.test(this.problem))?.[1] ??
      "Move it away, then choirctl db restore a backup, or begin with an empty database"
    return `the embedded database in ${this.folder} cannot be opened: ${this.problem}. ${fix}`
  }
}

/** The folder may be sound: nothing was found wrong with it in the time that there is. */
export class EmbeddedLate extends Schema.TaggedError<EmbeddedLate>()("EmbeddedLate", { folder: Schema.String }) {
  override get message() {
    return `the embedded database in ${this.folder} did not open within ${EMBEDDED_OPEN_MS_MAX / 1000} s: the machine or its disk is too busy. Start choird again`
  }
}

/** The database ended while choird was using it. Everything committed is in the folder; a restart continues from there. */
export class DatabaseLost extends Schema.TaggedError<DatabaseLost>()("DatabaseLost", { folder: Schema.String }) {
  override get message() {
    return `the embedded database in ${this.folder} has ended unexpectedly: start choird again`
  }
}

export interface EmbeddedOptions {
  /** The home's `data` folder. Made when it is missing; its opener must hold the home's lock, so that no second engine opens these files. */
  readonly folder: string
  /** The gzipped template of a new folder. May be missing. */
  readonly template?: string | undefined
  /** Milliseconds that an open transaction may wait for its own program (R51). */
  readonly idleInTransactionMs?: number | undefined
  /** Milliseconds after which a database that takes no requests is ended, since it would never answer (E12). */
  readonly stuckMs?: number | undefined
}

/** An open embedded database. */
export interface EmbeddedPostgres {
  /** A new connection, as the Postgres client takes one. */
  readonly stream: () => Duplex
  /** Fails when the database ends before its scope does. */
  readonly lost: Effect.Effect<never, DatabaseLost>
}

// A neighbour of this file from source and compiled, and of the bundle that holds this file.
const WORKER = new URL(`./postgres-worker${extname(import.meta.url)}`, import.meta.url)
const TEMPLATE = join(packageFolder, "dist", "postgres-template.tar.gz")

const start = (options: WorkerOptions) =>
  Effect.callback<Worker, EmbeddedUnusable | EmbeddedLate>((resume) => {
    const worker = new Worker(WORKER, { workerData: options, name: "postgres" })
    const unusable = (problem: string) => resume(Effect.fail(new EmbeddedUnusable({ folder: options.folder, problem })))
    worker.once("error", (error) => unusable(error.message))
    worker.once("message", (report: WorkerReport) =>
      report._tag === "Open" ? resume(Effect.succeed(worker)) : unusable(report.problem)
    )
    return Effect.promise(() => worker.terminate())
  }).pipe(
    Effect.timeoutOrElse({
      duration: EMBEDDED_OPEN_MS_MAX,
      orElse: () => new EmbeddedLate({ folder: options.folder })
    })
  )

const order = (worker: Worker, message: WorkerOrder) =>
  worker.postMessage(message, message === "close" ? [] : [message])

const stop = (worker: Worker) =>
  Effect.callback<void>((resume) => {
    worker.once("exit", () => resume(Effect.void))
    order(worker, "close")
  }).pipe(
    Effect.interruptible,
    Effect.timeoutOrElse({
      duration: EMBEDDED_CLOSE_MS_MAX,
      orElse: () =>
        Effect.andThen(
          Effect.logWarning("the embedded database did not close in time; its log is replayed at the next start"),
          Effect.promise(() => worker.terminate())
        )
    })
  )

/** Opens the database in a thread of its own, and closes it with the scope. */
export const openEmbedded = Effect.fn("EmbeddedPostgres.open")(function* (
  options: EmbeddedOptions
): Effect.fn.Return<EmbeddedPostgres, EmbeddedUnusable | EmbeddedLate, Scope.Scope> {
  const lost = yield* Deferred.make<never, DatabaseLost>()
  let open = true
  const worker = yield* Effect.acquireRelease(
    start({
      folder: options.folder,
      template: options.template ?? TEMPLATE,
      idleInTransactionMs: options.idleInTransactionMs ?? IDLE_IN_TRANSACTION_MS_MAX
    }),
    (worker) => {
      const alive = open
      open = false
      return alive ? stop(worker) : Effect.void
    },
    { interruptible: true }
  )
  const ended = () => {
    if (!open) return
    open = false
    Deferred.doneUnsafe(lost, Exit.fail(new DatabaseLost({ folder: options.folder })))
  }
  worker.on("error", ended)
  worker.on("exit", ended)
  const stream = () => {
    // The client takes an exception of a stream factory for a failed connection.
    if (!open) throw new DatabaseLost({ folder: options.folder })
    const { port1, port2 } = new MessageChannel()
    order(worker, port2)
    return new PortStream(port1, options.stuckMs ?? EMBEDDED_STUCK_MS_MAX, () => void worker.terminate())
  }
  return { stream, lost: Deferred.await(lost) }
})
