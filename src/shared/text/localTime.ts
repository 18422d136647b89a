/** A minute as people read it: in their time zone, or in that of the process that tells it, which is named. */

const MINUTE = {
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23"
} as const

/** The time zone of this process. */
export const hostZone = () => new Intl.DateTimeFormat().resolvedOptions().timeZone

/** The characters of the day, with which a minute begins. */
export const DAY_CHARS = 10

/** @param at ms since 1970, or an ISO text. */
export const localMinute = (at: number | string, timeZone = hostZone()): string => {
  const parts = new Map<string, string>(
    new Intl.DateTimeFormat("en", { ...MINUTE, timeZone })
      .formatToParts(new Date(at))
      .map(({ type, value }) => [type, value])
  )
  const [year, month, day, hour, minute] = ["year", "month", "day", "hour", "minute"].map((type) => parts.get(type))
  return `${year}-${month}-${day} ${hour}:${minute} ${timeZone === "UTC" ? "UTC" : `(${timeZone})`}`
}

/** The time of the day, to the second: `07:30:05`. @param at ms since 1970, or an ISO text. */
export const localSecond = (at: number | string, timeZone = hostZone()): string =>
  new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", hourCycle: "h23", timeZone }).format(new Date(at))
