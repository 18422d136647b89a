/** The text of a message with the addresses that its app hides behind words, and with the marks of code that it takes away. Pure. */
import { seenText } from "#src/shared/text/seenText.ts"
import { type Fields, listOf, naturalOf, textOf } from "./telegramFields.ts"

/** UTF-16 units of an address that is shown, and marks of one text; Telegram has at most 100. */
const ADDRESS_CHARS_MAX = 2048
const MARKS_MAX = 100

/** The name of a language behind a fence. */
const LANGUAGE = /^[\w+#.-]{1,30}$/u

interface Insertion {
  readonly at: number
  readonly text: string
  readonly opens?: true
}

/** Addresses differ in nothing that a reader would miss: a scheme and a slash at the end. */
const bare = (address: string): string =>
  address
    .replace(/^https?:\/\//iu, "")
    .replace(/\/$/u, "")
    .toLowerCase()

const linkIn =
  (text: string) =>
  ({ length, offset, type, url }: Fields): ReadonlyArray<Insertion> => {
    const [from, units, address] = [naturalOf(offset), naturalOf(length), textOf(url)]
    if (type !== "text_link" || from === undefined || units === undefined || address === undefined) return []
    const end = from + units
    if (end > text.length || address.length > ADDRESS_CHARS_MAX) return []
    if (bare(text.slice(from, end).trim()) === bare(address)) return []
    // Some apps put the blank behind the words into the link. An address has neither blanks nor anything that nobody sees.
    const at = text.slice(0, end).trimEnd().length
    return [{ at, text: ` (${seenText(address).replaceAll(/\s/gu, encodeURIComponent)})` }]
  }

/** Code as Markdown has it. An app takes the marks that a person typed for it away. */
const codeIn =
  (text: string) =>
  ({ language, length, offset, type }: Fields): ReadonlyArray<Insertion> => {
    const [from, units] = [naturalOf(offset), naturalOf(length)]
    if ((type !== "code" && type !== "pre") || from === undefined || units === undefined || units === 0) return []
    const end = from + units
    const code = text.slice(from, end)
    // Somebody copied a code or a command as it was.
    if (end > text.length || (from === 0 && end === text.length && !code.includes("\n"))) return []
    const ticks = Math.max(0, ...[...code.matchAll(/`+/gu)].map(([run]) => run.length))
    if (type === "code") {
      const mark = "`".repeat(ticks + 1)
      return [
        { at: from, text: mark, opens: true },
        { at: end, text: mark }
      ]
    }
    const fence = "`".repeat(Math.max(3, ticks + 1))
    const before = from === 0 || text.charAt(from - 1) === "\n" ? "" : "\n"
    const after = end === text.length || text.charAt(end) === "\n" ? "" : "\n"
    const name = textOf(language)
    return [
      { at: from, text: `${before}${fence}${name !== undefined && LANGUAGE.test(name) ? name : ""}\n`, opens: true },
      { at: end, text: `${code.endsWith("\n") ? "" : "\n"}${fence}${after}` }
    ]
  }

/**
 * The text with what its app keeps beside it: `this page (https://example.org)`, and code between the marks of Markdown. Offsets count UTF-16
 * units.
 */
export const linkedText = (text: string, entities: unknown): string => {
  const marks = listOf(entities).slice(0, MARKS_MAX)
  const added = [...marks.flatMap(linkIn(text)), ...marks.flatMap(codeIn(text))]
  // From the end on, so that earlier places stay; what ends at a place comes before what begins there.
  const last = added.toSorted(
    (one, other) => other.at - one.at || Number(other.opens ?? false) - Number(one.opens ?? false)
  )
  return last.reduce((all, { at, text: mark }) => `${all.slice(0, at)}${mark}${all.slice(at)}`, text)
}
