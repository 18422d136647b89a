/**
 * The style rules of a page or a mail, as far as they say whether its words are seen: simple selectors and what stands between braces. Its author may
 * have written them to be misread or never to end, so that all of it is bounded.
 */

/** Characters of the rules of one document, and rules that are kept. */
const SHEET_CHARS_MAX = 200_000
const RULES_MAX = 2000
/** Parts of one selector, and ancestors that one is compared with. */
const PARTS_MAX = 8
const ANCESTORS_MAX = 32
/** Elements of one document to which rules are applied, times the rules that may fit each. */
const COMPARISONS_MAX = 4_000_000
/** The width of the window that media queries are about. */
const WINDOW_WIDTH_PX = 1280

/** Names and values in lowercase; of two with the same name the later counts. */
export type Declarations = ReadonlyMap<string, string>

/** An element as selectors see it. */
export interface StyledElement {
  readonly tag: string
  readonly parent: StyledElement | undefined
  attribute(name: string): string | undefined
}

interface Part {
  readonly tag: string
  readonly id: string
  readonly classes: ReadonlyArray<string>
  readonly attributes: ReadonlyArray<readonly [name: string, value: string | undefined]>
  /** Whether the part before it is the parent, and not any ancestor. */
  readonly isChild: boolean
}

interface Rule {
  readonly parts: ReadonlyArray<Part>
  readonly weight: number
  readonly declarations: Declarations
}

/** The text behind the backslashes of a style, which hide it from a plain comparison: `d\69splay`. */
const unescaped = (text: string): string =>
  text.replaceAll(/\\(?:([0-9a-f]{1,6})\s?|([^\n]))/giu, (_, hex: string | undefined, sign: string | undefined) => {
    const point = hex === undefined ? 0 : Number.parseInt(hex, 16)
    return hex === undefined ? (sign ?? "") : point > 0 && point <= 0x10_ffff ? String.fromCodePoint(point) : ""
  })

const withoutComments = (text: string): string => {
  const parts: Array<string> = []
  for (let at = 0; at < text.length;) {
    const open = text.indexOf("/*", at)
    parts.push(text.slice(at, open === -1 ? text.length : open))
    const close = open === -1 ? -1 : text.indexOf("*/", open + 2)
    at = close === -1 ? text.length : close + 2
  }
  return parts.join(" ")
}

/** The declarations of a style attribute or of a rule. Those that are `!important` win. */
const declarationsOf = (style: string): Declarations => {
  const found = new Map<string, string>()
  const important = new Map<string, string>()
  for (const each of withoutComments(style.slice(0, SHEET_CHARS_MAX)).split(";")) {
    const colon = each.indexOf(":")
    if (colon === -1) continue
    const name = unescaped(each.slice(0, colon)).trim().toLowerCase()
    const value = unescaped(each.slice(colon + 1))
      .trim()
      .toLowerCase()
    const isImportant = value.includes("!")
    const said = isImportant ? value.slice(0, value.indexOf("!")).trim() : value
    if (name !== "") (isImportant ? important : found).set(name, said)
  }
  return new Map([...found, ...important])
}

