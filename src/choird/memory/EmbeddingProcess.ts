/** The local embedding model in a closed process: loaded at the first text, ended after a while without any. */
import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { Option, Schema } from "effect"
import { builtPath, builtProgram, endClosed, isOutOfMemory, startClosed } from "#src/choird/runtime/closedProcess.ts"
import { makeLines } from "#src/shared/wire/jsonLines.ts"
import {
  EMBEDDING_REPORT_BYTES_MAX,
  EMBEDDING_TEXT_CHARS_MAX,
  type EmbeddingOrder,
  EmbeddingReport
} from "./embeddingProtocol.ts"

/** How long the process may take until its model is loaded, on a machine that is busy. */
const LOCAL_LOAD_MS_MAX = 60_000
/** How long one text may take before the process counts as stuck. */
const LOCAL_TEXT_MS_MAX = 30_000
/** How long the model stays loaded without a text: it holds some 200 MB. */
const LOCAL_IDLE_MS = 300_000
/** Tries of one text, each after the first one in a new process, since it may be the text that ends them. */
const LOCAL_TRIES_MAX = 2
/** Processes that may break within LOCAL_CRASH_WINDOW_MS; after that none is started until the first of them is as long ago. */
const LOCAL_CRASHES_MAX = 6
const LOCAL_CRASH_WINDOW_MS = 300_000
/** The heap of the process. */
const LOCAL_HEAP_MB_MAX = 512
/** The memory of the model's WebAssembly, in pages of 64 KiB: 512 MiB. */
const LOCAL_WASM_PAGES_MAX = 8192

const FLAGS = [
  `--max-old-space-size=${LOCAL_HEAP_MB_MAX}`,
  `--wasm-max-mem-pages=${LOCAL_WASM_PAGES_MAX}`,
  // The model runs the same few functions all the time: they are optimized when they are compiled, and not inlined (wasmInlining.ts).
  "--no-liftoff",
  "--no-wasm-inlining"
]

/** The model's code in WebAssembly, its words and its weights, which the build puts here. */
const MODEL = builtPath("embedding-model")

/** `texts`: these texts cannot be embedded. `provider`: none can. */
export interface ProcessFailure {
  readonly scope: "texts" | "provider"
  readonly problem: string
}

type Done = (result: ReadonlyArray<Float32Array> | ProcessFailure) => void

interface Request {
  readonly texts: ReadonlyArray<string>
  readonly vectors: Array<Float32Array>
  readonly done: Done
  tries: number
}

interface ProcessOptions {
  readonly idleMs?: number | undefined
  readonly textMs?: number | undefined
  readonly crashWindowMs?: number | undefined
  /** The program of the process. */
  readonly program?: string | undefined
}

const decodeReport = Schema.decodeUnknownOption(Schema.fromJsonString(EmbeddingReport))

const STOPPING: ProcessFailure = { scope: "provider", problem: "choird is stopping" }

/** A process that waits, or loads what nobody waits for any more, does not keep a program from ending. */
const letGo = (child: ChildProcess) => {
  child.unref()
  for (const stream of [child.stdin, child.stdout])
    if (stream !== null && "unref" in stream && typeof stream.unref === "function") stream.unref()
}

