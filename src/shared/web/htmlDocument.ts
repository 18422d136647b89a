/**
 * A document of HTML as browsers build it: parse5 repairs what is broken as the standard says, and linkedom is the DOM. A fault in either is that of the
 * closed process which reads one page or one mail.
 */
import { parseHTML } from "linkedom"
import { type DefaultTreeAdapterTypes, html as names, parse } from "parse5"

/** The parts of the DOM that are used; the project has no types of browsers. */
export interface HtmlNode {
  readonly nodeType: number
  readonly nodeName: string
  readonly parentNode: HtmlNode | null
  readonly childNodes: Iterable<HtmlNode>
  textContent: string | null
  appendChild(node: HtmlNode): void
  remove(): void
}
export interface HtmlElement extends HtmlNode {
  readonly children: Iterable<HtmlElement>
  readonly parentNode: HtmlElement | null
  getAttribute(name: string): string | null
  setAttribute(name: string, value: string): void
  removeAttribute(name: string): void
  closest(selector: string): HtmlElement | null
  matches(selector: string): boolean
  querySelector(selector: string): HtmlElement | null
  querySelectorAll(selector: string): Iterable<HtmlElement>
  replaceWith(...nodes: ReadonlyArray<HtmlNode | string>): void
  cloneNode(isDeep: boolean): HtmlElement
}
export interface HtmlDocument extends HtmlElement {
  readonly documentElement: HtmlElement
  readonly head: HtmlElement
  readonly body: HtmlElement
  createElement(tag: string): HtmlElement
  createElementNS(namespace: string, tag: string): HtmlElement
  createTextNode(text: string): HtmlNode
  cloneNode(isDeep: boolean): HtmlDocument
}

export const ELEMENT_NODE = 1
export const TEXT_NODE = 3

/** Elements within elements; what is deeper is put beside, as browsers do from 512 on. */
const DEPTH_MAX = 200

type Parsed = DefaultTreeAdapterTypes.ChildNode
type ParsedElement = DefaultTreeAdapterTypes.Element

const isElement = (node: Parsed): node is ParsedElement => "tagName" in node

/** A shadow tree that is written in the page: browsers show it in place of what its host holds. */
const isShadow = (node: ParsedElement): boolean =>
  node.tagName === "template" && node.attrs.some(({ name }) => name === "shadowrootmode")

const childrenOf = (node: ParsedElement): ReadonlyArray<Parsed> =>
  isShadow(node) && "content" in node ? (node as DefaultTreeAdapterTypes.Template).content.childNodes : node.childNodes

/** The words in an element, on one line. */
export const wordsIn = (node: HtmlNode): string => (node.textContent ?? "").replace(/\s+/gu, " ").trim()

const elementFor = (document: HtmlDocument, { attrs, namespaceURI, tagName }: ParsedElement): HtmlElement => {
  const made =
    namespaceURI === names.NS.HTML ? document.createElement(tagName) : document.createElementNS(namespaceURI, tagName)
  for (const { name, value } of attrs) made.setAttribute(name, value)
  return made
}

/** Puts the children of what was parsed into the document, without calling itself: an author may nest them without an end. */
const copyInto = (document: HtmlDocument, root: ParsedElement, target: HtmlElement): void => {
  const open: Array<{ readonly from: Iterator<Parsed>; readonly into: HtmlElement }> = [
    { from: childrenOf(root)[Symbol.iterator](), into: target }
  ]
  for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
    const { done, value: node } = top.from.next()
    if (done === true) open.pop()
    else if (node.nodeName === "#text" && "value" in node) top.into.appendChild(document.createTextNode(node.value))
    else if (isElement(node)) {
      const isDeep = open.length >= DEPTH_MAX
      const from = childrenOf(node)[Symbol.iterator]()
      // So deep only the words count, and what says how they look.
      if (isDeep && node.attrs.length === 0 && node.childNodes.length > 0) open.push({ from, into: top.into })
      else {
        const made = elementFor(document, node)
        top.into.appendChild(made)
        open.push({ from, into: isDeep ? top.into : made })
      }
    }
  }
}

/** The content of a host goes to the slots of its shadow tree; without a slot it is not shown. */
const fillSlots = (shadow: HtmlElement, host: HtmlElement): void => {
  const own = Array.from(host.childNodes).filter((node) => node !== shadow)
  const slotOf = (node: HtmlNode): string =>
    node.nodeType === ELEMENT_NODE ? ((node as HtmlElement).getAttribute("slot") ?? "") : ""
  for (const slot of Array.from(shadow.querySelectorAll("slot"))) {
    const fitting = own.filter((node) => slotOf(node) === (slot.getAttribute("name") ?? ""))
    if (fitting.some((node) => wordsIn(node) !== "")) slot.replaceWith(...fitting)
    else slot.replaceWith(...Array.from(slot.childNodes))
  }
  for (const node of own) if (node.parentNode === host) node.remove()
  shadow.replaceWith(...Array.from(shadow.childNodes))
}

/** The document of a text of HTML, with its shadow trees in their places. */
export const htmlDocument = (html: string): HtmlDocument => {
  const parsed = parse(html, { sourceCodeLocationInfo: false })
  const { document } = parseHTML("<!doctype html><html><head></head><body></body></html>") as unknown as {
    readonly document: HtmlDocument
  }
  const root = parsed.childNodes.find(isElement)
  for (const { name, value } of root?.attrs ?? []) document.documentElement.setAttribute(name, value)
  for (const part of root?.childNodes ?? [])
    if (isElement(part) && (part.tagName === "head" || part.tagName === "body")) {
      const target = document[part.tagName]
      for (const { name, value } of part.attrs) target.setAttribute(name, value)
      copyInto(document, part, target)
    }
  // The innermost ones first: a slot may hold a host.
  const shadows = Array.from(document.body.querySelectorAll("template[shadowrootmode]")).toReversed()
  for (const shadow of shadows) if (shadow.parentNode !== null) fillSlots(shadow, shadow.parentNode)
  return document
}
