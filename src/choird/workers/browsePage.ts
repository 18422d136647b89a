/** One action of `choir.web.browse` in an agent's tabs, answered with the page as it is then. */
import { Effect, Option } from "effect"
import type { Page } from "playwright-core"
import type { HostCall } from "#src/choird/hosttools/HostTool.ts"
import { withoutUnseen } from "#src/shared/text/unseenCharacters.ts"
import { actsOnPage, type Browsed, type BrowseInput } from "#src/shared/web/hostQueries.ts"
import { ActionFailed } from "./ActionFailed.ts"
import type { Tabs } from "./Tabs.ts"
import { inIsolatedWorld } from "./isolatedWorld.ts"
import { PageReader } from "./PageReader.ts"
import { pageState } from "./pageState.ts"
import { isGone, type Target } from "./ShownPages.ts"
import { textPart } from "./textPart.ts"
import { pageAddress } from "./webAddress.ts"

/** Characters of a page's HTML that is read. */
const HTML_CHARS_MAX = 5 * 1024 * 1024
/** A screenshot, so that an answer holds it in base64. */
const PICTURE_BYTES_MAX = 480 * 1024
/** The page's text, or null if it is too large to be sent here. */
const HTML = `(() => { const html = document.documentElement?.outerHTML ?? ""; return html.length > ${HTML_CHARS_MAX} ? null : html })()`

const refuse = (problem: string) => new ActionFailed({ problem, is_unknown: false })

const needs = <A>(value: A | undefined, words: string) =>
  value === undefined ? Effect.fail(refuse(words)) : Effect.succeed(value)

/** Addresses in a snapshot as they can be opened: whole, and of the web. */
const withWholeAddresses = (snapshot: string, base: string): string =>
  snapshot.replaceAll(/^(\s*- \/url: )(.+)$/gmu, (line: string, before: string, written: string) => {
    const url = URL.parse(written.replace(/^"(.*)"$/u, "$1"), base)
    return url === null ? line : before + url.href.slice(0, 2048)
  })

interface Look extends Pick<Browsed, "text" | "next_offset" | "chars_total" | "picture"> {
  /** The tree of the whole page as Playwright wrote it, also where a part of it was asked for. */
  readonly tree?: string
}

const snapshotOf = Effect.fnUntraced(function* (browser: Tabs, page: Page, input: BrowseInput) {
  const { depth, offset = 0, ref } = input
  const options = { mode: "ai" as const, timeout: browser.lookMs }
  const levels = depth === undefined ? options : { ...options, depth }
  const named = input.action === "snapshot" ? ref : undefined
  const taken = yield* Effect.result(
    Effect.gen(function* () {
      // A part does not say what a frame around it is, nor all that is in an element.
      const tree = yield* browser.step((signal) => page.ariaSnapshot({ ...options, signal }))
      if (named === undefined && depth === undefined) return { tree, part: tree }
      const part = yield* browser.step((signal) =>
        named === undefined
          ? page.ariaSnapshot({ ...levels, signal })
          : page.getByRef(named).ariaSnapshot({ ...levels, signal })
      )
      return { tree, part }
    })
  )
  if (taken._tag === "Failure")
    return yield* taken.failure.is_unknown
      ? refuse("the page is too large or too busy to be shown; read may work, or open another page")
      : taken.failure
  const { part, tree } = taken.success
  return {
    ...textPart(withoutUnseen(withWholeAddresses(part, page.url())), input.action === "snapshot" ? offset : 0),
    tree
  } satisfies Look
})

const pictureOf = Effect.fnUntraced(function* (browser: Tabs, page: Page, ref: string | undefined) {
  for (const quality of [70, 40, 15]) {
    const options = { type: "jpeg", quality, animations: "disabled" } as const
    const bytes = yield* browser.step(() =>
      ref === undefined ? page.screenshot(options) : page.getByRef(ref).screenshot(options)
    )
    if (bytes.length <= PICTURE_BYTES_MAX) return { picture: bytes.toString("base64") }
  }
  return yield* refuse("the screenshot is too large: name a ref, for a part of the page")
})

const textOf = Effect.fnUntraced(function* (browser: Tabs, page: Page, offset: number) {
  const { read } = yield* PageReader
  const html = yield* browser.brief(() => inIsolatedWorld(page, HTML))
  if (typeof html !== "string") return yield* refuse("the page is larger than 5 MiB: take a snapshot of a part")
  const { text } = yield* Effect.mapError(
    read({ url: page.url(), form: "html", charset: "utf-8" }, Buffer.from(html)),
    ({ message }) => refuse(message)
  )
  return textPart(text, offset)
})