const PART = /^(\*|[a-z][a-z0-9-]*)?((?:[.#][\w-]+|\[[a-z-]+(?:=["']?[^"'\]]*["']?)?\])*)$/iu
const PIECE = /([.#])([\w-]+)|\[([a-z-]+)(?:=["']?([^"'\]]*)["']?)?\]/giu

const partOf = (text: string, isChild: boolean): Part | undefined => {
  const found = PART.exec(text)
  if (found === null || text === "") return undefined
  const pieces = [...(found[2] ?? "").matchAll(PIECE)]
  return {
    tag: found[1] === undefined || found[1] === "*" ? "" : found[1].toLowerCase(),
    id: pieces.find(([, sign]) => sign === "#")?.[2] ?? "",
    classes: pieces.flatMap(([, sign, name]) => (sign === "." && name !== undefined ? [name] : [])),
    attributes: pieces.flatMap(([, , , name, value]) => (name === undefined ? [] : [[name.toLowerCase(), value]])),
    isChild
  }
}

/** The parts of a selector; `undefined` for one that holds more than names, such as what a mouse does. */
const partsOf = (selector: string): ReadonlyArray<Part> | undefined => {
  const words = selector.replaceAll(">", " > ").trim().split(/\s+/u)
  if (words.length > 2 * PARTS_MAX) return undefined
  const parts: Array<Part> = []
  let isChild = false
  for (const word of words) {
    if (word === ">") isChild = true
    else {
      const part = partOf(word, isChild)
      if (part === undefined) return undefined
      parts.push(part)
      isChild = false
    }
  }
  return parts.length === 0 ? undefined : parts
}

const weightOf = (parts: ReadonlyArray<Part>): number =>
  parts.reduce(
    (sum, { attributes, classes, id, tag }) =>
      sum + (id === "" ? 0 : 10_000) + 100 * (classes.length + attributes.length) + (tag === "" ? 0 : 1),
    0
  )

/** Whether rules for such a window count: on a screen as wide as a person's. */
const isForScreen = (query: string): boolean =>
  query
    .slice("@media".length)
    .split(",")
    .some((each) => {
      const words = each.toLowerCase()
      if (/\bprint\b|\bspeech\b|\bnot\b/u.test(words)) return false
      return [...words.matchAll(/\(([^)]*)\)/gu)].every(([, feature = ""]) => {
        const [name = "", value = ""] = feature.split(":").map((part) => part.trim())
        const width = Number.parseFloat(value)
        if (name === "min-width" || name === "min-device-width") return width <= WINDOW_WIDTH_PX
        if (name === "max-width" || name === "max-device-width") return width >= WINDOW_WIDTH_PX
        return name !== "prefers-color-scheme" || value === "light"
      })
    })

/** The text between the brace at `open` and its counterpart, and where what follows begins. */
const block = (text: string, open: number) => {
  let depth = 1
  let at = open + 1
  for (; at < text.length && depth > 0; at++) {
    if (text[at] === "{") depth += 1
    else if (text[at] === "}") depth -= 1
  }
  return { inside: text.slice(open + 1, depth === 0 ? at - 1 : at), next: at }
}

const rulesIn = (text: string, depth = 0): ReadonlyArray<Rule> => {
  const rules: Array<Rule> = []
  for (let at = 0; at < text.length && rules.length < RULES_MAX;) {
    const open = text.indexOf("{", at)
    if (open === -1) break
    // An earlier statement that ends by itself, such as an import, has no braces.
    const head = text.slice(at, open).split(";").at(-1)?.trim() ?? ""
    const { inside, next } = block(text, open)
    at = next
    if (/^@(?:media|supports|layer)\b/iu.test(head)) {
      if (depth < 4 && (!/^@media\b/iu.test(head) || isForScreen(head))) rules.push(...rulesIn(inside, depth + 1))
    } else if (!head.startsWith("@")) {
      const declarations = declarationsOf(inside)
      for (const selector of head.split(",")) {
        const parts = partsOf(selector)
        if (parts !== undefined) rules.push({ parts, weight: weightOf(parts), declarations })
      }
    }
  }
  return rules
}

const classesOf = (element: StyledElement): ReadonlyArray<string> =>
  (element.attribute("class") ?? "").slice(0, 1000).split(/\s+/u)

const fitsPart = ({ attributes, classes, id, tag }: Part, element: StyledElement): boolean => {
  if (tag !== "" && tag !== element.tag) return false
  if (id !== "" && id !== element.attribute("id")) return false
  if (classes.length > 0) {
    const own = classesOf(element)
    if (!classes.every((name) => own.includes(name))) return false
  }
  return attributes.every(([name, value]) => {
    const has = element.attribute(name)
    return value === undefined ? has !== undefined : has === value
  })
}

const fits = (parts: ReadonlyArray<Part>, element: StyledElement): boolean => {
  const [last, ...before] = parts.toReversed()
  if (last === undefined || !fitsPart(last, element)) return false
  let isChild = last.isChild
  let above = element.parent
  let steps = 0
  for (const part of before) {
    if (!isChild)
      while (above !== undefined && !fitsPart(part, above) && steps < ANCESTORS_MAX) {
        above = above.parent
        steps += 1
      }
    if (above === undefined || !fitsPart(part, above)) return false
    isChild = part.isChild
    above = above.parent
  }
  return true
}

/** The rules of a document's styles, which are applied to its elements one after the other. */
export class StyleSheet {
  readonly #rules = new Map<string, Array<Rule>>()
  #left = COMPARISONS_MAX

  constructor(text: string) {
    for (const rule of rulesIn(withoutComments(text.slice(0, SHEET_CHARS_MAX))).slice(0, RULES_MAX)) {
      const last = rule.parts.at(-1)
      const key = last === undefined ? "" : last.id === "" ? (last.classes[0] ?? last.tag) : last.id
      const known = this.#rules.get(key)
      if (known === undefined) this.#rules.set(key, [rule])
      else known.push(rule)
    }
  }

  /** The declarations of the rules and of its own style attribute for an element. */
  declarations(element: StyledElement): Declarations {
    const style = element.attribute("style")
    const own = style === undefined ? [] : [declarationsOf(style)]
    if (this.#rules.size === 0 || this.#left <= 0) return own[0] ?? NONE
    const keys = new Set(["", element.tag, element.attribute("id") ?? "", ...classesOf(element)])
    const near = [...keys].flatMap((key) => this.#rules.get(key) ?? [])
    this.#left -= near.length + 1
    const found = near.filter(({ parts }) => fits(parts, element)).toSorted((a, b) => a.weight - b.weight)
    if (found.length === 0) return own[0] ?? NONE
    return new Map([...found.map(({ declarations }) => declarations), ...own].flatMap((each) => [...each]))
  }
}

const NONE: Declarations = new Map()
