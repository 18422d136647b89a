/** The process of one agent's browser: it starts Chromium, then does each order, and ends with Chromium or with choird. */
import { type Context, Effect, type Fiber, Layer, Option, Schema } from "effect"
import type { BrowserContext, Browser } from "playwright-core"
import { ActionFailed } from "./ActionFailed.ts"
import { readLines } from "./boundedLines.ts"
import {
  BrowserOrder,
  BrowserReport,
  BrowserStart,
  HELD_ADDRESS_CHARS_MAX,
  ORDER_BYTES_MAX,
  REPORT_BYTES_MAX
} from "./browserProtocol.ts"
import { browsePage } from "./browsePage.ts"
import { CHROMIUM_FLAGS } from "#src/shared/web/chromiumFlags.ts"
import { PageWaitFactor } from "./PageWaitFactor.ts"
import { PageReader } from "./PageReader.ts"
import { Tabs } from "./Tabs.ts"
import { logDeath } from "#src/shared/background.ts"
import { HOST_PATH } from "#src/choird/runtime/HostProcess.ts"

/** From the start of Chromium until it answers, on a machine that is busy. */
const LAUNCH_MS_MAX = 60_000
interface RunningChromium {
  readonly browser: Browser
  /** Whether Chromium's own sandbox is around its pages. */
  readonly isSandboxed: boolean
}

const start = ({ program, proxy }: BrowserStart, chromiumSandbox: boolean) =>
  Effect.tryPromise({
    try: async () => {
      const { chromium } = await import("playwright-core")
      return await chromium.launch({
        executablePath: program,
        chromiumSandbox,
        headless: true,
        args: [...CHROMIUM_FLAGS],
        // What belongs to no page has no token, and gets nothing. `<-loopback>` sends loopback here as well.
        proxy: { server: proxy.server, bypass: "<-loopback>" },
        env: { PATH: HOST_PATH },
        handleSIGHUP: false,
        handleSIGINT: false,
        handleSIGTERM: false,
        timeout: LAUNCH_MS_MAX
      })
    },
    catch: (cause) => String(cause).split("\n", 1)[0] ?? ""
  })

/** Starts Chromium by Playwright; without its own sandbox only where it may. It ends with this process. Fails with the problem in words. */
const launchChromium = (order: BrowserStart): Effect.Effect<RunningChromium, string> => {
  const sandboxed = Effect.map(start(order, true), (browser) => ({ browser, isSandboxed: true }))
  const bare = Effect.map(start(order, false), (browser) => ({ browser, isSandboxed: false }))
  return order.may_be_bare ? Effect.catch(sandboxed, () => bare) : sandboxed
}

const CONTEXT = {
  acceptDownloads: false,
  serviceWorkers: "block",
  locale: "en-US",
  viewport: { width: 1280, height: 800 },
  reducedMotion: "reduce"
} as const

const encodeReport = Schema.encodeSync(Schema.fromJsonString(BrowserReport))
const decodeStart = Schema.decodeUnknownOption(Schema.fromJsonString(BrowserStart))
const decodeOrder = Schema.decodeUnknownOption(Schema.fromJsonString(BrowserOrder))

const report = (message: BrowserReport) => process.stdout.write(`${encodeReport(message)}\n`)

const leave = () => process.exit(0)

const open = Effect.fnUntraced(function* (start: BrowserStart) {
  const { browser, isSandboxed } = yield* launchChromium(start)
  browser.once("disconnected", leave)
  const context: BrowserContext = yield* Effect.tryPromise({
    try: () => browser.newContext({ ...CONTEXT, proxy: start.proxy }),
    catch: (cause) => String(cause).slice(0, 200)
  })
  context.once("close", leave)
  return { tabs: new Tabs(context, start.patience), isSandboxed }
})

const TOO_MUCH = new ActionFailed({
  problem: "the page is too large for one answer: ask for a part of it",
  is_unknown: false
})

/** A report that is within its limit. */
const fitting = (id: number, message: BrowserReport): BrowserReport =>
  Buffer.byteLength(encodeReport(message)) < REPORT_BYTES_MAX ? message : { _tag: "Failed", id, error: TOO_MUCH }

type Act = Extract<BrowserOrder, { readonly _tag: "Act" }>

const act = (tabs: Tabs, { call, id, input }: Act) =>
  tabs.inTurn(
    Effect.match(browsePage(tabs, input, call), {
      onSuccess: (done): BrowserReport => fitting(id, { _tag: "Acted", id, done }),
      onFailure: (error): BrowserReport => {
        const place = tabs.place(input.url)
        const { is_refused, is_unknown, problem } = error
        const known = {
          problem,
          is_unknown,
          ...(is_refused === undefined ? {} : { is_refused }),
          ...(place === undefined ? {} : { place })
        }
        return fitting(id, { _tag: "Failed", id, error: new ActionFailed(known) })
      }
    })
  )

/** The element that a call acts on, from what was shown. */
const hold = (tabs: Tabs, { call_id, id, input }: Extract<BrowserOrder, { readonly _tag: "Hold" }>) =>
  Effect.match(tabs.shown.hold(call_id, input), {
    onSuccess: ({ address, around: { frame }, element, ref, site, title }): BrowserReport => {
      const { name, role } = element
      const of = { ...(ref === undefined ? {} : { ref }), ...(frame === undefined ? {} : { frame }) }
      const at = address.slice(0, HELD_ADDRESS_CHARS_MAX).toWellFormed()
      return fitting(id, { _tag: "Held", id, held: { site, address: at, title, element: { role, name }, ...of } })
    },
    onFailure: (error): BrowserReport => ({ _tag: "Failed", id, error })
  })

/** The handler of each further line. */
const ordered = (tabs: Tabs, reader: Context.Context<PageReader>) => {
  const running = new Map<number, Fiber.Fiber<unknown>>()
  return (line: string): void => {
    const order = Option.getOrUndefined(decodeOrder(line))
    if (order === undefined) leave()
    else if (order._tag === "Cancel") running.get(order.id)?.interruptUnsafe()
    else {
      const { id } = order
      const work = order._tag === "Hold" ? hold(tabs, order) : act(tabs, order)
      const run = Effect.runFork(
        logDeath("an order to the browser")(Effect.provideContext(Effect.map(work, report), reader))
      )
      running.set(id, run)
      run.addObserver(() => running.delete(id))
    }
  }
}

/** Opens the browser of the first line; answers with the handler of the others. */
const serve = Effect.fnUntraced(
  function* (first: string, take: (line: (text: string) => void) => void) {
    const start = Option.getOrUndefined(decodeStart(first))
    if (start === undefined) return leave()
    const { isSandboxed, tabs } = yield* open(start)
    const reader = yield* Layer.build(Layer.provide(PageReader.layer(), Layer.succeed(PageWaitFactor, start.patience)))
    take(ordered(tabs, reader))
    report({ _tag: "Ready", is_sandboxed: isSandboxed })
    return yield* Effect.never
  },
  Effect.catch((problem) =>
    Effect.sync(() => process.stdout.write(`${encodeReport({ _tag: "Unusable", problem })}\n`, leave))
  ),
  Effect.scoped
)

let handle = (first: string): void => {
  const serving = serve(first, (next) => {
    handle = next
  })
  // choird opens the browser again when its program is gone.
  Effect.runFork(Effect.tapDefect(logDeath("the browser's program")(serving), () => Effect.sync(leave)))
}
readLines(process.stdin, ORDER_BYTES_MAX, (line) => handle(line), leave)
process.stdin.once("end", leave)
