/** The tabs of one agent, in the process of its browser: one action at a time, and what happened beside the action, in words. */
import { stripVTControlCharacters } from "node:util"
import { Effect, Schedule, Semaphore } from "effect"
import type { BrowserContext, Locator, Page } from "playwright-core"
import { ActionFailed } from "./ActionFailed.ts"
import { frameAround } from "./frameAround.ts"
import { longNames } from "./longNames.ts"
import { ShownPages } from "./ShownPages.ts"
import { siteOf } from "./webAddress.ts"

/** Tabs of one agent. */
const TABS_MAX = 5
/** Loading a page until its document is there. */
const OPEN_MS_MAX = 30_000
/** How long a page that is there may still load before it is looked at. */
const SETTLE_MS_MAX = 2000
/** An action on an element, which has to be there and take it. */
const ACTION_MS_MAX = 8000
/** A click on an element that has just shown that it takes one. */
const CLICK_MS_MAX = 1000
/** Looking at a page; one that is made to be large does not end. */
const LOOK_MS_MAX = 10_000
/** Tries to open an address while the page of an earlier one is still on its way. */
const OPENINGS_MAX = 20
/** The pause before another attempt. */
const OPENING_PAUSE_MS = 100
/** Notes of one action. */
const NOTES_MAX = 8
const NOTE_CHARS_MAX = 200
/** Chromium's words for a page that the proxy refused or cut. */
const REFUSED = /net::ERR_(?:TUNNEL_CONNECTION_FAILED|INVALID_RESPONSE|EMPTY_RESPONSE|HTTP_RESPONSE_CODE_FAILURE)/u
/** Playwright's words where a page of an earlier address took the place of the wanted one. */
const INTERRUPTED = "is interrupted by another navigation"

const failed = (problem: string) => new ActionFailed({ problem, is_unknown: false })

const GONE = failed("the browser ended, and all its tabs with it: open the page again")

/** The first line of Playwright's error, without its terminal colours and the call's name. */
const problemOf = (cause: unknown): ActionFailed => {
  const text = cause instanceof Error ? cause.message : String(cause)
  if (/has been closed|crashed|Connection closed|disconnected/iu.test(text)) return GONE
  const [line = ""] = text.split("\n", 1)
  const words = stripVTControlCharacters(line)
    .replace(/^\w+\.\w+: /u, "")
    .slice(0, NOTE_CHARS_MAX)
  if (/Timeout \d+ms exceeded/iu.test(words))
    return new ActionFailed({ problem: "the page did not respond in time", is_unknown: true })
  return new ActionFailed({ problem: words.toWellFormed(), is_unknown: false, is_refused: REFUSED.test(words) })
}

/** Hosts that a tab remembers; beyond them it only says that there were more. */
const SITES_MAX = 32

export class Tabs {
  readonly #context: BrowserContext
  readonly #waitFactor: number
  readonly #turn = Semaphore.makeUnsafe(1)
  readonly #tabs: Array<Page> = []
  readonly #sites = new WeakMap<Page, Set<string>>()
  #current: Page | undefined
  #notes: Array<string> = []
  readonly shown = new ShownPages({
    frameAround: (page, ref) => this.brief(() => frameAround(page, ref)),
    longNames: (page, ref) => this.brief(() => longNames(page, ref, this.lookMs))
  })

