/** The state of a page as the browser itself has it: its address, its title, and where a key would go. */
import { Schema } from "effect"
import type { Page } from "playwright-core"
import { inIsolatedWorld } from "./isolatedWorld.ts"

const TITLE_CHARS_MAX = 300

/** An element may have the name of a property of its document: the prototype has the true one. */
const STATE = `(() => {
  const own = (name) => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document)
  const frames = [HTMLIFrameElement, HTMLFrameElement, HTMLObjectElement, HTMLEmbedElement]
  let at = own("activeElement")
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
  const isPage = !at || at === own("body") || at === own("documentElement")
  const focus = isPage ? "page" : frames.some((each) => at instanceof each) ? "frame" : "element"
  return { address: location.href, title: own("title").slice(0, ${TITLE_CHARS_MAX}), focus }
})()`

const PageState = Schema.Struct({
  address: Schema.String,
  title: Schema.String,
  /** Where a key would go: to the page itself, into a frame of it, or to another element. */
  focus: Schema.Literals(["page", "frame", "element"])
})
export type PageState = typeof PageState.Type

const decode = Schema.decodeUnknownSync(PageState)

/** Rejects where the page does not say. */
export const pageState = async (page: Page): Promise<PageState> => {
  const { title, ...state } = decode(await inIsolatedWorld(page, STATE))
  return { ...state, title: title.toWellFormed() }
}
