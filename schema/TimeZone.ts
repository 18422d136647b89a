/** The name of a time zone, as the IANA database has it: `Europe/Berlin`. */
import { Schema } from "effect"

/** A name as a program may be handed it: no path, no rule of POSIX, no offset. */
const NAME = /^[A-Za-z][A-Za-z0-9_+-]{0,30}(?:\/[A-Za-z0-9][A-Za-z0-9_+-]{0,30}){0,2}$/u

const isKnown = (name: string): boolean => {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== ""
  } catch {
    return false
  }
}

/** Whether every program understands the name. */
export const isTimeZone = (name: string): boolean => NAME.test(name) && isKnown(name)

export const TimeZone = Schema.String.check(
  Schema.makeFilter((name) => isTimeZone(name) || "must be a time zone by its region and city, such as Europe/Berlin")
)
export type TimeZone = typeof TimeZone.Type
