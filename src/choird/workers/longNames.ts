/** The names in an element that Playwright's tree in text leaves out: those of more than 900 characters. */
import type { Page } from "playwright-core"
import { sha256 } from "#src/shared/events/hashChain.ts"

/** Longer names are not in the text of a tree. */
const TREE_NAME_CHARS_MAX = 900
/** Characters of the first of them that are kept for a person. */
const FIRST_CHARS_MAX = 200

export interface LongNames {
  /** Of all of them, whole. */
  readonly digest: string
  /** The beginning of the first one; empty where no name is too long. */
  readonly first: string
}

/** Every node of a tree as JSON, in its order; without recursion, since a page decides how deep it is. */
function* nodesOf(tree: unknown): Generator<object> {
  const left: Array<unknown> = [tree]
  while (left.length > 0) {
    const node = left.pop()
    if (Array.isArray(node)) for (const each of node.toReversed()) left.push(each)
    else if (typeof node === "object" && node !== null) {
      yield node
      if ("children" in node) left.push(node.children)
    }
  }
}

/** The long names in the element of a ref, in a page's tree as JSON; `undefined` where the element is not in it. */
export const longNamesIn = (tree: unknown, ref: string): LongNames | undefined => {
  for (const element of nodesOf(tree)) {
    if (!("ref" in element) || element.ref !== ref) continue
    const names: Array<string> = []
    for (const node of nodesOf(element))
      if ("name" in node && typeof node.name === "string" && node.name.length > TREE_NAME_CHARS_MAX)
        names.push(node.name)
    const [first = ""] = names
    return { digest: sha256(JSON.stringify(names)), first: first.slice(0, FIRST_CHARS_MAX).toWellFormed() }
  }
  return undefined
}

/** Asks for the whole page: the refs that can be used are those of the newest look, and a look at a part would leave only its own. */
export const longNames = async (page: Page, ref: string, timeout: number): Promise<LongNames | undefined> =>
  longNamesIn(await page.ariaSnapshotJSON({ mode: "ai", timeout }), ref)