/** Fails unless the page is as it was shown to those who decided on this. */
const check = Effect.fnUntraced(function* (browser: Tabs, page: Page, target: Target) {
  const [snapshot, state] = yield* Effect.mapError(
    Effect.all([
      browser.step((signal) => page.ariaSnapshot({ mode: "ai", timeout: browser.lookMs, signal })),
      browser.brief(() => pageState(page))
    ]),
    ({ problem }) => refuse(`what is on the page now could not be seen, so nothing was done: ${problem}`)
  )
  yield* browser.shown.stillAs(target, { ...state, page, site: browser.siteIn(page), snapshot })
})

/** Does the action; what was acted on, if it was an element. */
const act = Effect.fnUntraced(function* (browser: Tabs, input: BrowseInput, call: HostCall | undefined) {
  const { action, close = false, key, ref, submit = false, tab, text, url, values } = input
  if (action === "open") {
    const address = pageAddress(yield* needs(url, "open needs a url"))
    if (typeof address === "string") return yield* refuse(address)
    yield* browser.open(address.href)
    return undefined
  }
  if (action === "tabs") {
    if (tab !== undefined) yield* browser.choose(tab, close)
    return undefined
  }
  const page = yield* browser.page
  if (action === "back") {
    yield* browser.step(() => page.goBack({ waitUntil: "domcontentloaded" }))
    return undefined
  }
  if (!actsOnPage(action)) return undefined
  if (action === "press" && ref === undefined) {
    const pressed = yield* needs(key, "press needs a key")
    yield* check(browser, page, yield* browser.shown.target(input, call))
    yield* browser.acting(() => page.keyboard.press(pressed))
    return "keyboard"
  }
  yield* needs(ref, `${action} needs a ref of the newest snapshot`)
  const target = yield* browser.shown.target(input, call)
  const named = yield* needs(target.ref, `${action} needs a ref of the newest snapshot`)
  const { element, locator } = yield* Effect.mapError(browser.element(page, named), () => isGone(target))
  // A page that keeps its element from being clicked does so before it is looked at, and not between the look and the click.
  if (action === "click") yield* Effect.ignore(browser.step((signal) => element.click({ trial: true, signal })))
  yield* check(browser, page, target)
  if (action === "click") yield* browser.acting((signal) => element.click({ signal, timeout: browser.clickMs }))
  else if (action === "type") {
    const typed = yield* needs(text, "type needs a text")
    yield* browser.acting((signal) => element.fill(typed, { signal }))
    if (submit)
      yield* Effect.mapError(
        browser.step((signal) => element.press("Enter", { signal })),
        ({ problem }) => new ActionFailed({ problem: `the text was typed, then: ${problem}`, is_unknown: true })
      )
  } else if (action === "select") {
    const chosen = yield* needs(values, "select needs values")
    yield* browser.acting((signal) => element.selectOption([...chosen], { signal }))
  } else {
    const pressed = yield* needs(key, "press needs a key")
    yield* browser.acting((signal) => element.press(pressed, { signal }))
  }
  return locator
})

const look = Effect.fnUntraced(function* (browser: Tabs, page: Page, input: BrowseInput) {
  if (input.action === "screenshot") return (yield* pictureOf(browser, page, input.ref)) satisfies Look
  if (input.action === "read") return (yield* textOf(browser, page, input.offset ?? 0)) satisfies Look
  return (yield* snapshotOf(browser, page, input)) satisfies Look
})

/** Does one action; fails with a problem in words for a model. */
export const browsePage = Effect.fnUntraced(function* (browser: Tabs, input: BrowseInput, call: HostCall | undefined) {
  browser.takeNotes()
  const locator = yield* act(browser, input, call)
  const { count, current } = browser.tabs
  if (count === 0) return { url: "", title: "", tab: "none is open" } satisfies Browsed
  const page = yield* browser.page
  yield* browser.settle(page)
  const seen = yield* Effect.result(look(browser, page, input))
  const state = Option.getOrUndefined(yield* Effect.option(browser.brief(() => pageState(page))))
  const notes = browser.takeNotes()
  const { tree, ...shown }: Look = seen._tag === "Success" ? seen.success : {}
  if (tree !== undefined && state !== undefined)
    browser.shown.showed({ ...state, page, site: browser.siteIn(page), snapshot: tree })
  else if (tree !== undefined || seen._tag === "Failure") browser.shown.showed(undefined)
  const done: Browsed = {
    url: page.url(),
    title: withoutUnseen(state?.title ?? ""),
    tab: `${current} of ${count}`,
    ...(locator === undefined ? {} : { locator }),
    ...(notes.length === 0 ? {} : { notes }),
    sites: browser.sitesOf(page)
  }
  if (seen._tag === "Success") return { ...done, ...shown } satisfies Browsed
  // The action is done; only its page cannot be shown.
  return locator === undefined
    ? yield* seen.failure
    : ({ ...done, notes: [...notes, seen.failure.message] } satisfies Browsed)
})
