/**
 * Addresses that a session chose since its user's newest message, by site. Each known address tells its site nothing but that it was chosen; a
 * site that shows an alphabet of addresses learns a text from a row of such choices. So a labelled lane has a few of them for each message.
 */
import { Option, Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { fromWireName } from "#schema/Tool.ts"
import { BROWSE_TOOL, FETCH_TOOL } from "#src/shared/web/hostQueries.ts"
import type { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { addressesIn, isWanted, type WantedAddress, wantedKey } from "./knownAddresses.ts"

/** Differing addresses of one site that a labelled lane asks for without a person, for each message of the user. */
export const SITE_ADDRESSES_MAX = 5
/** Events that are looked through, the newest first. */
const EVENTS_SEARCHED_MAX = 2000

/** Labels below which anybody may register a name, in the countries that have such. */
const SHARED = new Set("ac co com edu gob gouv gov ltd me mil ne net nom or org plc sch".split(" "))

/** The part of a host that one owner registers, near enough: its names below are one site, since its owner answers for all of them. */
export const siteOfHost = (host: string): string => {
  if (/^[\d.]+$|^\[/u.test(host)) return host
  const labels = host.replace(/\.$/u, "").split(".")
  const [second = "", top = ""] = labels.slice(-2)
  return labels.slice(top.length === 2 && SHARED.has(second) ? -3 : -2).join(".")
}

const siteOf = (address: string): string | undefined => {
  const url = URL.parse(address)
  return url === null ? undefined : siteOfHost(url.hostname)
}

const decodeCall = Schema.decodeUnknownOption(
  Schema.Struct({ url: Schema.String, action: Schema.optionalKey(Schema.String) })
)

/** The addresses that the calls of a model's output ask for, in their order. */
const chosenIn = (event: ChoirEvent): ReadonlyArray<WantedAddress> =>
  event.event_type !== "ModelOutput"
    ? []
    : event.payload.tool_calls.flatMap(({ input, name }) => {
        const tool = fromWireName(name) ?? name
        if (tool !== FETCH_TOOL && tool !== BROWSE_TOOL) return []
        return Option.match(decodeCall(input), {
          onNone: () => [],
          onSome: ({ action, url }) =>
            tool === BROWSE_TOOL && action !== "open" ? [] : [{ address: url, any_fragment: tool === FETCH_TOOL }]
        })
      })

/** The events since the user's newest message, that one first; `undefined` where some of them have left this process. */
const sinceMessage = (log: EventLog["Service"]): ReadonlyArray<ChoirEvent> | undefined => {
  const events: Array<ChoirEvent> = []
  for (let rev = log.head(); rev > 0 && events.length < EVENTS_SEARCHED_MAX; rev--) {
    const event = log.find(rev)
    if (event === undefined) return undefined
    events.push(event)
    if (event.event_type === "UserMsg") break
  }
  return events.reverse()
}

/**
 * Whether a labelled lane may still ask the site of an address for it: it is among the first SITE_ADDRESSES_MAX of that site which the session chose since
 * the user's message, by the order of the log, or the user named it there. Read from the events, so that calls side by side and a crash change nothing; where the
 * log does not reach back to the message, a person is asked.
 */
export const mayTellSite = (log: EventLog["Service"], wanted: WantedAddress): boolean => {
  const site = siteOf(wanted.address)
  const events = sinceMessage(log)
  if (site === undefined || events === undefined) return false
  const [message] = events
  const named =
    message?.event_type === "UserMsg" && message.payload.forwarded !== true ? addressesIn(message.payload.text) : []
  const isNamed = (one: WantedAddress) => named.some((shown) => isWanted(shown, one))
  if (isNamed(wanted)) return true
  const told = new Set(
    events
      .flatMap(chosenIn)
      .filter((one) => siteOf(one.address) === site && !isNamed(one))
      .map(wantedKey)
  )
  const before = [...told].indexOf(wantedKey(wanted))
  return (before < 0 ? told.size : before) < SITE_ADDRESSES_MAX
}
