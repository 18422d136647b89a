/**
 * Addresses of the web that a session was shown from outside the model: by its user, or by a tool of the web. To ask for one of them tells its site
 * nothing that the model chose, while an address that the model wrote itself may carry what it knows.
 */
import type { Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { fromWireName } from "#schema/Tool.ts"
import { outputRevOf } from "#src/shared/session/search.ts"
import { withoutEnd } from "#src/shared/text/withoutEnd.ts"
import type { EventLog } from "#src/agent/arbiter/EventLog.ts"

/** Events that are looked through, the newest first. */
const EVENTS_SEARCHED_MAX = 2000
/** An address in a text: up to a blank, a bracket of Markdown or a quote. */
const ADDRESS = /https?:\/\/[^\s<>"'`\])}]+/gu
/** Signs that belong to the sentence. */
const AFTER = ".,;:!?*_"

/** The tools whose results bring addresses. What others print, the model may have chosen. */
const BRINGS = /^choir\.(?:web|email|notion)\./u

/** An address, and whether its fragment may differ: it is not sent, but the scripts of a page that a browser shows can read it. */
export interface WantedAddress {
  readonly address: string
  readonly any_fragment: boolean
}

const plain = (address: string): string | undefined => {
  const url = URL.parse(address)
  if (url === null) return undefined
  url.hash = ""
  return url.href
}

/** The part of an address that its site learns, as one text. */
export const wantedKey = ({ address, any_fragment }: WantedAddress): string =>
  (any_fragment ? plain(address) : URL.parse(address)?.href) ?? address

/** Whether an address that was shown is the wanted one. An address that was shown with a fragment is known without it too. */
export const isWanted = (shown: string, wanted: WantedAddress): boolean => {
  const key = wantedKey(wanted)
  return URL.parse(shown)?.href === key || plain(shown) === key
}

/** The addresses in a text, each also without the signs of the sentence behind it. */
export const addressesIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(ADDRESS)].flatMap(([address]) => [address, withoutEnd(address, AFTER)])

const isIn = (text: string, wanted: WantedAddress): boolean => {
  for (const [address] of text.matchAll(ADDRESS))
    if (isWanted(address, wanted) || isWanted(withoutEnd(address, AFTER), wanted)) return true
  return false
}

const holds = (value: Schema.Json | undefined, wanted: WantedAddress): boolean => {
  if (typeof value === "string") return isIn(value, wanted)
  if (typeof value !== "object" || value === null) return false
  return Object.values(value).some((inner: Schema.Json) => holds(inner, wanted))
}

const shows = (log: EventLog["Service"], event: ChoirEvent, wanted: WantedAddress): boolean => {
  if (event.event_type === "UserMsg") return isIn(event.payload.text, wanted)
  if (event.event_type !== "ToolResultCommitted") return false
  const { call_id, output } = event.payload
  if (!holds(output, wanted)) return false
  const proposed = log.find(outputRevOf(call_id) ?? 0)
  const calls = proposed?.event_type === "ModelOutput" ? proposed.payload.tool_calls : []
  const name = calls.find((call) => call.call_id === call_id)?.name
  return name !== undefined && BRINGS.test(fromWireName(name) ?? name)
}

/** Whether the session was shown an address. */
export const isKnownAddress = (log: EventLog["Service"], { address, any_fragment }: WantedAddress): boolean => {
  const href = URL.parse(address)?.href
  if (href === undefined) return false
  const wanted = { address: href, any_fragment }
  const last = Math.max(log.oldest(), log.head() - EVENTS_SEARCHED_MAX + 1)
  for (let rev = log.head(); rev >= last && rev > 0; rev--) {
    const event = log.find(rev)
    if (event !== undefined && shows(log, event, wanted)) return true
  }
  return false
}