/** Serves requests text by text, the one with the fewest texts left first, so that a question never waits for a whole batch. */
export class EmbeddingProcess {
  readonly #idleMs: number
  readonly #textMs: number
  readonly #crashWindowMs: number
  readonly #program: string
  readonly #requests = new Set<Request>()
  /** The times of crashes, the oldest first. */
  readonly #crashes: Array<number> = []
  #lastProblem = ""
  #child: ChildProcess | undefined
  #isReady = false
  #current: Request | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor({ crashWindowMs, idleMs, program, textMs }: ProcessOptions = {}) {
    this.#idleMs = idleMs ?? LOCAL_IDLE_MS
    this.#textMs = textMs ?? LOCAL_TEXT_MS_MAX
    this.#crashWindowMs = crashWindowMs ?? LOCAL_CRASH_WINDOW_MS
    this.#program = program ?? builtProgram("embedding-worker")
  }

  /** The process that has the model loaded, or loads it. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Calls `done` once; never after the function that it returns was called. */
  embed(texts: ReadonlyArray<string>, done: Done): () => void {
    const request = { texts, vectors: [], done, tries: 0 }
    if (texts.length === 0) done([])
    else if (this.#closed) done(STOPPING)
    else {
      this.#requests.add(request)
      this.#next()
    }
    return () => void this.#requests.delete(request)
  }

  /** Ends the process in the middle of what it does. */
  async close(): Promise<void> {
    this.#closed = true
    this.#fail(STOPPING)
    const child = this.#stop()
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.ref()
    await once(child, "exit")
  }

  #next() {
    const isLoading = this.#child !== undefined && !this.#isReady
    if (this.#current !== undefined || isLoading) return
    clearTimeout(this.#timer)
    const left = ({ texts, vectors }: Request) => texts.length - vectors.length
    const [request] = [...this.#requests].sort((a, b) => left(a) - left(b))
    if (request === undefined) {
      this.#timer = setTimeout(() => this.#stop(), this.#idleMs).unref()
    } else if (this.#child !== undefined) this.#order(request)
    else if (this.#rests()) {
      const problem = `its process broke ${LOCAL_CRASHES_MAX} times, so it waits: ${this.#lastProblem}`
      this.#fail({ scope: "provider", problem })
    } else {
      this.#timer = setTimeout(() => this.#crashed("it takes too long to load"), LOCAL_LOAD_MS_MAX)
      this.#start()
    }
  }

  #order(request: Request) {
    this.#current = request
    this.#timer = setTimeout(() => this.#crashed("it takes too long over a text"), this.#textMs)
    const text = (request.texts[request.vectors.length] ?? "").slice(0, EMBEDDING_TEXT_CHARS_MAX).toWellFormed()
    this.#child?.stdin?.write(`${JSON.stringify({ text } satisfies EmbeddingOrder)}\n`)
  }

  #rests(): boolean {
    const since = performance.now() - this.#crashWindowMs
    while ((this.#crashes[0] ?? Infinity) < since) this.#crashes.shift()
    return this.#crashes.length >= LOCAL_CRASHES_MAX
  }

  #start() {
    const child = startClosed({ program: this.#program, flags: FLAGS, folders: [MODEL] })
    this.#child = child
    const alive = () => this.#child === child
    const take = makeLines(EMBEDDING_REPORT_BYTES_MAX, (line) => {
      if (alive()) this.#take(Option.getOrUndefined(decodeReport(line)))
      return undefined
    })
    child.stdin?.on("error", () => undefined)
    child.stdout?.on("data", (chunk: Buffer) => {
      if (alive() && take(chunk) !== undefined) this.#crashed("it sent too long a report")
    })
    child.on("error", ({ message }) => alive() && this.#crashed(`its process does not start: ${message}`))
    child.on("close", (code, signal) => {
      if (alive()) this.#crashed(isOutOfMemory(code, signal) ? "it takes too much memory" : "its process has ended")
    })
    letGo(child)
  }

  #take(report: EmbeddingReport | undefined) {
    const request = this.#current
    switch (report?._tag) {
      case "Ready":
        this.#isReady = true
        return this.#next()
      case "Unusable":
        return this.#crashed(report.problem)
      case "Refused":
      case "Vector":
        if (request === undefined) return this.#crashed("it answered without an order")
        this.#current = undefined
        request.tries = 0
        if (report._tag === "Vector") request.vectors.push(Float32Array.from(report.values))
        else this.#finish(request, { scope: "texts", problem: report.problem })
        if (request.vectors.length === request.texts.length) this.#finish(request, request.vectors)
        return this.#next()
      case undefined:
        return this.#crashed("it sent something other than a report")
    }
  }

  /** A new process tries the text again, once; it may have been the text, and others must not wait for it. */
  #crashed(problem: string) {
    const wasReady = this.#isReady
    const request = this.#current
    this.#current = undefined
    this.#stop()
    this.#crashes.push(performance.now())
    this.#lastProblem = problem
    if (!wasReady) this.#fail({ scope: "provider", problem: `it cannot be loaded: ${problem}` })
    else if (request !== undefined) {
      request.tries += 1
      if (request.tries >= LOCAL_TRIES_MAX) this.#finish(request, { scope: "texts", problem })
    }
    this.#next()
  }

  #finish(request: Request, result: ReadonlyArray<Float32Array> | ProcessFailure) {
    if (this.#requests.delete(request)) request.done(result)
  }

  #fail(failure: ProcessFailure) {
    // Those that come while these are answered wait for the next process.
    const failing = Array.from(this.#requests)
    for (const request of failing) this.#finish(request, failure)
  }

  /** Answers the process that it ends. */
  #stop(): ChildProcess | undefined {
    clearTimeout(this.#timer)
    const child = this.#child
    this.#child = undefined
    this.#isReady = false
    if (child !== undefined) endClosed(child)
    return child
  }
}
