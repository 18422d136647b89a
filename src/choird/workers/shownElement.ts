/** An element as a snapshot shows it: its role, and its name or, where it has none, the text in it. Pure. */
import { sha256 } from "#src/shared/events/hashChain.ts"

/** Characters of a name that are shown; all of it is compared. */
const NAME_CHARS_MAX = 200

export interface ShownElement {
  /** None where the tree gives it none. */
  readonly ref?: string
  readonly role: string
  readonly name: string
  /** Of all that the snapshot says of the element and what is in it. */
  readonly digest: string
  /** Whether it is a frame or has one in it, whose inside takes a click. */
  readonly has_frame: boolean
  /** Whether something of it has no name in the tree, which leaves names out that are too long. */
  readonly has_nameless: boolean
}

interface Line {
  readonly depth: number
  readonly role: string
  readonly name: string | undefined
  readonly marks: string
  readonly text: string
}

/** Playwright writes the key of a line in single quotes where YAML needs it. */
const KEY = /^( *)- (?:'((?:[^']|'')*)'|([\w/-]+(?: "(?:[^"\\]|\\.)*")?(?: \[[^\]]*\])*))(?::(?: (.*))?)?$/u
const PARTS = /^([\w/-]+)(?: ("(?:[^"\\]|\\.)*"))?((?: \[[^\]]*\])*)$/u

const REF = / \[ref=((?:f\d+)?e\d+)\]/u

const nameOf = (quoted: string | undefined): string | undefined => {
  try {
    return quoted === undefined ? undefined : String(JSON.parse(quoted))
  } catch {
    return quoted
  }
}

const read = (line: string): Line | undefined => {
  const [, indent = "", quoted, plain, text = ""] = KEY.exec(line) ?? []
  const key = quoted?.replaceAll("''", "'") ?? plain
  const [, role, name, marks = ""] = key === undefined ? [] : (PARTS.exec(key) ?? [])
  return role === undefined ? undefined : { depth: indent.length, role, name: nameOf(name), marks, text }
}

/** The lines of what is in an element. */
const linesBelow = (lines: ReadonlyArray<string>, at: number, { depth }: Line): ReadonlyArray<string> => {
  const isBelow = (line: string) => line.startsWith(" ".repeat(depth + 1))
  let end = at + 1
  while (end < lines.length && isBelow(lines[end] ?? "")) end++
  return lines.slice(at + 1, end)
}

/** The text in an element, without addresses. */
const textIn = (below: ReadonlyArray<string>, { text }: Line): string => {
  const found = [text]
  let chars = text.length
  for (const line of below.slice(0, NAME_CHARS_MAX)) {
    if (chars > NAME_CHARS_MAX) break
    const { name = "", role = "/", text: inner = "" } = read(line) ?? {}
    const words = role.startsWith("/") ? "" : [name, inner].filter((each) => each !== "").join(" ")
    found.push(words)
    chars += words.length
  }
  return found.filter((each) => each !== "").join(" ")
}

/** Marks of where an element is, of the focus and of the pointer: they are not what it says. */
const PASSING = / \[(?:ref=(?:f\d+)?e\d+|active|cursor=pointer)\]/gu

/** Whether a line is below one of a frame. */
const isInFrame = (lines: ReadonlyArray<string>, at: number, { depth }: Line): boolean => {
  let level = depth
  for (let above = at - 1; above >= 0 && level > 0; above--) {
    const line = read(lines[above] ?? "")
    if (line === undefined || line.depth >= level) continue
    if (line.role === "iframe") return true
    level = line.depth
  }
  return false
}

/** Whether a line is an element without a name; texts and addresses are not elements. */
const isNameless = (line: string): boolean => {
  const { name, role = "/" } = read(line) ?? {}
  return name === undefined && role !== "text" && !role.startsWith("/")
}

const find = (snapshot: string, mark: string, isOfPage: boolean): ShownElement | undefined => {
  const lines = snapshot.split("\n")
  for (const [at, text] of lines.entries()) {
    // Only a look at the line tells a mark from a name that is written like one.
    if (!text.includes(mark)) continue
    const line = read(text)
    if (line?.marks.includes(mark) !== true) continue
    if (isOfPage && isInFrame(lines, at, line)) continue
    const { depth, name, role } = line
    const below = linesBelow(lines, at, line)
    const said = [text, ...below].map((each) => each.slice(depth).replaceAll(PASSING, ""))
    const [, ref] = REF.exec(line.marks) ?? []
    return {
      ...(ref === undefined ? {} : { ref }),
      role,
      name: (name ?? textIn(below, line)).slice(0, NAME_CHARS_MAX).toWellFormed(),
      digest: sha256(said.join("\n")),
      has_nameless: name === undefined || below.some(isNameless),
      has_frame: role === "iframe" || below.some((each) => read(each)?.role === "iframe")
    }
  }
  return undefined
}

/** A page in which no element has the focus takes keys itself. */
export const PAGE: ShownElement = { role: "page", name: "", digest: "", has_frame: false, has_nameless: false }

/** The element of a ref in the snapshot of a whole page. */
export const shownElement = (snapshot: string, ref: string): ShownElement | undefined =>
  find(snapshot, `[ref=${ref}]`, false)

/** The element of the page itself that has the focus; each document of a frame has one of its own. */
export const focusedElement = (snapshot: string): ShownElement | undefined => find(snapshot, "[active]", true)

/** Whether two looks saw the same. */
export const isSameElement = (one: ShownElement, other: ShownElement): boolean =>
  one.role === other.role && one.digest === other.digest
