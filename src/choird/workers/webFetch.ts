/** The host tool `choir.web.fetch`: a page of the public web as text, in parts that fit a prompt. */
import { Effect, Option, Result } from "effect"
import { failed, type HostOutcome, makeHostTool } from "#src/choird/hosttools/HostTool.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { withoutUnseen } from "#src/shared/text/unseenCharacters.ts"
import { FETCH_TOOL, FetchInput, type FetchedPart, UNASKED } from "#src/shared/web/hostQueries.ts"
import { PageReader, type PageUnreadable } from "./PageReader.ts"
import type { PageOrder } from "./pageProtocol.ts"
import { textPart } from "./textPart.ts"
import { pageAddress } from "./webAddress.ts"
import { type DialRefused, WebDialer } from "./WebDialer.ts"
import { type Fetched, FetchRefused, fetchPage } from "./webRequest.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** A whole call: several requests and the page's thread. */
const FETCH_MS_MAX = 30_000
/** Pages that are kept for further parts, of all agents. */
const PAGES_KEPT_MAX = 16
/** How long a page is kept, so that its parts belong together. */
const PAGE_KEPT_MS = 600_000

const WANTED = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
const MARKDOWN = "text/markdown, text/plain;q=0.9"
const IS_TEXT = /^(?:text\/[\w.+-]+|application\/(?:[\w.+-]+\+)?(?:json|xml|yaml|javascript|toml|sql|graphql))$/u
/** The kinds that a refusal names. What follows could be any words of the site. */
const KIND = /^(audio|font|image|video)\//u
const IS_HTML = /^(?:text\/html|application\/xhtml\+xml)$/u
const IS_PDF = /^application\/(?:x-)?pdf$/u
const PDF_START = "%PDF-"
/** Sites of documentation, which often have the page as Markdown beside it. */
const IS_DOCUMENTATION = /^docs?\.|\/(?:docs?|guides?|reference|manual|learn)(?:\/|$)/u

interface Page {
  readonly url: string
  readonly title: string
  readonly text: string
}

interface KeptPage {
  readonly page: Page
  readonly at_ms: number
}

const isMarkdown = ({ content_type, status }: Fetched) =>
  status === 200 && (content_type === "text/markdown" || content_type === "text/plain")

/** Where a site offers a page as Markdown: where the page says so, or beside it. */
const markdownAddress = (named: string | undefined, { url }: Fetched): URL | undefined => {
  const offered = named === undefined ? undefined : pageAddress(named, url.href)
  if (typeof offered === "object" && offered.host === url.host) return offered
  const isPlace = IS_DOCUMENTATION.test(url.host) || IS_DOCUMENTATION.test(url.pathname)
  if (!isPlace || url.search !== "" || url.pathname === "/" || /\.\w{1,5}$/u.test(url.pathname)) return undefined
  const beside = new URL(url)
  beside.hash = ""
  beside.pathname = `${url.pathname.replace(/\/+$/u, "")}.md`
  return beside
}

const read = Effect.fnUntraced(function* ({ body, charset, encoding, url }: Fetched, form: PageOrder["form"]) {
  return yield* (yield* PageReader).read({ url: url.href, form, encoding, charset }, body)
})

/** The Markdown that the site has of an HTML page; `undefined` where it has none, which does not fail the fetch. */
const offeredMarkdown = Effect.fnUntraced(function* (named: string | undefined, fetched: Fetched) {
  const address = markdownAddress(named, fetched)
  if (address === undefined) return undefined
  const found = yield* Effect.option(fetchPage(address, MARKDOWN))
  if (found._tag === "None" || !isMarkdown(found.value)) return undefined
  return Option.getOrUndefined(yield* Effect.option(read(found.value, "markdown")))
})

/** The kind of an answer's body, by its type or, where that says nothing, by its beginning. */
const formOf = ({ body, content_type }: Fetched): PageOrder["form"] => {
  if (IS_PDF.test(content_type) || body.toString("latin1", 0, PDF_START.length) === PDF_START) return "pdf"
  if (IS_HTML.test(content_type)) return "html"
  return IS_TEXT.test(content_type) ? "text" : "unknown"
}

