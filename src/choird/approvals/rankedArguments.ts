/**
 * The values of a call's input in the order in which a person should read them: whom it reaches, where, and how much, at every depth and under
 * whatever keys they stand; then everything else, short values first. Pure.
 */
import { visibleJson } from "./approvalText.ts"
import { AMOUNTS, HOSTS, PATHS, RECIPIENTS } from "#src/shared/image/argumentNames.ts"
import { firstPart, lastPart } from "#src/shared/text/placeToCut.ts"

/** Characters of a value that says whom, where or how much; no shorter one is cut. */
export const REACH_CHARS_MAX = 300
/** Characters of a key, and of all keys to a value, as a card shows them. */
const KEY_CHARS_MAX = 40
const PLACE_CHARS_MAX = 120
/** Blanks in a row that a card shows; more could push what follows out of sight. */
const BLANKS_MAX = 3

const words = (text: string) => text.split(" ")

/** Keys by what their values say, most telling first. */
const KINDS: ReadonlyArray<readonly [kind: "recipient" | "host" | "amount" | "path", keys: ReadonlyArray<string>]> = [
  [
    "recipient",
    [
      ...RECIPIENTS,
      ...words(
        "email emails mail mailbox receiver receivers payee beneficiary iban bic wallet sender reply_to attendee attendees participant participants invitee invitees member members contact contacts handle username"
      ),
      ...words(
        "person people customer client owner assignee guest guests organizer thread board project an für à para per кому"
      )
    ]
  ],
  ["host", [...HOSTS, ...words("site domains hosts webhook callback proxy ip destination target")]],
  [
    "amount",
    [...AMOUNTS, ...words("amounts prices cost fee qty payment cents budget limit balance rate value values count")]
  ],
  ["path", [...PATHS]]
]

const TELLING: ReadonlyMap<string, { readonly kind: number; readonly at: number }> = new Map(
  KINDS.flatMap(([, keys], kind) => keys.map((key, at) => [key, { kind, at }] as const)).toReversed()
)
const PATH_KIND = KINDS.length - 1
const OTHER_KIND = KINDS.length

