/** The frame that an element is in, as the browser has it: a tree of a part of a page does not show it. */
import type { Frame, Page } from "playwright-core"
import { siteOf } from "./webAddress.ts"

/** Frames in frames that are looked at. */
const FRAMES_MAX = 16

export interface Around {
  /** The host of the frame's address, or of what wrote it; none where the element is in the page itself. */
  readonly frame: string | undefined
  /** The addresses of the frame and of all around it. */
  readonly addresses: ReadonlyArray<string>
}

/** The element is in no frame. */
export const NOT_FRAMED: Around = { frame: undefined, addresses: [] }

/** A frame without an address of its own is written by the one around it; one with data belongs to no host. */
const hostOf = (frame: Frame): string => {
  let at: Frame | null = frame
  for (let up = 0; at !== null && up <= FRAMES_MAX; up++) {
    const address = at.url()
    const host = siteOf(address)
    if (host !== undefined) return host
    if (address !== "" && !address.startsWith("about:")) return address.slice(0, address.indexOf(":") + 1)
    at = at.parentFrame()
  }
  return "unknown"
}

/** Of the element of a ref; `undefined` where there is no such element any more. */
export const frameAround = async (page: Page, ref: string): Promise<Around | undefined> => {
  const [handle, ...others] = await page.getByRef(ref).elementHandles()
  if (handle === undefined || others.length > 0) return undefined
  const owner = await handle.ownerFrame().finally(() => handle.dispose())
  if (owner === null) return undefined
  const addresses: Array<string> = []
  for (let at: Frame | null = owner; at !== null && at !== page.mainFrame(); at = at.parentFrame()) {
    if (addresses.length === FRAMES_MAX) return undefined
    addresses.push(at.url())
  }
  return addresses.length === 0 ? NOT_FRAMED : { frame: hostOf(owner), addresses }
}
