/** A page or a mail without the words that nobody who looks at it sees, by its attributes and its own styles. Styles of other files are not fetched. */
import { ELEMENT_NODE, type HtmlDocument, type HtmlElement, type HtmlNode, TEXT_NODE } from "./htmlDocument.ts"
import { type StyledElement, StyleSheet } from "./styleSheet.ts"
import { FIRST_LOOK, isSeen, type Look, lookOf } from "./visibility.ts"

interface Styled extends StyledElement {
  readonly look: Look
}

const stylesIn = (styles: Iterable<HtmlElement>): string =>
  Array.from(styles, (style) => {
    const media = style.getAttribute("media")
    const text = style.textContent ?? ""
    return media === null ? text : `@media ${media} {${text}}`
  }).join("\n")

const elementOf = (node: HtmlElement, parent: Styled | undefined): StyledElement => ({
  tag: node.nodeName.toLowerCase(),
  parent,
  attribute: (name) => node.getAttribute(name) ?? undefined
})

/** Elements whose line ends are kept without a style. */
const VERBATIM = new Set(["pre", "textarea"])

/** A text whose style shows its line ends, with elements for them, since nobody behind knows the style. */
const withLineEnds = (document: HtmlDocument, text: HtmlNode): ReadonlyArray<HtmlNode> =>
  (text.textContent ?? "")
    .split("\n")
    .flatMap((line, index) =>
      index === 0 ? [document.createTextNode(line)] : [document.createElement("br"), document.createTextNode(line)]
    )

/** Removes them from a document, and its styles. */
export const removeUnseen = (document: HtmlDocument): void => {
  const sheet = new StyleSheet(stylesIn(document.querySelectorAll("style")))
  const look = (text: HtmlNode, { look, tag }: Styled) => {
    if (!isSeen(look)) text.remove()
    else if (look.keepsLines && !VERBATIM.has(tag) && (text.textContent ?? "").includes("\n"))
      (text as HtmlElement).replaceWith(...withLineEnds(document, text))
  }
  const walk = (node: HtmlElement, parent: Styled | undefined) => {
    const element = elementOf(node, parent)
    const own = lookOf(element, parent?.look ?? FIRST_LOOK, sheet)
    // Within it everything is gone, whatever its own style says.
    if (own.isGone) return node.remove()
    // What is left is visible, so later steps need not look at the style.
    node.removeAttribute("style")
    const styled: Styled = { ...element, look: own }
    for (const child of Array.from(node.childNodes)) {
      if (child.nodeType === TEXT_NODE) look(child, styled)
      else if (child.nodeType === ELEMENT_NODE) walk(child as HtmlElement, styled)
    }
  }
  walk(document.documentElement, undefined)
}
