/**
 * The words of a grant and the calls inside them. A grant is made from one call that a person saw, and covers a later one only if nothing
 * that says whom, what or where it reaches is new. Whatever the input does not say is asked about again. Pure.
 */
import type { ConfirmTool } from "#schema/Approval.ts"
import type { GrantWords } from "#schema/Grant.ts"
import { actsOnPage, BROWSE_TOOL } from "#src/shared/web/hostQueries.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { visibleLine } from "./approvalText.ts"

/** Recipients, paths and hosts that one grant names; a call with more gets none. */
export const GRANT_NAMES_MAX = 16
/** Characters of a grant's words; what does not fit a card is not granted. */
export const GRANT_WORDS_CHARS_MAX = 600
/** Values that are looked at in one input; one with more is only ever granted as a whole. */
const VALUES_MAX = 1000

type Call = Pick<ConfirmTool, "tool" | "input">

const words = (text: string) => new Set(text.split(/\s+/u))

export const RECIPIENTS = words(
  "to cc bcc from recipient recipients address addresses user users user_id channel channels chat chat_id group phone number account"
)
export const PATHS = words(
  "path paths file files folder folders dir directory cwd root source sources destination target output attachment attachments"
)
export const HOSTS = words("url urls uri href link endpoint host hostname domain server origin website")
/** Arguments that are programs: their text decides everything, so that only the same text is the same call. */
const PROGRAMS = words("command commands cmd argv args code script program sql query expression shell eval")

/** The facts of a call that a grant compares. */
interface Facts {
  readonly arguments: ReadonlySet<string>
  readonly recipients: ReadonlySet<string>
  readonly paths: ReadonlySet<string>
  readonly hosts: ReadonlySet<string>
  /** True if only the very same input is inside the words. */
  readonly exact: boolean
}

const LOOKS_LIKE_ADDRESS = /^[^\s@]+@[^\s@]+$|<[^\s@<]+@[^\s@<>]+>\s*$/u
const LOOKS_LIKE_URL = /^[a-z][a-z0-9+.-]*:\/\//iu
const PLAIN_MAIL = /^[\x20-\x7E]*@[\x20-\x7E]*$/u

/**
 * Compared as written, but for space around it, and for case in a mail address of plain letters. Ids of other services may differ in case
 * alone, and the small form of a letter such as the Kelvin sign is another one.
 */
const recipientOf = (text: string): string => {
  const name = text.trim()
  return PLAIN_MAIL.test(name) ? name.toLowerCase() : name
}

/**
 * An address whose host every program reads alike: no user, no backslash, no blank, nothing beyond ASCII, and no `@` where some take what is
 * before it for the user's name. `https://a.example\@x@b.example` is at a.example for a browser and at b.example for curl.
 */
