/** The page and the element that a call in the browser acts on, as choird's own browser showed them, for the person who is asked. */
import { Effect, Option, Schema } from "effect"
import type { ConfirmTool } from "#schema/Approval.ts"
import type { CallId, SessionId } from "#schema/Ids.ts"
import { actsOnPage, BROWSE_TOOL, BrowseInput } from "#src/shared/web/hostQueries.ts"
import { BrowserWorker } from "#src/choird/workers/BrowserWorker.ts"
import type { Held } from "#src/choird/workers/browserProtocol.ts"
import { refused } from "./ApprovalRefused.ts"
import { visibleJson } from "./approvalText.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** Characters of what a page wrote about itself. */
const SITE_CHARS_MAX = 253
const PATH_CHARS_MAX = 160
const TITLE_CHARS_MAX = 80
const NAME_CHARS_MAX = 120

/** Words of a page in quotes, on one line, in which every character can be seen. */
const quoted = (text: string, chars_max: number): string =>
  visibleJson(text.length <= chars_max ? text : `${firstPart(text, chars_max - 1)}…`)

/** The part of an address after its host; all of an address of another kind. */
const pathOf = (address: string): string => {
  const url = URL.parse(address)
  return url?.protocol === "http:" || url?.protocol === "https:" ? `${url.pathname}${url.search}${url.hash}` : address
}

/** Two lines of facts. Pure. */
export const pageText = ({ address, element, frame, site, title, ref }: Held): string => {
  const path = quoted(pathOf(address), PATH_CHARS_MAX)
  const where = frame === undefined ? "" : ` in a frame of ${quoted(frame, SITE_CHARS_MAX)}`
  const focus = ref === undefined ? ", which has the focus" : ""
  return [
    `page: ${site === "" ? "without an address" : quoted(site, SITE_CHARS_MAX)}, path ${path}, titled ${quoted(title, TITLE_CHARS_MAX)}`,
    `element: ${element.role} ${quoted(element.name, NAME_CHARS_MAX)}${where}${focus}`
  ].join("\n")
}

const decodeInput = Schema.decodeUnknownOption(BrowseInput)

export const makePageFacts = Effect.map(BrowserWorker, (worker) =>
  /** The facts of a call that acts on a page; `undefined` for any other call. Refused where there is nothing that it could act on. */
  Effect.fnUntraced(function* (session_id: SessionId, call_id: CallId, { input, tool }: ConfirmTool) {
    if (tool !== BROWSE_TOOL) return undefined
    const decoded = decodeInput(input)
    if (Option.isNone(decoded) || !actsOnPage(decoded.value.action)) return undefined
    const target = yield* Effect.mapError(worker.hold(session_id, call_id, decoded.value), ({ problem }) =>
      refused("BAD_REQUEST", problem, "take a snapshot, then call again")
    )
    return pageText(target)
  })
)
