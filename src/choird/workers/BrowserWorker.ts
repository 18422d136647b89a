/**
 * The browser of all agents: one Chromium, which runs while an agent has pages open, and a context for each session that shares nothing with the
 * others and is gone with the session's epoch.
 */
import { Context, Effect, Exit, Layer, Redacted, Scope, Semaphore } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { chromiumProgram } from "#src/shared/web/chromium.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { AgentBrowser } from "./AgentBrowser.ts"
import { BrowserUnavailable, launchChromium, type RunningChromium } from "./Chromium.ts"
import { PagePatience } from "./PagePatience.ts"
import { WebDialer } from "./WebDialer.ts"
import { openWebProxy, type WebProxy } from "./WebProxy.ts"

/** Sessions that have a browser at once; each takes some 65 MB and its pages. */
const CONTEXTS_MAX = 16

const CONTEXT = {
  acceptDownloads: false,
  serviceWorkers: "block",
  locale: "en-US",
  viewport: { width: 1280, height: 800 },
  reducedMotion: "reduce"
} as const

/** Gives each session its browser. */
export class BrowserWorker extends Context.Service<
  BrowserWorker,
  {
    /** The session's browser: opened at the first use, gone with `epoch`, or when Chromium ends. */
    of(session_id: SessionId, epoch: Scope.Scope): Effect.Effect<AgentBrowser, BrowserUnavailable>
    /** The browser in words for an operator: whether it runs, and whether Chromium's own sandbox is around its pages. */
    readonly status: Effect.Effect<string>
  }
>()("choir/choird/BrowserWorker") {
  static readonly layer = Layer.effect(
    BrowserWorker,
    Effect.suspend(() => make())
  )
}

interface Running {
  readonly chromium: RunningChromium
  readonly proxy: WebProxy
  readonly scope: Scope.Closeable
  readonly contexts: Map<SessionId, AgentBrowser>
}

const make = Effect.fnUntraced(function* () {
  const patience = yield* PagePatience
  const context = yield* Effect.context<Cgroups | WebDialer>()
  const one = yield* Semaphore.make(1)
  let running: Running | undefined

  const launch = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const parts = Effect.gen(function* () {
      const proxy = yield* Effect.mapError(
        openWebProxy,
        ({ message }) => new BrowserUnavailable({ problem: message, fix: "Free a port of loopback" })
      )
      return { proxy, chromium: yield* launchChromium(proxy.url) }
    })
    const opened = yield* Scope.provide(parts, scope).pipe(
      Effect.provide(context),
      Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
    )
    const started: Running = { ...opened, scope, contexts: new Map() }
    running = started
    return started
  })

  const stop = (which: Running) =>
    Effect.suspend(() => {
      if (running === which) running = undefined
      return Scope.close(which.scope, Exit.void)
    })

  /** The Chromium that runs; one that was killed is cleared away first. */
  const current = Effect.gen(function* () {
    if (running?.chromium.browser.isConnected() === true) return running
    if (running !== undefined) yield* stop(running)
    return yield* launch
  })

  const open = Effect.fnUntraced(function* (session_id: SessionId, epoch: Scope.Scope) {
    const which = yield* current
    const known = which.contexts.get(session_id)
    if (known !== undefined && !known.isClosed) return known
    if (which.contexts.size >= CONTEXTS_MAX)
      return yield* new BrowserUnavailable({
        problem: `${CONTEXTS_MAX} agents have a browser`,
        fix: "Stop one of them"
      })
    const scope = yield* Scope.fork(which.scope)
    const lease = yield* Scope.provide(which.proxy.lease, scope)
    const made = yield* Effect.tryPromise({
      try: () =>
        which.chromium.browser.newContext({
          ...CONTEXT,
          proxy: { server: which.proxy.url, username: lease.username, password: Redacted.value(lease.password) }
        }),
      catch: (cause) => new BrowserUnavailable({ problem: String(cause).slice(0, 200), fix: "Try again" })
    }).pipe(Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause))))
    const browser = new AgentBrowser(made, lease, patience)
    which.contexts.set(session_id, browser)
    const end = Effect.gen(function* () {
      yield* Scope.close(scope, Exit.void)
      yield* Effect.promise(() => browser.close())
      if (which.contexts.get(session_id) === browser) which.contexts.delete(session_id)
      if (which.contexts.size === 0) yield* stop(which)
    })
    yield* Scope.addFinalizer(epoch, one.withPermit(end))
    return browser
  }, Effect.uninterruptible)

  yield* Effect.addFinalizer(() =>
    one.withPermit(Effect.suspend(() => (running === undefined ? Effect.void : stop(running))))
  )
  const status = Effect.sync(() => {
    if (chromiumProgram() === undefined) return "Chromium is not installed"
    if (running?.chromium.browser.isConnected() === true)
      return running.chromium.isSandboxed
        ? "Chromium runs in its own sandbox"
        : "Chromium runs without its own sandbox, as a user of its own"
    return "Chromium is installed and does not run; choirctl doctor tries its sandbox"
  })
  return BrowserWorker.of({ status, of: (session_id, epoch) => one.withPermit(open(session_id, epoch)) })
})
