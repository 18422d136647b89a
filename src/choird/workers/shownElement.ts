/** An element as a snapshot shows it: its role, and its name or, where it has none, the text in it. Pure. */

/** Characters of a name that are compared and shown; what follows is the same element all the same. */
const NAME_CHARS_MAX = 200

export interface ShownElement {
  readonly role: string
  readonly name: string
  /** Whether the name is the text in it, which a snapshot of a part may not have whole. */
  readonly is_text: boolean
  readonly in_frame: boolean
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

/** The text in the lines below one, without those of addresses. */
const textBelow = (lines: ReadonlyArray<string>, at: number, { depth, text }: Line): string => {
  const found = [text]
  let chars = text.length
  for (const line of lines.slice(at + 1, at + 1 + NAME_CHARS_MAX)) {
    const below = read(line)
    if (below === undefined || below.depth <= depth || chars > NAME_CHARS_MAX) break
    const words = below.role.startsWith("/")
      ? ""
      : [below.name ?? "", below.text].filter((each) => each !== "").join(" ")
    found.push(words)
    chars += words.length
  }
  return found.filter((each) => each !== "").join(" ")
}

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

const find = (snapshot: string, mark: string): ShownElement | undefined => {
  const lines = snapshot.split("\n")
  for (const [at, text] of lines.entries()) {
    // Only a look at the line tells a mark from a name that is written like one.
    if (!text.includes(mark)) continue
    const line = read(text)
    if (line?.marks.includes(mark) !== true) continue
    const { name, role } = line
    return {
      role,
      name: (name ?? textBelow(lines, at, line)).slice(0, NAME_CHARS_MAX).toWellFormed(),
      is_text: name === undefined,
      in_frame: isInFrame(lines, at, line)
    }
  }
  return undefined
}

/** A page in which no element has the focus takes keys itself. */
const PAGE: ShownElement = { role: "page", name: "", is_text: false, in_frame: false }

/** The element of a ref; without a ref what takes the keys: the element that has the focus, or the page. */
export const shownElement = (snapshot: string, ref: string | undefined): ShownElement | undefined =>
  ref === undefined ? (find(snapshot, "[active]") ?? PAGE) : find(snapshot, `[ref=${ref}]`)

/** Whether two looks saw the same; `isPart`: one of them did not see all that is in the element. */
export const isSameElement = (one: ShownElement, other: ShownElement, isPart: boolean): boolean =>
  one.role === other.role && one.is_text === other.is_text && (one.name === other.name || (one.is_text && isPart))
