/**
 * Pages as Markdown, each read by a process of its own that ends with it: no page sees another, and none holds choird up. A thread would not do: where one
 * large allocation fails, V8 ends the whole process, whatever limit its thread has.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { extname } from "node:path"
import { fileURLToPath } from "node:url"
import { Context, Effect, Layer, Option, Schema, Semaphore } from "effect"
import { dyingWith, HOST_PATH, signalGroup } from "#src/choird/runtime/HostProcess.ts"
import { readLines } from "./boundedLines.ts"
import { PageWaitFactor } from "./PageWaitFactor.ts"
import { type PageOrder, PageReport, type PageText, REPORT_BYTES_MAX } from "./pageProtocol.ts"

/** Reading one page, once its process has started. */
const PAGE_MS_MAX = 2000
/** The start of a process, on a machine that is busy. */
const START_MS_MAX = 20_000
/** The heap of a process. */
const PAGE_HEAP_MB_MAX = 256
/** Half of what its young objects may take. */
const PAGE_NURSERY_MB = 16
/** Its stack, below the 8 MiB that Linux gives a process. */
const PAGE_STACK_KB_MAX = 3500
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
  /** The program of the process. */
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
        const pageMs = options.pageMs ?? PAGE_MS_MAX * (yield* PageWaitFactor)
        return PageReader.of({ read: (page) => turn.withPermit(readIn({ ...options, pageMs }, page)) })
      })
    )
}

const decodeReport = Schema.decodeUnknownOption(Schema.fromJsonString(PageReport))

/** A process that has no core dump, no environment to look at, and no longer life than choird. */
const startProcess = (program: URL): ChildProcess => {
  const node = [
    process.execPath,
    `--max-old-space-size=${PAGE_HEAP_MB_MAX}`,
    `--max-semi-space-size=${PAGE_NURSERY_MB}`,
    `--stack-size=${PAGE_STACK_KB_MAX}`,
    fileURLToPath(program)
  ]
  const [shell = "", ...args] = dyingWith(process.pid, ["sh", "-c", 'ulimit -c 0; exec "$@"', "sh", ...node])
  const cache = process.env["NODE_COMPILE_CACHE"]
  return spawn(shell, args, {
    stdio: ["pipe", "pipe", "ignore"],
    detached: true,
    env: { PATH: HOST_PATH, ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: cache }) }
  })
}

const kill = ({ pid }: ChildProcess) => {
  if (pid !== undefined) signalGroup(pid, "SIGKILL")
}

const readIn = ({ pageMs, program = WORKER }: ReaderOptions & { readonly pageMs: number }, page: PageOrder) =>
  Effect.callback<PageText, PageUnreadable>((resume) => {
    const child = startProcess(program)
    const end = () => {
      clearTimeout(timer)
      kill(child)
    }
    // The process ends with any answer: one that is late would still work on its page, for as long as that pleases.
    let isAnswered = false
    const answer = (answered: Effect.Effect<PageText, PageUnreadable>) => {
      if (isAnswered) return
      isAnswered = true
      end()
      resume(answered)
    }
    const fail = (problem: string) => answer(Effect.fail(new PageUnreadable({ problem })))
    let timer = setTimeout(() => fail("its process does not start"), START_MS_MAX)
    const take = (line: string) => {
      const report = Option.getOrUndefined(decodeReport(line))
      if (report === undefined) fail("its process sent something other than a report")
      else if (report._tag === "Read") answer(Effect.succeed(report.page))
      else if (report._tag === "Refused") fail(report.problem)
      else {
        clearTimeout(timer)
        timer = setTimeout(() => fail(`it takes more than ${pageMs} ms`), pageMs)
        child.stdin?.end(JSON.stringify(page))
      }
    }
    child.stdin?.on("error", () => undefined)
    if (child.stdout) readLines(child.stdout, REPORT_BYTES_MAX, take, () => fail("its text is too long"))
    child.on("error", ({ message }) => fail(`its process does not start: ${message}`))
    // V8 ends a process by this signal when its heap is full.
    child.on("close", (_code, signal) => fail(signal === "SIGABRT" ? "it takes too much memory" : "its process ended"))
    return Effect.sync(end)
  }).pipe(Effect.withSpan("PageReader.read"))
