/** Invitations as a person reads them: who, when, where. The calendar is hostile, so it is read in the process of one mail. */
import ICAL from "ical.js"

/** Characters of a calendar, and the dates and guests of one that are listed. */
const CALENDAR_CHARS_MAX = 256 * 1024
const DATES_MAX = 10
const GUESTS_MAX = 30
/** Characters of a description. */
const DESCRIPTION_CHARS_MAX = 4000

type Component = InstanceType<typeof ICAL.Component>
type Time = InstanceType<typeof ICAL.Time>
type Property = InstanceType<typeof ICAL.Property>

const text = (component: Component, name: string): string => {
  const value = component.getFirstPropertyValue(name)
  return value === null || value === undefined ? "" : value.toString().trim()
}

const isCancelled = (event: Component, method: string) =>
  method === "CANCEL" || text(event, "status").toUpperCase() === "CANCELLED"

const headingOf = (event: Component, method: string): string => {
  if (isCancelled(event, method)) return "Cancelled event"
  if (method === "REPLY") return "Answer to an invitation"
  if (method === "COUNTER") return "Proposal of another time"
  if (method === "REQUEST") return Number(text(event, "sequence")) > 0 ? "Updated invitation" : "Invitation"
  return "Event"
}

const two = (value: number) => String(value).padStart(2, "0")
const dayOf = ({ day, month, year }: Time) => `${year}-${two(month)}-${two(day)}`
const hourOf = ({ hour, minute }: Time) => `${two(hour)}:${two(minute)}`

const offsetWords = (minutes: number) => {
  const [sign, size] = [minutes < 0 ? "-" : "+", Math.abs(minutes)]
  return `UTC${sign}${two(Math.floor(size / 60))}:${two(size % 60)}`
}

/** The offset that a zone of the IANA database has at a time of its own. */
const ianaOffset = (zone: string, time: Time): string | undefined => {
  try {
    const at = Date.UTC(time.year, time.month - 1, time.day, time.hour, time.minute)
    const format = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" })
    const name = format.formatToParts(at).find(({ type }) => type === "timeZoneName")?.value ?? ""
    return name === "GMT" ? "UTC+00:00" : name.replace("GMT", "UTC")
  } catch {
    return undefined
  }
}

/** The zone of a time: by its name, and by its offset where that is known. */
const zoneOf = (property: Property, time: Time, zones: ReadonlyMap<string, Component>): string => {
  if (time.isDate) return ""
  if (time.zone?.tzid === "UTC") return " UTC"
  const name = property.getFirstParameter("tzid")?.trim() ?? ""
  if (name === "") return " (no time zone is given)"
  const component = zones.get(name)
  const stated = component === undefined ? undefined : new ICAL.Timezone({ component, tzid: name }).utcOffset(time)
  const offset = ianaOffset(name, time) ?? (stated === undefined ? undefined : offsetWords(Math.round(stated / 60)))
  return offset === undefined ? ` (${name})` : ` (${name}, ${offset})`
}

const endOf = (event: Component, start: Time): Time | undefined => {
  const stated: unknown = event.getFirstPropertyValue("dtend")
  if (stated instanceof ICAL.Time) return stated
  const duration: unknown = event.getFirstPropertyValue("duration")
  if (!(duration instanceof ICAL.Duration)) return undefined
  const end = start.clone()
  end.addDuration(duration)
  return end
}

/** The date of a series that another one replaces. */
const insteadOf = (event: Component, zones: ReadonlyMap<string, Component>): string => {
  const property = event.getFirstProperty("recurrence-id")
  const time: unknown = property?.getFirstValue()
  if (property === null || !(time instanceof ICAL.Time)) return ""
  return time.isDate ? dayOf(time) : `${dayOf(time)} ${hourOf(time)}${zoneOf(property, time, zones)}`
}

