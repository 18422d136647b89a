/**
 * The browsers of all agents: a Chromium for each session that has pages open, below a process of its own, which shares nothing with the others and
 * is gone with the session's epoch.
 */
import { Context, Effect, Exit, Fiber, Layer, RcRef, Scope, Semaphore } from "effect"
import type { CallId, SessionId } from "#schema/Ids.ts"
import { logDeath } from "#src/shared/background.ts"
import { chromiumProgram } from "#src/shared/web/chromium.ts"
import type { BrowseInput } from "#src/shared/web/hostQueries.ts"
import { counted } from "#src/shared/text/counts.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { ActionFailed } from "./ActionFailed.ts"
import { type AgentBrowser, openAgentBrowser } from "./AgentBrowser.ts"
import { BrowserUnavailable } from "./BrowserProcess.ts"
import type { Held } from "./browserProtocol.ts"
import { WebDialer } from "./WebDialer.ts"
import { openWebProxy } from "./WebProxy.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Sessions that have a browser at once; each takes some 520 MB and its pages. */
export const BROWSERS_MAX = 8
/** How long a browser stays that nobody uses: longer than a person has to approve what it is to do. */
export const BROWSER_IDLE_MS_MAX = 3_600_000

/** Gives each session its browser. */
export class BrowserWorker extends Context.Service<
  BrowserWorker,
  {
    /** The session's browser: opened at the first use, gone with `epoch`, when it is killed, or when nobody uses it for long. */
    of(session_id: SessionId, epoch: Scope.Scope): Effect.Effect<AgentBrowser, BrowserUnavailable>
    /** The element that a call of a session acts on, for the person who is asked about it: that, or nothing, is acted on once it is approved. */
    hold(session_id: SessionId, call_id: CallId, input: BrowseInput): Effect.Effect<Held, ActionFailed>
    /** The browsers in words for an operator: how many run, and whether Chromium's own sandbox is around their pages. */
    readonly status: Effect.Effect<string>
  }
>()("choir/choird/BrowserWorker") {
  static readonly layer = Layer.effect(
    BrowserWorker,
    Effect.suspend(() => make())
  )
}

/** A session's browser, which may still be on its way. */
interface Entry {
  readonly scope: Scope.Closeable
  readonly opening: Fiber.Fiber<AgentBrowser, BrowserUnavailable>
  browser: AgentBrowser | undefined
  isSandboxed: boolean
}

/** Waits until nobody has used a browser for long. */
const isIdle = Effect.fnUntraced(function* (browser: AgentBrowser) {
  while (true) {
    const left_ms = browser.used_ms + BROWSER_IDLE_MS_MAX - (yield* monotonicMs)
    if (left_ms <= 0 && !browser.isBusy) return
    yield* Effect.sleep(Math.max(left_ms, 1000))
  }
})

const holdIn = (browser: AgentBrowser | undefined, call_id: CallId, input: BrowseInput) =>
  browser === undefined || browser.isClosed
    ? Effect.fail(new ActionFailed({ problem: "no page is open: open one first", is_unknown: false }))
    : browser.hold(call_id, input)

const statusText = (entries: ReadonlyArray<Entry>): string => {
  if (chromiumProgram() === undefined) return "Chromium is not installed"
  const running = entries.filter(({ browser }) => browser?.isClosed === false)
  if (running.length === 0) return "Chromium is installed, and starts when an agent browses"
  const agents = `${counted(running.length)} of at most ${BROWSERS_MAX} browsers`
  return running.every(({ isSandboxed }) => isSandboxed)
    ? `Chromium runs in its own sandbox: ${agents}`
    : `Chromium runs without its own sandbox, as a separate user: ${agents}`
}

const make = Effect.fnUntraced(function* () {
  const context = yield* Effect.context<Cgroups | WebDialer>()
  const all = yield* Effect.scope
  const one = yield* Semaphore.make(1)
  const proxy = yield* RcRef.make({ acquire: openWebProxy })
  const entries = new Map<SessionId, Entry>()

  const end = (session_id: SessionId, entry: Entry) =>
    Effect.suspend(() => {
      if (entries.get(session_id) === entry) entries.delete(session_id)
      return Scope.close(entry.scope, Exit.void)
    })

  /** Opens the browser of an entry, and ends the entry when the browser ends. */
  const open = Effect.fnUntraced(function* (session_id: SessionId, entry: () => Entry | undefined) {
    const opened = yield* Effect.mapError(
      RcRef.get(proxy),
      ({ message }) => new BrowserUnavailable({ problem: message, fix: "Free a port on the loopback interface" })
    ).pipe(Effect.flatMap(openAgentBrowser))
    const { browser, isSandboxed } = opened
    const mine = entry()
    if (mine === undefined) return browser
    mine.browser = browser
    mine.isSandboxed = isSandboxed
    const ending = Effect.forkIn(logDeath("the end of a browser")(end(session_id, mine)), all)
    yield* Effect.andThen(Effect.raceFirst(browser.ended, isIdle(browser)), ending).pipe(
      logDeath("the watch of a browser"),
      Effect.forkScoped
    )
    return browser
  })

  const begin = Effect.fnUntraced(function* (session_id: SessionId, epoch: Scope.Scope) {
    const known = entries.get(session_id)
    if (known?.browser?.isClosed === true) yield* end(session_id, known)
    else if (known !== undefined) return known
    if (entries.size >= BROWSERS_MAX)
      return yield* new BrowserUnavailable({
        problem: `${BROWSERS_MAX} agents already have a browser open, which is the maximum`,
        fix: "Stop one of them"
      })
    const scope = yield* Scope.fork(all)
    let entry: Entry | undefined
    const opening = yield* open(session_id, () => entry).pipe(
      Scope.provide(scope),
      Effect.provide(context),
      Effect.onError(() =>
        entry === undefined ? Effect.void : Effect.forkIn(logDeath("the end of a browser")(end(session_id, entry)), all)
      ),
      Effect.forkIn(scope)
    )
    entry = { scope, opening, browser: undefined, isSandboxed: true }
    entries.set(session_id, entry)
    yield* Scope.addFinalizer(epoch, end(session_id, entry))
    return entry
  }, Effect.uninterruptible)

  return BrowserWorker.of({
    status: Effect.sync(() => statusText([...entries.values()])),
    hold: (session_id, call_id, input) => holdIn(entries.get(session_id)?.browser, call_id, input),
    of: (session_id, epoch) =>
      Effect.flatMap(one.withPermit(begin(session_id, epoch)), ({ opening }) => Fiber.join(opening))
  })
})