/** An answer that may be text. */
const answerAt = Effect.fnUntraced(function* (address: URL, at?: URL) {
  const fetched = yield* fetchPage(address, WANTED, at)
  const { content_type, status } = fetched
  if (status < 200 || status > 299) return yield* new FetchRefused({ problem: `${address.host} answered ${status}` })
  const kind = KIND.exec(content_type)?.[1]
  if (kind !== undefined)
    return yield* new FetchRefused({ problem: `${address.host} answered with ${kind} data, not with text` })
  return fetched
})

/** The page that another one leads to by itself; `undefined` for one that leads to itself. */
const refreshAddress = (refresh: string | undefined, { url }: Fetched, first: URL) => {
  if (refresh === undefined) return Effect.succeed(undefined)
  const next = pageAddress(refresh, url.href)
  if (typeof next === "string")
    return Effect.fail(new FetchRefused({ problem: `${first.host} leads to an address that is not a web page's` }))
  return Effect.succeed(next.href.replace(/#.*/u, "") === url.href.replace(/#.*/u, "") ? undefined : next)
}

/** Loads a page. @param at where it has led to by itself: it is followed once. */
const load: (
  address: URL,
  at?: URL
) => Effect.Effect<Page, FetchRefused | DialRefused | PageUnreadable, WebDialer | PageReader> = Effect.fnUntraced(
  function* (address, at) {
    const fetched = yield* answerAt(address, at)
    const form = formOf(fetched)
    const page = yield* Effect.result(read(fetched, form))
    const { markdown: named, refresh } = Result.isSuccess(page) ? page.success : page.failure
    const next = at === undefined ? yield* refreshAddress(refresh, fetched, address) : undefined
    if (next !== undefined) return yield* load(address, next)
    const offered = form === "html" ? yield* offeredMarkdown(named, fetched) : undefined
    const { text, title } = offered ?? (yield* Effect.fromResult(page))
    return { url: fetched.url.href, text, title }
  }
)

const partOf = ({ text, title, url }: Page, offset: number): HostOutcome => {
  if (offset > 0 && offset >= text.length)
    return failed("error", `the page has ${text.length} characters: offset is too large`)
  const part: FetchedPart = { url, ...(title === "" ? {} : { title }), ...textPart(text, offset) }
  return { status: "success", output: { ...part } }
}

/** A page that was refused before anything left this machine. */
const unasked = (error: string): HostOutcome => ({ status: "error", output: { error, ...UNASKED } })

const NOTHING = "the page has no text: its content may be made by scripts, which choir-web-browse runs"

const NOT_KEPT =
  "this page is no longer kept: fetch it without offset, then continue with the next_offset of that answer"

/** The tool. Pages are kept for a short while for their further parts, each for the session that asked. */
export const webFetch = Effect.gen(function* () {
  const context = yield* Effect.context<WebDialer | PageReader>()
  const kept = new BoundedMap<string, KeptPage>(PAGES_KEPT_MAX)
  const fetch = Effect.fn("webFetch.fetch")(
    function* (session_id: string, address: URL, offset: number) {
      const key = `${session_id} ${address.href}`
      const now = yield* monotonicMs
      const known = kept.get(key)
      // A part is of the page whose address a person may have been asked about, and so never another request to its site.
      if (offset > 0)
        return known !== undefined && now - known.at_ms < PAGE_KEPT_MS
          ? partOf(known.page, offset)
          : failed("error", NOT_KEPT)
      const loaded = yield* load(address)
      const page = { ...loaded, text: withoutUnseen(loaded.text).toWellFormed() }
      kept.set(key, { page, at_ms: now })
      return page.text.trim() === "" ? failed("error", NOTHING) : partOf(page, offset)
    },
    Effect.catch((error) =>
      Effect.succeed(
        error._tag === "DialRefused" && error.isUnasked ? unasked(error.message) : failed("error", error.message)
      )
    ),
    Effect.provide(context)
  )
  return makeHostTool({
    name: FETCH_TOOL,
    effect: "none",
    timeout_ms: FETCH_MS_MAX,
    input: FetchInput,
    run: ({ offset = 0, url }, { session_id }) => {
      const address = pageAddress(url)
      return typeof address === "string" ? Effect.succeed(unasked(address)) : fetch(session_id, address, offset)
    }
  })
})
