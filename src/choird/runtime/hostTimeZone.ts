/** The time zone that agents live in: the one of choird, which is its host's unless TZ says otherwise. */

/** A name of the IANA database as a program may be handed it: no path, no rule of POSIX, no offset. */
const NAME = /^[A-Za-z][A-Za-z0-9_+-]{0,30}(?:\/[A-Za-z0-9][A-Za-z0-9_+-]{0,30}){0,2}$/u

const isKnown = (name: string): boolean => {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== ""
  } catch {
    return false
  }
}

/** The name, if it is one that every program understands; an agent without a name lives in the time zone of its sandbox. */
export const checkedTimeZone = (name: string): string | undefined =>
  NAME.test(name) && isKnown(name) ? name : undefined

/** Asked at each start of an agent, since a host may move. */
export const hostTimeZone = (): string | undefined =>
  checkedTimeZone(new Intl.DateTimeFormat().resolvedOptions().timeZone)
