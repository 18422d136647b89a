/** The browser of one agent as choird has it: orders to its process, and what it reports. */
import { Deferred, Effect, Exit, Option, Redacted, Schema, type Scope } from "effect"
import type { CallId } from "#schema/Ids.ts"
import type { HostCall } from "#src/choird/hosttools/HostTool.ts"
import type { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { actsOnPage, type Browsed, type BrowseInput } from "#src/shared/web/hostQueries.ts"
import { ActionFailed } from "./ActionFailed.ts"
import { readLines } from "./boundedLines.ts"
import { type BrowserProcess, BrowserUnavailable, SANDBOX_FIX, startBrowserProcess } from "./BrowserProcess.ts"
import { BrowserOrder, BrowserReport, BrowserStart, type Held, REPORT_BYTES_MAX } from "./browserProtocol.ts"
import type { ProxyLease } from "./ProxyLeases.ts"
import { PageWaitFactor } from "./PageWaitFactor.ts"
import type { WebProxy } from "./WebProxy.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** From the start of the process until it has a page to open, on a machine that is busy. */
const START_MS_MAX = 90_000
/** Notes of one answer. */
const NOTES_MAX = 8
/** An answer from the memory of the process, which may just then read a large page. */
const HOLD_MS_MAX = 10_000

const decodeReport = Schema.decodeUnknownOption(Schema.fromJsonString(BrowserReport))
const encodeOrder = Schema.encodeSync(Schema.fromJsonString(BrowserOrder))
const encodeStart = Schema.encodeSync(Schema.fromJsonString(BrowserStart))

const gone = (acted: boolean) =>
  new ActionFailed({
    problem: `the browser ended, and all its tabs with it: open the page again${acted ? ". It is unknown whether the page received this action" : ""}`,
    is_unknown: acted
  })

/** Actions after which another page may load. */
const mayLoad = (action: string) => action === "open" || action === "back" || actsOnPage(action)

type Answer = Exclude<BrowserReport, { readonly _tag: "Ready" | "Unusable" }>

/** An order that waits for its report. */
interface Waiting {
  readonly answer: Deferred.Deferred<Answer, ActionFailed>
  readonly acts: boolean
}

export class AgentBrowser {
  readonly #process: BrowserProcess
  readonly #lease: ProxyLease
  readonly #waiting = new Map<number, Waiting>()
  readonly #ended = Deferred.makeUnsafe<void>()
  readonly #ready = Deferred.makeUnsafe<boolean, string>()
  #orders = 0
  /** When it was used last, by the clock for spans. */
  used_ms = 0

  constructor(process: BrowserProcess, lease: ProxyLease) {
    this.#process = process
    this.#lease = lease
    const { child } = process
    if (child.stdout !== null)
      readLines(
        child.stdout,
        REPORT_BYTES_MAX,
        (line) => this.#reported(line),
        () => this.#end()
      )
    child.stdin?.on("error", () => this.#end())
    child.once("error", () => this.#end()).once("exit", () => this.#end())
  }

  /** Whether its process runs no more. */
  get isClosed(): boolean {
    return Deferred.isDoneUnsafe(this.#ended)
  }

  get isBusy(): boolean {
    return this.#waiting.size > 0
  }

  /** Waits until its process ends. */
  get ended(): Effect.Effect<void> {
    return Deferred.await(this.#ended)
  }

  /** Starts Chromium; whether it runs in its own sandbox. */
  begin(start: BrowserStart): Effect.Effect<boolean, string> {
    return Effect.suspend(() => {
      this.#process.child.stdin?.write(`${encodeStart(start)}\n`)
      return Deferred.await(this.#ready)
    })
  }

  /** Does one action, after those that were ordered before; an interruption ends it. */
  act(input: BrowseInput, call: HostCall | undefined): Effect.Effect<Browsed, ActionFailed> {
    return Effect.gen({ self: this }, function* () {
      this.used_ms = yield* monotonicMs
      if (mayLoad(input.action)) this.#lease.renew()
      const id = ++this.#orders
      const order = BrowserOrder.cases.Act.make({ id, input, ...(call === undefined ? {} : { call }) })
      const answer = yield* Effect.onInterrupt(this.#ask(order, actsOnPage(input.action)), () =>
        Effect.sync(() => this.#order(BrowserOrder.cases.Cancel.make({ id })))
      )
      this.used_ms = yield* monotonicMs
      const refusals = this.#lease.refusals()
      if (answer._tag === "Failed") return yield* this.#because(answer.error, refusals[0])
      if (answer._tag !== "Acted") return yield* gone(actsOnPage(input.action))
      const { notes = [], ...done } = answer.done
      const all = [...notes, ...refusals.map((words) => `not loaded: ${words}`)].slice(0, NOTES_MAX)
      return { ...done, ...(all.length === 0 ? {} : { notes: all }) }
    })
  }

  /** The object of a call, for the person who is asked about it; it stays that. */
  hold(call_id: CallId, input: BrowseInput): Effect.Effect<Held, ActionFailed> {
    return Effect.gen({ self: this }, function* () {
      const id = ++this.#orders
      const order = BrowserOrder.cases.Hold.make({ id, call_id, input })
      const answer = yield* Effect.timeoutOrElse(this.#ask(order, false), {
        duration: HOLD_MS_MAX,
        orElse: () => Effect.fail(new ActionFailed({ problem: "the browser is busy: try again", is_unknown: false }))
      })
      return answer._tag === "Held" ? answer.held : yield* answer._tag === "Failed" ? answer.error : gone(false)
    })
  }

  #because(error: ActionFailed, refusal: string | undefined): ActionFailed {
    return error.is_refused === true && refusal !== undefined
      ? new ActionFailed({ ...fieldsOf(error), problem: refusal })
      : error
  }

  #ask(order: Exclude<BrowserOrder, { readonly _tag: "Cancel" }>, acts: boolean): Effect.Effect<Answer, ActionFailed> {
    return Effect.suspend(() => {
      if (this.isClosed) return Effect.fail(gone(false))
      const answer = Deferred.makeUnsafe<Answer, ActionFailed>()
      this.#waiting.set(order.id, { answer, acts })
      this.#order(order)
      return Effect.ensuring(
        Deferred.await(answer),
        Effect.sync(() => this.#waiting.delete(order.id))
      )
    })
  }

  #order(order: BrowserOrder) {
    if (!this.isClosed) this.#process.child.stdin?.write(`${encodeOrder(order)}\n`)
  }

  #reported(line: string) {
    const report = Option.getOrUndefined(decodeReport(line))
    if (report === undefined) return this.#end()
    if (report._tag === "Ready") Deferred.doneUnsafe(this.#ready, Exit.succeed(report.is_sandboxed))
    else if (report._tag === "Unusable") Deferred.doneUnsafe(this.#ready, Exit.fail(report.problem))
    else {
      const waiting = this.#waiting.get(report.id)
      if (waiting !== undefined) Deferred.doneUnsafe(waiting.answer, Exit.succeed(report))
    }
  }

  #end() {
    if (this.isClosed) return
    Deferred.doneUnsafe(this.#ended, Exit.void)
    Deferred.doneUnsafe(this.#ready, Exit.fail("its process ended"))
    for (const { acts, answer } of this.#waiting.values()) Deferred.doneUnsafe(answer, Exit.fail(gone(acts)))
  }
}

const fieldsOf = ({ is_unknown, place, problem }: ActionFailed) => ({
  problem,
  is_unknown,
  ...(place === undefined ? {} : { place })
})

/** Starts the browser of one agent; everything of it ends with the scope. */
export const openAgentBrowser = Effect.fn("AgentBrowser.open")(function* (
  proxy: WebProxy
): Effect.fn.Return<
  { readonly browser: AgentBrowser; readonly isSandboxed: boolean },
  BrowserUnavailable,
  Cgroups | Scope.Scope
> {
  const lease = yield* proxy.lease
  const process = yield* startBrowserProcess
  const browser = new AgentBrowser(process, lease)
  const start: BrowserStart = {
    program: process.script,
    may_be_bare: process.may_be_bare,
    proxy: { server: proxy.url, username: lease.username, password: Redacted.value(lease.password) },
    patience: yield* PageWaitFactor
  }
  const isSandboxed = yield* browser.begin(start).pipe(
    Effect.timeoutOrElse({ duration: START_MS_MAX, orElse: () => Effect.fail("it does not start in time") }),
    Effect.mapError((problem) => new BrowserUnavailable({ problem, fix: SANDBOX_FIX }))
  )
  browser.used_ms = yield* monotonicMs
  if (!isSandboxed)
    yield* Effect.logWarning(`Chromium runs without its own sandbox, as a separate user. ${SANDBOX_FIX}`)
  return { browser, isSandboxed }
})
