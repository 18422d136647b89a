/** The other meaning that the words of a time may have, as one sentence for the person who wrote them. */
import { shortened } from "#src/shared/text/placeToCut.ts"
import type { FoundWords } from "./foundWords.ts"
import type { ClockTime } from "./moments.ts"

/** The time of a day that has none. */
export const DEFAULT_TIME: ClockTime = { hour: 9, minute: 0, second: 0, by: "digits" }

const two = (value: number) => String(value).padStart(2, "0")

/** "08:05". */
export const clockText = ({ hour, minute }: ClockTime) => `${two(hour)}:${two(minute)}`

const hourDoubt = (time: ClockTime | undefined): string | undefined => {
  if (time === undefined) return `No time of day was written: ${clockText(DEFAULT_TIME)} was taken.`
  if (time.by === "word") return `No hour was written: ${clockText(time)} was taken.`
  return time.by === "hour"
    ? `${time.hour} was read as ${clockText(time)}; for the evening write ${two(time.hour + 12)}:00.`
    : undefined
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ")
const SLASHED = /(?<!\d)(\d{1,2})\/(\d{1,2})(?![\d/])/u

const dateDoubt = ({ date, words = "" }: FoundWords): string | undefined => {
  const [, first = "", second = ""] = SLASHED.exec(words) ?? []
  if (date === undefined || first === second || Number(first) > 12 || Number(second) > 12 || first === "")
    return undefined
  const shown = (day: string, month: string) => `${Number(day)} ${MONTHS[Number(month) - 1]}`
  const [read, other] = [shown(first, second), shown(second, first)]
  return date.day === Number(first)
    ? `${first}/${second} was read as ${read}; for the other date write ${other}.`
    : `${first}/${second} was read as ${other}; for the other date write ${read}.`
}

/** Whether a time of day belongs to what was found. */
const hasTimeOfDay = ({ duration, repetition, time }: FoundWords): boolean => {
  if (time !== undefined) return true
  if (repetition === undefined) return duration === undefined
  return repetition.kind !== "interval" || (repetition.unit === "day" && repetition.count === 1)
}

/** Characters of the words beside a time that a doubt about them repeats. */
const REST_CHARS_MAX = 40

/** The doubt about words that may have been a part of the time. */
export const restDoubt = (rest: string): string =>
  `"${shortened(rest, REST_CHARS_MAX)}" was read as text, not as a part of the time.`

export const doubtOf = (found: FoundWords): string | undefined => {
  if (found.isSpan === true) return "Of a span of time its beginning was taken."
  if (found.isHoursAlone === true) {
    const hours = Number.parseInt(found.words ?? "", 10)
    return `${found.words} was read as ${hours} hours from now; for the time of day write ${hours}:00.`
  }
  return dateDoubt(found) ?? (hasTimeOfDay(found) ? hourDoubt(found.time) : undefined)
}
