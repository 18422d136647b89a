/** Pages as Markdown, each read in a thread of its own that ends with it: no page sees another, and none holds choird up. */
import { extname } from "node:path"
import { Worker } from "node:worker_threads"
import { Context, Effect, Layer, Schema, Semaphore } from "effect"
import { PagePatience } from "./PagePatience.ts"
import type { PageOrder, PageReport, PageText } from "./pageProtocol.ts"

/** Reading one page, once its thread has started. */
const PAGE_MS_MAX = 2000
/** The start of a thread, on a machine that is busy. */
const START_MS_MAX = 20_000
/** The heap of a thread. */
const PAGE_HEAP_MB_MAX = 256
/** Pages that are read at once, of all agents; further ones wait. */
const PAGES_READ_MAX = 2

/** A page that could not be read, in words for a model. */
export class PageUnreadable extends Schema.TaggedError<PageUnreadable>()("PageUnreadable", { problem: Schema.String }) {
  override get message() {
    return `the page cannot be read: ${this.problem}`
  }
}

interface ReaderOptions {
  readonly pageMs?: number | undefined
  /** The program of the thread. */
  readonly program?: URL | undefined
}

// A neighbour of this file from source and compiled, and of the bundle that holds this file.
const WORKER = new URL(`./page-worker${extname(import.meta.url)}`, import.meta.url)

/** Reads pages. */
export class PageReader extends Context.Service<
  PageReader,
  {
    /** A page as Markdown. Fails when it takes more time or memory than a page may. */
    read(page: PageOrder): Effect.Effect<PageText, PageUnreadable>
  }
>()("choir/choird/PageReader") {
  static readonly layer = (options: ReaderOptions = {}) =>
    Layer.effect(
      PageReader,
      Effect.gen(function* () {
        const turn = yield* Semaphore.make(PAGES_READ_MAX)
        const pageMs = options.pageMs ?? PAGE_MS_MAX * (yield* PagePatience)
        return PageReader.of({ read: (page) => turn.withPermit(readIn({ ...options, pageMs }, page)) })
      })
    )
}

const startThread = (program: URL) =>
  new Worker(program, {
    name: "page",
    env: {},
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: PAGE_HEAP_MB_MAX, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 }
  })

/** The answer of a thread to a page, or why there is none. The thread may still be at work then. */
const answerOf = (worker: Worker, page: PageOrder, pageMs: number) =>
  Effect.callback<PageText, PageUnreadable>((resume) => {
    let timer: NodeJS.Timeout | undefined
    const end = (answer: Effect.Effect<PageText, PageUnreadable>) => {
      clearTimeout(timer)
      resume(answer)
    }
    const fail = (problem: string) => end(Effect.fail(new PageUnreadable({ problem })))
    timer = setTimeout(() => fail("its thread does not start"), START_MS_MAX)
    worker.on("message", (report: PageReport) => {
      if (report._tag === "Read") end(Effect.succeed(report.page))
      else if (report._tag === "Refused") fail(report.problem)
      else {
        clearTimeout(timer)
        timer = setTimeout(() => fail(`it takes more than ${pageMs} ms`), pageMs)
        worker.postMessage(page, [])
      }
    })
    worker.on("error", (error: NodeJS.ErrnoException) =>
      fail(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? "it takes too much memory" : "its thread broke")
    )
    worker.on("exit", () => fail("its thread ended"))
    return Effect.sync(() => clearTimeout(timer))
  })

/** The thread ends with the answer, whatever that is: one that still works on a hostile page takes a processor, then the whole process. */
const readIn = ({ pageMs, program = WORKER }: ReaderOptions & { readonly pageMs: number }, page: PageOrder) =>
  Effect.acquireUseRelease(
    Effect.sync(() => startThread(program)),
    (worker) => answerOf(worker, page, pageMs),
    (worker) => Effect.promise(() => worker.terminate())
  ).pipe(Effect.withSpan("PageReader.read"))