const PLAIN_ADDRESS =
  /^(?:[Hh][Tt][Tt][Pp][Ss]?:\/\/)?(?:[A-Za-z0-9][\w.-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?(?:\/[!#-[\]_-~]*|[?#][!#-?A-[\]_-~]*)?$/u

/** The scheme, host and port; `undefined` for anything but the address of a host. */
const hostOf = (text: string): string | undefined => {
  if (!PLAIN_ADDRESS.test(text)) return undefined
  const url = URL.parse(LOOKS_LIKE_URL.test(text) ? text : `https://${text}`)
  return url === null || url.host === "" ? undefined : `${url.protocol}//${url.host}`
}

/** Parts that some programs read as another path: separators of other systems, names of a home, and dots in another spelling. */
const OTHER_PATH = /[\\\0]|^~|%(?:2e|2f|5c)/iu

/** A path below the workspace, without `.` and empty segments; `undefined` for one that leads, or may lead, anywhere else. */
const pathOf = (text: string): string | undefined => {
  if (OTHER_PATH.test(text) || text.normalize("NFKC") !== text.normalize("NFC")) return undefined
  const below = text.replace(/^\/workspace(?:\/|$)/u, "")
  const names = below.split("/").filter((name) => name !== "" && name !== ".")
  return below.startsWith("/") || names.includes("..") || names.length === 0 ? undefined : names.join("/")
}

const nameOf = (name: string): string => (/^[\w-]+$/u.test(name) ? name : canonicalJson(name))

/** Every argument of an input with its key and its own path, which list positions are not part of. */
const valuesOf = (
  input: unknown
): ReadonlyArray<{ readonly at: string; readonly key: string; readonly value: unknown }> => {
  const found: Array<{ at: string; key: string; value: unknown }> = []
  const visit = (value: unknown, at: string, key: string): void => {
    if (found.length > VALUES_MAX) return
    if (Array.isArray(value)) {
      if (value.length === 0) found.push({ at, key, value: null })
      for (const item of value) visit(item, at, key)
    } else if (typeof value === "object" && value !== null) {
      const entries = Object.entries(value)
      if (entries.length === 0) found.push({ at, key, value: null })
      // A name is quoted where it could be mistaken for several.
      for (const [name, item] of entries) visit(item, `${at}${at === "" ? "" : "."}${nameOf(name)}`, name.toLowerCase())
    } else found.push({ at, key, value })
  }
  visit(input, "", "")
  return found
}

/** A text that somebody reads. A single word, a number and a flag may decide what a tool does: they are compared as they are. */
const isProse = (value: unknown): boolean => typeof value === "string" && /\s/u.test(value.trim())

const fixed = (at: string, value: unknown): string => `${at}=${canonicalJson(value)}`

const factsOf = ({ input, tool }: Call): Facts => {
  const values = valuesOf(input)
  const facts = {
    arguments: new Set<string>(),
    recipients: new Set<string>(),
    paths: new Set<string>(),
    hosts: new Set<string>(),
    exact:
      tool === "choir.exec" ||
      typeof input !== "object" ||
      input === null ||
      Array.isArray(input) ||
      values.length > VALUES_MAX
  }
  const add = (names: Set<string>, name: string | undefined) => {
    if (name === undefined) facts.exact = true
    else names.add(name)
  }
  for (const { at, key, value } of values) {
    if (PROGRAMS.has(key)) facts.exact = true
    if (value === null || typeof value === "boolean") {
      facts.arguments.add(fixed(at, value))
      continue
    }
    const text = typeof value === "string" ? value : canonicalJson(value)
    if (RECIPIENTS.has(key) || (typeof value === "string" && LOOKS_LIKE_ADDRESS.test(text)))
      add(facts.recipients, recipientOf(text))
    else if (HOSTS.has(key) || LOOKS_LIKE_URL.test(text)) add(facts.hosts, hostOf(text))
    else if (PATHS.has(key)) add(facts.paths, pathOf(text))
    else {
      facts.arguments.add(isProse(value) ? at : fixed(at, value))
      continue
    }
    facts.arguments.add(at)
  }
  return facts
}

/** The folder of a path, which a grant names; a file at the top is named itself. */
const placeOf = (path: string): string => {
  const at = path.lastIndexOf("/")
  return at < 0 ? path : path.slice(0, at + 1)
}

const sorted = (names: Iterable<string>): ReadonlyArray<string> => [...new Set(names)].sort()

const listed = (names: ReadonlyArray<string>) => names.map((name) => visibleLine(name)).join(", ")

/** A grant's words for a person. */
export const wordsText = (grant: GrantWords): string => {
  if (grant.input_sha256 !== undefined) return `exactly this call of ${grant.tool} and no other`
  const { hosts, paths, recipients } = grant
  return [
    `calls to ${grant.tool}`,
    ...(recipients.length === 0 ? [] : [`only to ${listed(recipients)}`]),
    ...(paths.length === 0 ? [] : [`only within ${listed(paths)}`]),
    ...(hosts.length === 0 ? [] : [`only at ${listed(hosts)}`]),
    grant.arguments.length === 0 ? "without arguments" : `with no arguments other than ${listed(grant.arguments)}`
  ].join(", ")
}

/** Acts on the page that is open, which the input does not name: the same input is another act on another page. */
const actsOnAnyPage = ({ input, tool }: Call): boolean =>
  tool === BROWSE_TOOL &&
  (typeof input !== "object" ||
    input === null ||
    !("action" in input) ||
    typeof input["action"] !== "string" ||
    actsOnPage(input["action"]))

/** The words of a grant made from a call; `undefined` where the input does not say what it reaches, or they would be longer than a card shows. */
export const grantOf = (call: Call): GrantWords | undefined => {
  if (actsOnAnyPage(call)) return undefined
  const facts = factsOf(call)
  const none = { arguments: [], recipients: [], paths: [], hosts: [] }
  if (facts.exact) return { tool: call.tool, ...none, input_sha256: sha256(canonicalJson(call.input)) }
  const grant = {
    tool: call.tool,
    arguments: sorted(facts.arguments),
    recipients: sorted(facts.recipients),
    paths: sorted([...facts.paths].map(placeOf)),
    hosts: sorted(facts.hosts)
  }
  const names = grant.recipients.length + grant.paths.length + grant.hosts.length
  return names > GRANT_NAMES_MAX || wordsText(grant).length > GRANT_WORDS_CHARS_MAX ? undefined : grant
}

/** None where the grant names none, and at least one of them where it does: an absent recipient may mean everybody. */
const isWithin = (
  found: ReadonlySet<string>,
  named: ReadonlyArray<string>,
  fits: (name: string, granted: string) => boolean
): boolean =>
  (named.length === 0) === (found.size === 0) && [...found].every((name) => named.some((one) => fits(name, one)))

const isSame = (name: string, granted: string) => name === granted
const isBelow = (path: string, granted: string) => (granted.endsWith("/") ? path.startsWith(granted) : path === granted)

/** The argument itself, or any value of it where the grant fixes none. */
const isAllowed = (name: string, granted: ReadonlyArray<string>): boolean =>
  granted.includes(name) || granted.includes(/^(?:[\w-]|\.|"(?:[^"\\]|\\.)*")+/u.exec(name)?.[0] ?? "")

/** Whether a call is inside the words of a grant. */
export const covers = (grant: GrantWords, call: Call): boolean => {
  if (grant.tool !== call.tool || actsOnAnyPage(call)) return false
  if (grant.input_sha256 !== undefined) return grant.input_sha256 === sha256(canonicalJson(call.input))
  const facts = factsOf(call)
  return (
    !facts.exact &&
    [...facts.arguments].every((name) => isAllowed(name, grant.arguments)) &&
    isWithin(facts.recipients, grant.recipients, isSame) &&
    isWithin(facts.paths, grant.paths, isBelow) &&
    isWithin(facts.hosts, grant.hosts, isSame)
  )
}