const whenOf = (event: Component, zones: ReadonlyMap<string, Component>): string => {
  const property = event.getFirstProperty("dtstart")
  const start: unknown = property?.getFirstValue()
  if (property === null || !(start instanceof ICAL.Time)) return ""
  const end = endOf(event, start)
  if (start.isDate) {
    // The end of days is the day after the last one.
    const last = end?.clone()
    last?.adjust(-1, 0, 0, 0)
    const isMore = last !== undefined && last.compare(start) > 0
    return `${dayOf(start)}${isMore ? ` to ${dayOf(last)}` : ""} (all day)`
  }
  const zone = zoneOf(property, start, zones)
  if (end === undefined) return `${dayOf(start)} ${hourOf(start)}${zone}`
  const until = dayOf(end) === dayOf(start) ? hourOf(end) : `${dayOf(end)} ${hourOf(end)}`
  return `${dayOf(start)} ${hourOf(start)} to ${until}${zone}`
}

const addressOf = (property: Property): string => String(property.getFirstValue() ?? "").replace(/^mailto:/iu, "")

const personOf = (property: Property): string => {
  const name = property.getFirstParameter("cn")?.trim() ?? ""
  const address = addressOf(property)
  return name === "" || name === address ? address : `${name} <${address}>`
}

const ANSWERS: Readonly<Record<string, string>> = {
  ACCEPTED: "accepted",
  DECLINED: "declined",
  TENTATIVE: "perhaps",
  DELEGATED: "delegated"
}

const guestOf = (property: Property): string => {
  const answer = ANSWERS[property.getFirstParameter("partstat")?.toUpperCase() ?? ""]
  return answer === undefined ? personOf(property) : `${personOf(property)} (${answer})`
}

const linesOf = (event: Component, method: string, zones: ReadonlyMap<string, Component>): ReadonlyArray<string> => {
  const organizer = event.getFirstProperty("organizer")
  const guests = event.getAllProperties("attendee")
  const repeats = event.getAllProperties("rrule").map((rule) => String(rule.getFirstValue()))
  const named = (name: string, value: string) => (value === "" ? [] : [`${name}: ${value}`])
  const link = text(event, "url")
  return [
    `${headingOf(event, method)}: ${text(event, "summary") || "without a title"}`,
    ...named("When", whenOf(event, zones)),
    ...named("Instead of", insteadOf(event, zones)),
    ...named("Repeats", repeats.join("; ")),
    ...named("Where", text(event, "location")),
    ...named("Organizer", organizer === null ? "" : personOf(organizer)),
    ...named("Guests", guests.slice(0, GUESTS_MAX).map(guestOf).join(", ")),
    ...(guests.length > GUESTS_MAX ? [`… and ${guests.length - GUESTS_MAX} more guests`] : []),
    ...named("Link", link),
    ...named("Comment", text(event, "comment")),
    ...named("Description", text(event, "description").slice(0, DESCRIPTION_CHARS_MAX))
  ]
}

/** A calendar without the lines that no program could read, of which one would cost all of it. */
const readableLines = (calendar: string): string =>
  calendar
    .replaceAll(/\r?\n[ \t]/gu, "")
    .split(/\r?\n/u)
    .filter((line) => /^[\w-]+(?:;[^:]*)?:/u.test(line))
    .join("\r\n")

const parsed = (calendar: string): Component => {
  try {
    return new ICAL.Component(ICAL.parse(calendar))
  } catch {
    return new ICAL.Component(ICAL.parse(readableLines(calendar)))
  }
}

/** The dates of a calendar in words; `undefined` where it cannot be read. */
export const calendarText = (calendar: string): string | undefined => {
  try {
    const root = parsed(calendar.slice(0, CALENDAR_CHARS_MAX))
    const method = text(root, "method").toUpperCase()
    const zones = new Map(root.getAllSubcomponents("vtimezone").map((zone) => [text(zone, "tzid"), zone] as const))
    const dates = [...root.getAllSubcomponents("vevent"), ...root.getAllSubcomponents("vtodo")]
    if (dates.length === 0) return undefined
    const told = dates.slice(0, DATES_MAX).map((date) => linesOf(date, method, zones).join("\n"))
    return [...told, ...(dates.length > DATES_MAX ? [`… and ${dates.length - DATES_MAX} more`] : [])].join("\n\n")
  } catch {
    return undefined
  }
}
