/** A page without the words that nobody who looks at it sees, by its attributes and its own styles. Styles of other files are not fetched. */
import { type StyledElement, StyleSheet } from "#src/shared/web/styleSheet.ts"
import { FIRST_LOOK, isSeen, type Look, lookOf } from "#src/shared/web/visibility.ts"

/** The part of the DOM that is used here. */
export interface PageNode {
  readonly nodeType: number
  readonly nodeName: string
  readonly textContent: string | null
  readonly childNodes: Iterable<PageNode>
  getAttribute?(name: string): string | null
  removeAttribute?(name: string): void
  remove(): void
}

const ELEMENT = 1
const TEXT = 3

interface Styled extends StyledElement {
  readonly look: Look
}

const stylesIn = (styles: Iterable<PageNode>): string =>
  Array.from(styles, (style) => {
    const media = style.getAttribute?.("media") ?? null
    const text = style.textContent ?? ""
    return media === null ? text : `@media ${media} {${text}}`
  }).join("\n")

const elementOf = (node: PageNode, parent: Styled | undefined): StyledElement => ({
  tag: node.nodeName.toLowerCase(),
  parent,
  attribute: (name) => node.getAttribute?.(name) ?? undefined
})

/** Removes them from a page. @param styles the `style` elements of its document. */
export const removeUnseen = (root: PageNode, styles: Iterable<PageNode>): void => {
  const sheet = new StyleSheet(stylesIn(styles))
  const walk = (node: PageNode, parent: Styled | undefined) => {
    const element = elementOf(node, parent)
    const look = lookOf(element, parent?.look ?? FIRST_LOOK, sheet)
    // Within it everything is gone, whatever its own style says.
    if (look.isGone) return node.remove()
    // What is left is seen, so that nobody behind has to guess by the style.
    node.removeAttribute?.("style")
    const styled: Styled = { ...element, look }
    for (const child of Array.from(node.childNodes)) {
      if (child.nodeType === TEXT && !isSeen(look)) child.remove()
      else if (child.nodeType === ELEMENT) walk(child, styled)
    }
  }
  walk(root, undefined)
}
