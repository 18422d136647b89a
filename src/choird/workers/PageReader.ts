/**
 * Pages as Markdown, each read by a process of its own that ends with it: no page sees another, and none holds choird up. A thread would not do: where one
 * large allocation fails, V8 ends the whole process, whatever limit its thread has.
 */
import { fileURLToPath } from "node:url"
import { Context, Effect, Layer, Option, Schema, Semaphore } from "effect"
import { builtProgram, endClosed, isOutOfMemory, startClosed } from "#src/choird/runtime/closedProcess.ts"
import { readLines } from "./boundedLines.ts"
import { PageWaitFactor } from "./PageWaitFactor.ts"
import { type PageOrder, PageReport, type PageText, REPORT_BYTES_MAX } from "./pageProtocol.ts"

/** Reading one page or one PDF, once its process has started. */
const PAGE_MS_MAX = 2000
const PDF_MS_MAX = 10_000
/** The start of a process, on a machine that is busy. */
const START_MS_MAX = 20_000
/** The heap of a process. */
const PAGE_HEAP_MB_MAX = 256
/** All memory that it may write, with what a PDF unpacks beside the heap. */
const PAGE_MEMORY_MB_MAX = 640
/** Half of what its young objects may take. */
const PAGE_NURSERY_MB = 16
/** Its stack, below the 8 MiB that Linux gives a process. */
const PAGE_STACK_KB_MAX = 3500
/** Pages that are read at once, of all agents; further ones wait. */
const PAGES_READ_MAX = 2

const FLAGS = [
  `--max-old-space-size=${PAGE_HEAP_MB_MAX}`,
  `--max-semi-space-size=${PAGE_NURSERY_MB}`,
  `--stack-size=${PAGE_STACK_KB_MAX}`
]

/** A page that could not be read, in words for a model. */
export class PageUnreadable extends Schema.TaggedError<PageUnreadable>()("PageUnreadable", {
  problem: Schema.String,
  /** The address that the page names for its Markdown version. */
  markdown: Schema.optionalKey(Schema.String),
  /** The address of the page that it leads to by itself. */
  refresh: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    return `the page cannot be read: ${this.problem}`
  }
}

/** The addresses that a page names of other pages with what it means. */
type Offers = Pick<PageUnreadable, "markdown" | "refresh">

/** A page as text, and the addresses that it names. */
export type ReadPage = PageText & Offers

interface ReaderOptions {
  readonly pageMs?: number | undefined
  /** The program of the process. */
  readonly program?: URL | undefined
}

/** The programs of the build, by what they read. */
const programFor = ({ form }: PageOrder): string => builtProgram(form === "pdf" ? "pdf-worker" : "page-worker")

/** Reads pages. */
export class PageReader extends Context.Service<
  PageReader,
  {
    /** The text of a body as a site sent it. Fails when it takes more time or memory than a page may. */
    read(page: PageOrder, body: Uint8Array): Effect.Effect<ReadPage, PageUnreadable>
  }
>()("choir/choird/PageReader") {
  static readonly layer = (options: ReaderOptions = {}) =>
    Layer.effect(
      PageReader,
      Effect.gen(function* () {
        const turn = yield* Semaphore.make(PAGES_READ_MAX)
        const factor = yield* PageWaitFactor
        const given = options.program === undefined ? undefined : fileURLToPath(options.program)
        const readingOf = (page: PageOrder): Reading => ({
          program: given ?? programFor(page),
          pageMs: options.pageMs ?? factor * (page.form === "pdf" ? PDF_MS_MAX : PAGE_MS_MAX)
        })
        return PageReader.of({ read: (page, body) => turn.withPermit(readIn(readingOf(page), page, body)) })
      })
    )
}

const decodeReport = Schema.decodeUnknownOption(Schema.fromJsonString(PageReport))

interface Reading {
  readonly program: string
  readonly pageMs: number
}

const readIn = ({ pageMs, program }: Reading, page: PageOrder, body: Uint8Array) =>
  Effect.callback<ReadPage, PageUnreadable>((resume) => {
    const child = startClosed({ program, flags: FLAGS, memory_mb_max: PAGE_MEMORY_MB_MAX })
    const end = () => {
      clearTimeout(timer)
      endClosed(child)
    }
    // The process ends with any answer: one that is late would still work on its page, for as long as that pleases.
    let isAnswered = false
    let offered: Offers = {}
    const answer = (answered: Effect.Effect<ReadPage, PageUnreadable>) => {
      if (isAnswered) return
      isAnswered = true
      end()
      resume(answered)
    }
    const fail = (problem: string) => answer(Effect.fail(new PageUnreadable({ problem, ...offered })))
    let timer = setTimeout(() => fail("its process does not start"), START_MS_MAX)
    const begin = () => {
      clearTimeout(timer)
      timer = setTimeout(() => fail(`it takes more than ${pageMs} ms`), pageMs)
      child.stdin?.write(`${JSON.stringify(page)}\n`)
      child.stdin?.end(body)
    }
    const take = (line: string) => {
      const report = Option.getOrUndefined(decodeReport(line))
      if (report === undefined) fail("its process sent something other than a report")
      else if (report._tag === "Ready") begin()
      else if (report._tag === "Offers") {
        const { _tag, ...addresses } = report
        offered = addresses
      } else if (report._tag === "Read") answer(Effect.succeed({ ...report.page, ...offered }))
      else fail(report.problem)
    }
    child.stdin?.on("error", () => undefined)
    if (child.stdout) readLines(child.stdout, REPORT_BYTES_MAX, take, () => fail("its text is too long"))
    child.on("error", ({ message }) => fail(`its process does not start: ${message}`))
    child.on("close", (code, signal) =>
      fail(isOutOfMemory(code, signal) ? "it takes too much memory" : "its process ended")
    )
    return Effect.sync(end)
  }).pipe(Effect.withSpan("PageReader.read"))
