/** Questions to a page that its scripts cannot answer: in a world of their own, where what the page overrides is as it was. */
import type { Page } from "playwright-core"

/** Evaluates an expression of Choir's own in the page's main frame; only what is small may be asked for. */
export const inIsolatedWorld = async (page: Page, expression: string): Promise<unknown> => {
  const session = await page.context().newCDPSession(page)
  try {
    const { frameTree } = await session.send("Page.getFrameTree")
    const { executionContextId: contextId } = await session.send("Page.createIsolatedWorld", {
      frameId: frameTree.frame.id
    })
    const { result } = await session.send("Runtime.evaluate", { contextId, expression, returnByValue: true })
    return result.value
  } finally {
    await session.detach().catch(() => undefined)
  }
}