const ADDRESS = /^[^\s@]+@[^\s@]+$|<[^\s@<]+@[^\s@<>]+>\s*$/u
/** Characters of the longest mail address, with a name before it. */
const ADDRESS_CHARS_MAX = 500
const WEB = /^[a-z][a-z0-9+.-]*:\/\//iu
/** Digits with what people write between them. */
const TELEPHONE = /^(?:tel:)?[+＋(]?\p{Nd}[\p{Nd}\s()./‐-―-]*$/iu
/** Digits of the shortest number that somebody has, and characters of the longest as it is written. */
const TELEPHONE_DIGITS_MIN = 5
const TELEPHONE_CHARS_MAX = 50
/** A name of a person or a channel in a chat. */
const HANDLE = /^[@#][^\s@#]+$/u

type Scalar = string | number | boolean | null

/** A value with the place where it stands. */
export interface Argument {
  /** Its keys, as they are shown. */
  readonly place: string
  /** Whether these are all there, none of them cut: a key may be an address too. */
  readonly named: boolean
  /** As visible JSON on one line. */
  readonly text: string
  /** Whether it says whom, where or how much, so that it has to be seen. */
  readonly reaches: boolean
  /** It is short and one word, as an address or a number is, and not words about one. */
  readonly evident: boolean
  /** Words that the tool declares free, so that what the call reaches does not depend on them. */
  readonly free: boolean
  /** The host of a long address, which stands anywhere in it. */
  readonly host?: string
  /** A smaller one comes first. */
  readonly rank: number
}

/** The words of a key, such as those of `toAddress` or `to_address`. */
const wordsOf = (key: string): ReadonlyArray<string> =>
  key
    .normalize("NFKC")
    .replaceAll(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu, "_")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")

interface Telling {
  readonly kind: number
  readonly at: number
  /** The key is, or ends with, one that tells; else it only has such a word in it. */
  readonly exact: boolean
}

const NOTHING: Telling = { kind: OTHER_KIND, at: 0, exact: false }

/** The more telling one. */
const better = (a: Telling, b: Telling): Telling => {
  const order = Number(b.exact) - Number(a.exact) || a.kind - b.kind || a.at - b.at
  return order <= 0 ? a : b
}

const rankOf = ({ exact, kind }: Telling): number => (exact ? 0 : OTHER_KIND) + kind

const leastRank = (parts: ReadonlyArray<{ readonly rank: number }>, telling: Telling): number =>
  parts.reduce((least, { rank }) => Math.min(least, rank), rankOf(telling))

const tellingKey = (key: string): Telling => {
  const parts = wordsOf(key)
  const exact = TELLING.get(parts.join("_")) ?? TELLING.get(parts.at(-1) ?? "")
  if (exact !== undefined) return { ...exact, exact: true }
  const within = parts.map((word) => TELLING.get(word)).find((found) => found !== undefined)
  return within === undefined ? NOTHING : { ...within, exact: false }
}

const isTelephone = (text: string): boolean =>
  text.length <= TELEPHONE_CHARS_MAX &&
  TELEPHONE.test(text) &&
  text.replaceAll(/\P{Nd}/gu, "").length >= TELEPHONE_DIGITS_MIN

const tellingValue = (value: Scalar): Telling => {
  if (typeof value !== "string") return NOTHING
  const text = value.trim()
  if (text.length <= ADDRESS_CHARS_MAX && (ADDRESS.test(text) || HANDLE.test(text) || isTelephone(text)))
    return { kind: 0, at: 0, exact: true }
  return WEB.test(text) ? { kind: 1, at: 0, exact: true } : NOTHING
}

/** JSON on one line in which blanks hide nothing. */
const lineOf = (value: unknown): string =>
  visibleJson(value).replaceAll(/\p{Zs}+/gu, (run) => (run.length > BLANKS_MAX ? ` ⟨${run.length} blanks⟩ ` : run))

/** A key in plain ASCII, so that none looks like another. */
const keyOf = (key: string): string => {
  const shown = visibleJson(key.length > KEY_CHARS_MAX ? `${firstPart(key, KEY_CHARS_MAX)}…` : key)
  return shown.replaceAll(/[^\x20-\x7E…]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}

const isScalar = (value: unknown): value is Scalar => typeof value !== "object" || value === null

const placeOf = (place: string): string =>
  place.length <= PLACE_CHARS_MAX ? place : `…${lastPart(place, PLACE_CHARS_MAX - 1)}`

/** The host of an address of the web that is too long to be shown; `undefined` where programs may disagree about it. */
const hostIn = (value: unknown): string | undefined => {
  if (typeof value !== "string" || !WEB.test(value) || /[\\\s]/u.test(value)) return undefined
  const host = URL.parse(value)?.host
  return host === undefined || host === "" || host.length > REACH_CHARS_MAX ? undefined : host
}

/** Where a value stands. */
interface Place {
  readonly keys: string
  readonly named: boolean
  readonly free: boolean
}

const argumentOf = ({ free, keys, named }: Place, value: unknown, telling: Telling): Argument => {
  const text = lineOf(value)
  const host = text.length > REACH_CHARS_MAX ? hostIn(value) : undefined
  return {
    place: placeOf(keys),
    named: named && keys.length <= PLACE_CHARS_MAX,
    text,
    reaches: telling.exact && telling.kind < PATH_KIND,
    evident: text.length <= REACH_CHARS_MAX && (typeof value !== "string" || !/\s/u.test(value.trim())),
    free: free && typeof value === "string",
    rank: rankOf(telling),
    ...(host === undefined ? {} : { host })
  }
}

/** A short list of plain values is read as one. */
const isLine = (value: unknown): boolean =>
  Array.isArray(value) && value.every(isScalar) && visibleJson(value).length <= REACH_CHARS_MAX

/** All values of an input, the most telling first. @param free the arguments that its tool declares free text. */
export const rankedArguments = (input: unknown, free: ReadonlyArray<string> = []): ReadonlyArray<Argument> => {
  const found: Array<{ readonly argument: Argument; readonly at: number }> = []
  const add = (place: Place, value: unknown, telling: Telling) => {
    found.push({ argument: argumentOf(place, value, telling), at: telling.at })
  }
  const visit = (value: unknown, place: Place, telling: Telling): void => {
    if (isScalar(value)) return add(place, value, better(telling, tellingValue(value)))
    if (Array.isArray(value)) {
      const items: ReadonlyArray<unknown> = value
      if (isLine(items)) return add(place, items, items.filter(isScalar).map(tellingValue).reduce(better, telling))
      for (const [index, item] of items.entries())
        visit(item, { ...place, keys: `${place.keys}[${index}]`, free: false }, telling)
      return
    }
    const entries = Object.entries(value as object)
    if (entries.length === 0) return add(place, value, telling)
    const before = place.keys === "" ? "" : `${place.keys}.`
    for (const [key, item] of entries) {
      const named = place.named && key.length <= KEY_CHARS_MAX
      const isFree = before === "" && free.includes(key)
      visit(item, { keys: `${before}${keyOf(key)}`, named, free: isFree }, better(tellingKey(key), telling))
    }
  }
  visit(input, { keys: "", named: true, free: false }, NOTHING)
  return found
    .toSorted(
      (a, b) =>
        a.argument.rank - b.argument.rank ||
        a.at - b.at ||
        a.argument.text.length + a.argument.place.length - (b.argument.text.length + b.argument.place.length) ||
        (a.argument.place < b.argument.place ? -1 : 1)
    )
    .map(({ argument }) => argument)
}

/**
 * Values of which not all can be shown: addresses and numbers before words, and each kind in turn, so that many of one kind leave room for the
 * others.
 */
export const inTurn = (ranked: ReadonlyArray<Argument>): ReadonlyArray<Argument> => {
  const seen = new Map<string, number>()
  return ranked
    .map((argument) => {
      const group = `${argument.evident} ${argument.rank}`
      const turn = seen.get(group) ?? 0
      seen.set(group, turn + 1)
      return { argument, turn }
    })
    .toSorted((a, b) => Number(b.argument.evident) - Number(a.argument.evident) || a.turn - b.turn)
    .map(({ argument }) => argument)
}

interface Ranked {
  readonly text: string
  readonly rank: number
}

/** A value as JSON, with what is most telling first, and how telling the most telling part of it is. */
const rankedText = (value: unknown, telling: Telling): Ranked => {
  if (isScalar(value)) return { text: visibleJson(value), rank: rankOf(better(telling, tellingValue(value))) }
  if (Array.isArray(value)) {
    const items = (value as ReadonlyArray<unknown>).map((item) => rankedText(item, telling))
    return { text: `[${items.map(({ text }) => text).join(",")}]`, rank: leastRank(items, telling) }
  }
  const entries = Object.entries(value as object).map(([key, item]) => {
    const own = better(tellingKey(key), telling)
    return { key, at: own.at, ...rankedText(item, own) }
  })
  const inOrder = entries.toSorted(
    (a, b) =>
      a.rank - b.rank ||
      a.at - b.at ||
      a.text.length + a.key.length - (b.text.length + b.key.length) ||
      (a.key < b.key ? -1 : 1)
  )
  return {
    text: `{${inOrder.map(({ key, text }) => `${visibleJson(key)}:${text}`).join(",")}}`,
    rank: leastRank(entries, telling)
  }
}

/** The whole input as JSON, with what is most telling first at every depth. */
export const rankedJson = (input: unknown): string => rankedText(input, NOTHING).text
