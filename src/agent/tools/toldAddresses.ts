/**
 * Addresses that a session chose since a person last decided about a site. Each known address tells its site nothing but that it was chosen; a site
 * that shows an alphabet of addresses learns a text from a row of such choices. So a labelled lane has a few of them before it asks.
 */
import { Option, Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { CallId } from "#schema/Ids.ts"
import { ownWords } from "#src/shared/text/quotedWords.ts"
import { fromWireName } from "#schema/Tool.ts"
import { BROWSE_TOOL, FETCH_TOOL } from "#src/shared/web/hostQueries.ts"
import { withoutEnd } from "#src/shared/text/withoutEnd.ts"
import type { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { addressesIn, isWanted, type WantedAddress, wantedKey } from "./knownAddresses.ts"

/** Differing addresses of one site that a labelled lane asks for until a person names the site or, for the messages after, approves one. */
export const SITE_ADDRESSES_MAX = 5
/** Requests to one site by such a lane for each message of the user: two addresses in turn spell a text as well. */
export const SITE_REQUESTS_MAX = 10
/** Events that are looked through, the newest first. */
const EVENTS_SEARCHED_MAX = 2000

/** Labels below which anybody may register a name, in the countries that have such. */
const SHARED = new Set("ac co com edu gob gouv gov ltd me mil ne net nom or org plc sch".split(" "))

/** All hosts that are numbers count as one site: an owner of one IPv6 prefix has as many as there are letters. */
const NUMBERED = "[numbers]"

/** The part of a host that one owner registers, near enough: its names below are one site, since its owner answers for all of them. */
export const siteOfHost = (host: string): string => {
  if (/^[\d.]+$|^\[/u.test(host)) return NUMBERED
  const labels = host.replace(/\.$/u, "").split(".")
  const [second = "", top = ""] = labels.slice(-2)
  return labels.slice(top.length === 2 && SHARED.has(second) ? -3 : -2).join(".")
}

const siteOf = (address: string): string | undefined => {
  const url = URL.parse(address)
  return url === null ? undefined : siteOfHost(url.hostname)
}

const decodeCall = Schema.decodeUnknownOption(
  Schema.Struct({
    url: Schema.String,
    action: Schema.optionalKey(Schema.String),
    offset: Schema.optionalKey(Schema.Number)
  })
)

/** The address that a call of a tool asks for: none or one. */
const addressOf = (name: string, input: unknown): ReadonlyArray<WantedAddress> => {
  const tool = fromWireName(name) ?? name
  if (tool !== FETCH_TOOL && tool !== BROWSE_TOOL) return []
  return Option.match(decodeCall(input), {
    onNone: () => [],
    // A further part of a page that was fetched is choird's own copy: its site is not asked.
    onSome: ({ action, offset = 0, url }) =>
      (tool === BROWSE_TOOL ? action !== "open" : offset > 0)
        ? []
        : [{ address: url, any_fragment: tool === FETCH_TOOL }]
  })
}

/** The addresses that the calls of a model's output ask for, in their order. */
const chosenIn = (event: ChoirEvent): ReadonlyArray<WantedAddress> =>
  event.event_type === "ModelOutput"
    ? event.payload.tool_calls.flatMap(({ input, name }) => addressOf(name, input))
    : []

/** Whether a person's message speaks of a site: by an address of it, or by its name. */
const names = (event: ChoirEvent, site: string): boolean => {
  if (event.event_type !== "UserMsg" || event.payload.forwarded === true) return false
  const { text } = event.payload
  return addressesIn(text).some((address) => siteOf(address) === site) || wordsOf(text).has(site)
}

const wordsOf = (text: string): ReadonlySet<string> =>
  new Set(
    text
      .toLowerCase()
      .split(/[^\p{L}\p{N}.-]+/u)
      .map((word) => withoutEnd(word, ".-"))
  )

/**
 * The events since a person last decided about a site, newest first, that message included: since a message that names it, or since the message before which
 * an approved call asked it. `undefined` where the events of the newest message have left this process.
 */
const sinceDecided = (log: EventLog["Service"], site: string): ReadonlyArray<ChoirEvent> | undefined => {
  const events: Array<ChoirEvent> = []
  const approved = new Set<CallId>()
  let messages = 0
  for (let rev = log.head(); rev > 0 && events.length < EVENTS_SEARCHED_MAX; rev--) {
    const event = log.find(rev)
    if (event === undefined) break
    if (event.event_type === "ToolCallCommitted" && event.payload.approval_id !== undefined && messages > 0)
      approved.add(event.payload.call_id)
    if (event.event_type === "ToolCallRequested" && approved.has(event.payload.call_id))
      if (addressOf(event.payload.tool, event.payload.input).some(({ address }) => siteOf(address) === site))
        return events
    events.push(event)
    if (event.event_type === "UserMsg") messages++
    if (names(event, site)) return events
  }
  return messages === 0 ? undefined : events
}

/**
 * Whether a labelled lane may still ask the site of an address for it: it is among the first SITE_ADDRESSES_MAX of that site which the session chose since a
 * person last decided about the site, by the order of the log, in SITE_REQUESTS_MAX requests since the newest message, or that message names the address. Read from the events, so that calls side by side and a
 * crash change nothing; where the log does not reach back to the newest message, a person is asked.
 */
export const mayTellSite = (log: EventLog["Service"], wanted: WantedAddress): boolean => {
  const site = siteOf(wanted.address)
  const events = site === undefined ? undefined : sinceDecided(log, site)
  if (events === undefined) return false
  const message_at = events.findIndex((event) => event.event_type === "UserMsg")
  const message = events[message_at]
  const named =
    message?.event_type === "UserMsg" && message.payload.forwarded !== true
      ? addressesIn(ownWords(message.payload.text))
      : []
  const isNamed = (one: WantedAddress) => named.some((shown) => isWanted(shown, one))
  if (isNamed(wanted)) return true
  const chosen = (list: ReadonlyArray<ChoirEvent>) =>
    list.flatMap(chosenIn).filter((one) => siteOf(one.address) === site && !isNamed(one))
  if (chosen(events.slice(0, message_at)).length > SITE_REQUESTS_MAX) return false
  const told = new Set(chosen(events.toReversed()).map(wantedKey))
  const before = [...told].indexOf(wantedKey(wanted))
  return (before < 0 ? told.size : before) < SITE_ADDRESSES_MAX
}
