/** When a plan is due, for people. `readWhen` reads every text of a schedule. */
import type { DateTime } from "effect"
import { DAY_MS } from "#src/shared/days.ts"
import { wallOf } from "./wallClock.ts"
import type { When } from "./When.ts"

const WEEKDAYS = /^(?:sun|mon|tue|wed|thu|fri|sat)\b/u

const two = (value: number) => String(value).padStart(2, "0")

const inEnglish = (wall_ms: number, options: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options }).format(wall_ms)

/** "today at 18:00", "tomorrow at 09:00", "on Thu 24 December at 12:00", with the year where it is another one. */
export const timeText = (at_ms: number, zone: DateTime.TimeZone, now_ms: number): string => {
  const [wall, now] = [wallOf(at_ms, zone), wallOf(now_ms, zone)]
  const date = new Date(wall)
  const time = `at ${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`
  const days = Math.floor(wall / DAY_MS) - Math.floor(now / DAY_MS)
  if (days === 0 || days === 1) return `${days === 0 ? "today" : "tomorrow"} ${time}`
  const year = date.getUTCFullYear()
  const ofYear = year === new Date(now).getUTCFullYear() ? "" : ` ${year}`
  const weekday = inEnglish(wall, { weekday: "short" })
  return `on ${weekday} ${date.getUTCDate()} ${inEnglish(wall, { month: "long" })}${ofYear} ${time}`
}

/** "weekdays at 08:00", "every mon, thu at 18:00", "every 20 minutes", "0 8 * * 1-5 (cron)", or the text of a time. */
export const whenText = (when: When, zone: DateTime.TimeZone, now_ms: number): string => {
  if (when.kind === "once") return timeText(when.at_ms, zone, now_ms)
  if (when.kind === "cron") return `${when.schedule} (cron)`
  // "mon at 18:00" alone would be read as one Monday.
  return WEEKDAYS.test(when.schedule) ? `every ${when.schedule}` : when.schedule
}