  /** @param waitFactor how often each wait may take its limit: 1, or more on a machine that is known to be slow. */
  constructor(context: BrowserContext, waitFactor: number) {
    this.#context = context
    this.#waitFactor = waitFactor
    context.setDefaultTimeout(ACTION_MS_MAX * waitFactor)
    context.setDefaultNavigationTimeout(OPEN_MS_MAX * waitFactor)
    context.on("page", (page) => this.#opened(page))
  }

  /** The number of open tabs, and of the one that actions are of, from 1 on. */
  get tabs(): { readonly count: number; readonly current: number } {
    return {
      count: this.#tabs.length,
      current: this.#current === undefined ? 0 : this.#tabs.indexOf(this.#current) + 1
    }
  }

  /** The words about events of the page since they were taken last. */
  takeNotes(): ReadonlyArray<string> {
    const notes = this.#notes
    this.#notes = []
    return notes
  }

  /** The hosts of what was in a tab since an address was opened there, sorted. */
  sitesOf(page: Page): ReadonlyArray<string> {
    for (const frame of page.frames()) this.#visited(page, frame.url())
    return [...(this.#sites.get(page) ?? [])].toSorted()
  }

  /** One action after the other. */
  inTurn<A, E, R>(action: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return this.#turn.withPermit(action)
  }

  /** Runs a step of Playwright; its own limits and the signal end it. */
  step<A>(run: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, ActionFailed> {
    return Effect.tryPromise({ try: run, catch: problemOf })
  }

  /** Runs a step that acts on a page. Where the browser ends in the middle of it, it is unknown whether the page received it. */
  acting<A>(run: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, ActionFailed> {
    return Effect.mapError(this.step(run), (error) =>
      error === GONE
        ? new ActionFailed({
            problem: `${GONE.problem}. It is unknown whether the page received this action`,
            is_unknown: true
          })
        : error
    )
  }

  /** Runs a step that is short on any page that is not stuck. */
  brief<A>(run: () => Promise<A>): Effect.Effect<A, ActionFailed> {
    return Effect.timeoutOrElse(this.step(run), {
      duration: this.lookMs,
      orElse: () => Effect.fail(new ActionFailed({ problem: "the page did not respond in time", is_unknown: true }))
    })
  }

  /** The address and the hosts of the current tab, and else of the address that was to be opened. */
  place(opened: string | undefined): { readonly url: string; readonly sites: ReadonlyArray<string> } | undefined {
    const page = this.#current
    const asked = opened === undefined ? undefined : siteOf(opened)
    const sites = page === undefined || page.isClosed() ? [] : this.sitesOf(page)
    const all = asked === undefined || sites.includes(asked) ? sites : [...sites, asked]
    return all.length === 0 ? undefined : { url: opened ?? page?.url() ?? "", sites: all }
  }

  /** The tab that actions are of. */
  readonly page: Effect.Effect<Page, ActionFailed> = Effect.suspend(() =>
    this.#current === undefined || this.#current.isClosed()
      ? Effect.fail(failed("no page is open: open one first"))
      : Effect.succeed(this.#current)
  )

  /** The element of a ref of the newest snapshot, and words that find it again. Fails at once where there is none. */
  element(
    page: Page,
    ref: string
  ): Effect.Effect<{ readonly element: Locator; readonly locator: string }, ActionFailed> {
    const element = page.getByRef(ref)
    return Effect.map(
      this.step(() => element.normalize()),
      (normalized) => ({ element, locator: String(normalized).slice(0, 500).toWellFormed() })
    )
  }

  /** The host of a page's address; of a page without one, the hosts that wrote it. */
  siteIn(page: Page): string {
    return siteOf(page.url()) ?? this.sitesOf(page).join(", ")
  }

  /** Goes to an address, in a new tab where none is open. */
  open(url: string): Effect.Effect<void, ActionFailed> {
    return Effect.gen({ self: this }, function* () {
      // Playwright gives a new tab no limit of its own.
      const page = this.#current ?? (yield* this.brief(() => this.#context.newPage()))
      this.#current = page
      this.#sites.set(page, new Set())
      const go = this.step(() => page.goto(url, { waitUntil: "domcontentloaded" }))
      // Chromium's own page about an address that failed may still be on its way, and is in the way of the next one.
      yield* Effect.retry(go, {
        times: OPENINGS_MAX,
        schedule: Schedule.spaced(OPENING_PAUSE_MS),
        while: ({ problem }) => problem.includes(INTERRUPTED)
      })
    })
  }

  /** Milliseconds for a look at a page. */
  get lookMs(): number {
    return LOOK_MS_MAX * this.#waitFactor
  }

  /** Milliseconds for a click on an element that takes clicks. */
  get clickMs(): number {
    return CLICK_MS_MAX * this.#waitFactor
  }

  /** Waits a little for a page that still loads; it is looked at anyway. */
  settle(page: Page): Effect.Effect<void> {
    return Effect.ignore(this.step(() => page.waitForLoadState("load", { timeout: SETTLE_MS_MAX })))
  }

  /** Makes a tab the current one, or closes it. */
  choose(number: number, close: boolean): Effect.Effect<void, ActionFailed> {
    return Effect.gen({ self: this }, function* () {
      const page = this.#tabs[number - 1]
      if (page === undefined) return yield* failed(`there is no tab ${number}; there are ${this.#tabs.length}`)
      if (close) yield* this.step(() => page.close())
      else this.#current = page
    })
  }

  #visited(page: Page, address: string) {
    const site = siteOf(address)
    const sites = this.#sites.get(page) ?? new Set()
    if (site !== undefined) sites.add(sites.size < SITES_MAX ? site : "?")
    this.#sites.set(page, sites)
  }

  #note(words: string) {
    if (this.#notes.length < NOTES_MAX) this.#notes.push(words.slice(0, NOTE_CHARS_MAX).toWellFormed())
  }

  #opened(page: Page) {
    if (this.#tabs.length >= TABS_MAX) {
      this.#note(`a further tab was closed: there are at most ${TABS_MAX}`)
      void page.close().catch(() => undefined)
      return
    }
    this.#tabs.push(page)
    // A page without an address of its own is written by the one that opened it.
    if (this.#current !== undefined) this.#sites.set(page, new Set(this.#sites.get(this.#current)))
    page.on("framenavigated", (frame) => this.#visited(page, frame.url()))
    if (this.#current !== undefined) this.#note("the page opened a new tab, which is now the current one")
    this.#current = page
    page.on("dialog", (dialog) => {
      this.#note(`the page showed a dialog, which was dismissed: ${dialog.message()}`)
      // To dismiss the question whether to leave would keep the page for ever.
      void (dialog.type() === "beforeunload" ? dialog.accept() : dialog.dismiss()).catch(() => undefined)
    })
    page.on("filechooser", () => this.#note("the page asked for a file, which it does not get"))
    page.on("download", (download) => {
      this.#note("the page offered a download, which was refused; choir-web-fetch reads text files")
      void download.cancel().catch(() => undefined)
    })
    page.on("crash", () => {
      this.#note("the page crashed, and its tab was closed")
      void page.close().catch(() => undefined)
    })
    page.once("close", () => {
      this.#tabs.splice(this.#tabs.indexOf(page), 1)
      if (this.#current === page) this.#current = this.#tabs.at(-1)
    })
  }
}
