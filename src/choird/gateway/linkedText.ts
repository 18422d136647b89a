/** The text of a message in which the addresses stand that its app hides behind words. Pure. */
import { seenText } from "#src/shared/text/seenText.ts"
import { type Fields, listOf, naturalOf, textOf } from "./telegramFields.ts"

/** UTF-16 units of an address that is shown, and addresses of one text; Telegram marks at most 100 places. */
const ADDRESS_CHARS_MAX = 2048
const ADDRESSES_MAX = 100

interface Link {
  readonly end: number
  readonly address: string
}

/** Addresses differ in nothing that a reader would miss: a scheme and a slash at the end. */
const bare = (address: string): string =>
  address
    .replace(/^https?:\/\//iu, "")
    .replace(/\/$/u, "")
    .toLowerCase()

const linkIn =
  (text: string) =>
  ({ length, offset, type, url }: Fields): ReadonlyArray<Link> => {
    const [from, units, address] = [naturalOf(offset), naturalOf(length), textOf(url)]
    if (type !== "text_link" || from === undefined || units === undefined || address === undefined) return []
    const end = from + units
    if (end > text.length || address.length > ADDRESS_CHARS_MAX) return []
    if (bare(text.slice(from, end).trim()) === bare(address)) return []
    // An address has neither blanks nor anything that nobody sees.
    return [{ end, address: seenText(address).replaceAll(/\s/gu, encodeURIComponent) }]
  }

/** `this page (https://example.org)`: the text with each hidden address behind its words. Offsets count UTF-16 units. */
export const linkedText = (text: string, entities: unknown): string => {
  const links = listOf(entities)
    .slice(0, ADDRESSES_MAX)
    .flatMap(linkIn(text))
    .toSorted((one, other) => other.end - one.end)
  let linked = text
  for (const { address, end } of links) {
    // Some apps put the blank behind the words into the link.
    const at = end - (text.slice(0, end).length - text.slice(0, end).trimEnd().length)
    linked = `${linked.slice(0, at)} (${address})${linked.slice(at)}`
  }
  return linked
}
