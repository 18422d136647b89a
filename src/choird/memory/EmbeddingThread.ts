/** The local embedding model in a thread of its own: loaded at the first text, unloaded after a while without any. */
import { extname } from "node:path"
import { setFlagsFromString } from "node:v8"
import { Worker } from "node:worker_threads"
import type { EmbeddingOrder, EmbeddingReport } from "./embeddingProtocol.ts"

/** How long one text may take, the model's load included, before the thread counts as stuck. */
const LOCAL_TEXT_MS_MAX = 30_000
/** How long the model stays loaded without a text: it holds some 200 MB. */
const LOCAL_IDLE_MS = 300_000
/** Tries of one text, each after the first one in a new thread, since it may be the text that ends them. */
const LOCAL_TRIES_MAX = 2
/** The heap of the thread; its weights are beside it. */
const LOCAL_HEAP_MB_MAX = 512

/** `text`: this text cannot be embedded. `thread`: none can. */
export interface ThreadFailure {
  readonly scope: "texts" | "provider"
  readonly problem: string
}

type Done = (result: ReadonlyArray<Float32Array> | ThreadFailure) => void

interface Request {
  readonly texts: ReadonlyArray<string>
  readonly vectors: Array<Float32Array>
  readonly done: Done
  tries: number
}

interface ThreadOptions {
  readonly idleMs?: number | undefined
  readonly textMs?: number | undefined
  /** The program of the thread. */
  readonly program?: URL | undefined
}

// A neighbour of this file from source and compiled, and of the bundle that holds this file.
const WORKER = new URL(`./embedding-worker${extname(import.meta.url)}`, import.meta.url)

/** Serves requests text by text, the one with the fewest texts left first, so that a question never waits for a whole batch. */
export class EmbeddingThread {
  readonly #idleMs: number
  readonly #textMs: number
  readonly #program: URL
  readonly #requests = new Set<Request>()
  #worker: Worker | undefined
  #current: Request | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor({ idleMs = LOCAL_IDLE_MS, program = WORKER, textMs = LOCAL_TEXT_MS_MAX }: ThreadOptions = {}) {
    this.#idleMs = idleMs
    this.#textMs = textMs
    this.#program = program
  }

  /** Whether the model is loaded, or being loaded. */
  get running(): boolean {
    return this.#worker !== undefined
  }

  /** Calls `done` once; never after the function that it returns was called. */
  embed(texts: ReadonlyArray<string>, done: Done): () => void {
    const request = { texts, vectors: [], done, tries: 0 }
    if (texts.length === 0) done([])
    else if (this.#closed) done({ scope: "provider", problem: "choird is stopping" })
    else {
      this.#requests.add(request)
      this.#next()
    }
    return () => void this.#requests.delete(request)
  }

  /** Ends the thread in the middle of what it does. */
  async close(): Promise<void> {
    this.#closed = true
    this.#fail({ scope: "provider", problem: "choird is stopping" })
    await this.#stop()
  }

  #next() {
    if (this.#current !== undefined) return
    clearTimeout(this.#timer)
    const left = ({ texts, vectors }: Request) => texts.length - vectors.length
    const [request] = [...this.#requests].sort((a, b) => left(a) - left(b))
    if (request === undefined) {
      this.#timer = setTimeout(() => void this.#stop(), this.#idleMs).unref()
      return
    }
    this.#current = request
    this.#timer = setTimeout(() => this.#crashed("it takes too long over a text"), this.#textMs)
    const order: EmbeddingOrder = { text: request.texts[request.vectors.length] ?? "" }
    this.#worker ??= this.#start()
    this.#worker.postMessage(order, [])
  }

  #start(): Worker {
    const worker = new Worker(this.#program, {
      name: "embedding",
      resourceLimits: { maxOldGenerationSizeMb: LOCAL_HEAP_MB_MAX }
    })
    const alive = () => this.#worker === worker
    worker.on("message", (report: EmbeddingReport) => alive() && this.#take(report))
    worker.on("error", (error: Error) => alive() && this.#crashed(error.message))
    worker.on("exit", () => alive() && this.#crashed("its thread has ended"))
    // An idle model does not keep a program from ending.
    worker.unref()
    return worker
  }

  #take(report: EmbeddingReport) {
    const request = this.#current
    this.#current = undefined
    if (report._tag === "Unusable") {
      void this.#stop()
      return this.#fail({ scope: "provider", problem: `it cannot be loaded: ${report.problem}` })
    }
    if (request === undefined) return this.#next()
    request.tries = 0
    if (report._tag === "Vector") request.vectors.push(report.values)
    else this.#finish(request, { scope: "texts", problem: report.problem })
    if (request.vectors.length === request.texts.length) this.#finish(request, request.vectors)
    this.#next()
  }

  /** A new thread tries the text again, once; it may have been the text, and others must not wait for it. */
  #crashed(problem: string) {
    const request = this.#current
    this.#current = undefined
    void this.#stop()
    if (request !== undefined) {
      request.tries += 1
      if (request.tries >= LOCAL_TRIES_MAX) this.#finish(request, { scope: "texts", problem })
    }
    this.#next()
  }

  #finish(request: Request, result: ReadonlyArray<Float32Array> | ThreadFailure) {
    if (this.#requests.delete(request)) request.done(result)
  }

  #fail(failure: ThreadFailure) {
    for (const request of this.#requests) this.#finish(request, failure)
  }

  async #stop() {
    clearTimeout(this.#timer)
    const worker = this.#worker
    this.#worker = undefined
    if (worker === undefined) return
    // A thread that ends badly is gone all the same.
    await worker.terminate().catch(() => undefined)
    // A thread that ends while it loads its model leaves the whole process with its compiler, which is far too slow for the embedded database.
    setFlagsFromString("--liftoff")
  }
}
