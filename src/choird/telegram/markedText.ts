/**
 * The Markdown of a model as a text with entities, as Telegram takes it: offsets in UTF-16 units, so that nothing can fail to parse and a
 * split is arithmetic. What is not understood stays as it was written. Pure.
 */
import { placeToCut } from "#src/shared/text/placeToCut.ts"
import { alignedTable } from "./alignedTable.ts"
import { type Block, blocksOf } from "./markdownBlocks.ts"

type Kind = "bold" | "italic" | "strikethrough" | "spoiler" | "code" | "pre" | "text_link" | "blockquote"

export interface Entity {
  readonly type: Kind
  readonly offset: number
  readonly length: number
  readonly url?: string
  readonly language?: string
}

export interface MarkedText {
  readonly text: string
  readonly entities: ReadonlyArray<Entity>
}

/** Entities of one message that Telegram shows. */
const ENTITIES_MAX = 100
/** Marks within marks; deeper ones stay as written. */
const NESTED_MAX = 6
const URL_CHARS_MAX = 2048

const DELIMITERS = [
  ["**", "bold"],
  ["__", "bold"],
  ["~~", "strikethrough"],
  ["||", "spoiler"],
  ["*", "italic"],
  ["_", "italic"]
] as const

/** The text and the entities so far. */
class Writer {
  readonly #parts: Array<string> = []
  readonly entities: Array<Entity> = []
  length = 0

  write(text: string): void {
    this.#parts.push(text)
    this.length += text.length
  }

  /** Marks what `work` writes; nothing where it writes nothing, or inside the same mark. */
  mark(entity: Omit<Entity, "offset" | "length">, work: () => void): void {
    const offset = this.length
    const at = this.entities.length
    work()
    if (this.length > offset) this.entities.splice(at, 0, { ...entity, offset, length: this.length - offset })
  }

  get text(): string {
    return this.#parts.join("")
  }
}

const isWord = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}]/u.test(character)
const isBlank = (character: string | undefined) => character === undefined || /\s/u.test(character)

/** Where a mark ends, or -1. An underscore within a word is not a mark. */
const closerOf = (text: string, delimiter: string, from: number, end: number): number => {
  for (let at = text.indexOf(delimiter, from); at >= 0 && at + delimiter.length <= end;) {
    let last = at
    while (delimiter.length === 2 && last + 3 <= end && text[last + 2] === delimiter[0]) last += 1
    const isRun =
      delimiter.length === 1 &&
      ((last + 1 < end && text[last + 1] === delimiter) || (last > from && text[last - 1] === delimiter))
    const inWord = delimiter[0] === "_" && isWord(text[last + delimiter.length])
    if (last > from && !isBlank(text[last - 1]) && text[last - 1] !== "\\" && !isRun && !inWord) return last
    at = text.indexOf(delimiter, last + (isRun ? 2 : 1))
  }
  return -1
}

const ESCAPED = /^\\[!-/:-@[-`{-~]/u
/** UTF-16 units of the words of a link. */
const LABEL_CHARS_MAX = 1000
/** Other schemes start something in the app of the person who taps: a chat, a call, a setting. Such a link stays as it was written. */
const TARGET = /^\]\(((?:https?|mailto):[^\s()]{1,2000}(?:\([^\s()]*\)[^\s()]*)?)\)/u

/** The address behind the next `]` of a text. It is read once for all `[` before it, so that these cost no more than other characters. */
class Links {
  #close = -1
  #newline = -1
  #url: string | undefined
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  /** The link that begins at a `[`: its words, its address and its end. */
  at(from: number) {
    if (this.#close <= from) {
      this.#close = this.#next("]", from)
      const behind = this.#text.slice(this.#close, this.#close + URL_CHARS_MAX + 3)
      this.#url = TARGET.exec(behind)?.[1]
    }
    const url = this.#url
    const label = this.#close - from - 1
    if (url === undefined || label < 1 || label > LABEL_CHARS_MAX) return undefined
    if (this.#newline <= from) this.#newline = this.#next("\n", from)
    if (this.#newline < this.#close) return undefined
    return { label: this.#text.slice(from + 1, this.#close), url, end: this.#close + url.length + 3 }
  }

  #next(character: string, from: number): number {
    const at = this.#text.indexOf(character, from)
    return at < 0 ? this.#text.length : at
  }
}

/** The marks around a place, and how deep it is in them. */
interface Inside {
  readonly kinds: ReadonlySet<Kind>
  readonly depth: number
}

/** A code span at this place: its content and its end. */
const codeAt = (text: string, at: number, end: number, endless: ReadonlySet<string>) => {
  const ticks = /^`+/u.exec(text.slice(at, Math.min(end, at + 16)))?.[0] ?? ""
  if (endless.has(ticks)) return { ticks, content: undefined, end: at + ticks.length }
  let close = text.indexOf(ticks, at + ticks.length)
  while (close >= 0 && text[close + ticks.length] === "`") {
    while (text[close] === "`") close += 1
    close = text.indexOf(ticks, close)
  }
  if (close < 0 || close + ticks.length > end) return { ticks, content: undefined, end: at + ticks.length }
  return { ticks, content: text.slice(at + ticks.length, close), end: close + ticks.length }
}

/** Writes the part of a block between two places, with its marks. */
const writeInline = (writer: Writer, text: string, from: number, end: number, { depth, kinds }: Inside): void => {
  // A mark without an end before this place has none after it either.
  const endless = new Set<string>()
  const links = new Links(text)
  let plain = from
  let at = from
  const flush = () => {
    if (at > plain) writer.write(text.slice(plain, at))
  }
  while (at < end) {
    const character = text[at]
    if (character === "\\" && ESCAPED.test(text.slice(at, at + 2)) && at + 1 < end) {
      flush()
      plain = at + 1
      at += 2
      continue
    }
    if (character === "`") {
      const { content, end: behind, ticks } = codeAt(text, at, end, endless)
      if (content === undefined) endless.add(ticks)
      else if (content.trim() !== "") {
        flush()
        writer.mark({ type: "code" }, () => writer.write(content))
        plain = behind
      }
      at = behind
      continue
    }
    if (character === "[" && !kinds.has("text_link") && depth < NESTED_MAX) {
      const link = links.at(at)
      if (link !== undefined && link.end <= end) {
        flush()
        const { label, url } = link
        writer.mark({ type: "text_link", url }, () =>
          writeInline(writer, label, 0, label.length, { depth: depth + 1, kinds: new Set([...kinds, "text_link"]) })
        )
        at = plain = link.end
        continue
      }
    }
    const found = DELIMITERS.find(([mark]) => text.startsWith(mark, at))
    if (found === undefined || depth >= NESTED_MAX) {
      at += found?.[0].length ?? 1
      continue
    }
    const [mark, type] = found
    const start = at + mark.length
    const opens = !isBlank(text[start]) && !(mark[0] === "_" && isWord(text[at - 1])) && !endless.has(mark)
    const close = opens ? closerOf(text, mark, start, end) : -1
    if (close < 0) {
      if (opens) endless.add(mark)
      at = start
      continue
    }
    flush()
    const inner = () => writeInline(writer, text, start, close, { depth: depth + 1, kinds: new Set([...kinds, type]) })
    if (kinds.has(type)) inner()
    else writer.mark({ type }, inner)
    at = plain = close + mark.length
  }
  flush()
}

const TOP: Inside = { kinds: new Set<Kind>(), depth: 0 }

const inline = (writer: Writer, line: string, inside: Inside = TOP) => writeInline(writer, line, 0, line.length, inside)

/** Writes a block. */
const writeBlock = (writer: Writer, block: Block): void => {
  switch (block.type) {
    case "code": {
      const { language, text } = block
      return writer.mark({ type: "pre", ...(language === undefined ? {} : { language }) }, () => writer.write(text))
    }
    case "table":
      return writer.mark({ type: "pre" }, () => writer.write(alignedTable(block.lines)))
    case "quote":
      return writer.mark({ type: "blockquote" }, () => inline(writer, block.text))
    case "heading":
      return writer.mark({ type: "bold" }, () => inline(writer, block.text, { kinds: new Set(["bold"]), depth: 1 }))
    case "item":
      writer.write(block.before)
      return inline(writer, block.text)
    case "line":
      return inline(writer, block.text)
  }
}

const isCode = ({ type }: Entity) => type === "code" || type === "pre"

/** Other marks end before code and begin behind it again, since Telegram takes none around or in it. */
const withoutCode = (entities: ReadonlyArray<Entity>): ReadonlyArray<Entity> => {
  // Both are in the order of the text, so that codes which end before a mark are behind every later one too.
  const codes = entities.filter(isCode)
  let first = 0
  return entities.flatMap((entity) => {
    if (isCode(entity) || entity.type === "blockquote") return [entity]
    const pieces: Array<Entity> = []
    let from = entity.offset
    const end = entity.offset + entity.length
    for (; first < codes.length; first += 1) {
      const code = codes[first]
      if (code === undefined || code.offset + code.length > from) break
    }
    for (let at = first; at < codes.length; at += 1) {
      const code = codes[at]
      if (code === undefined || code.offset >= end) break
      if (code.offset > from) pieces.push({ ...entity, offset: from, length: code.offset - from })
      from = Math.max(from, code.offset + code.length)
    }
    return from < end ? [...pieces, { ...entity, offset: from, length: end - from }] : pieces
  })
}

/** A text of one line or paragraph with its marks. */
export const markedLine = (markdown: string): MarkedText => {
  const writer = new Writer()
  inline(writer, markdown)
  return { text: writer.text, entities: withoutCode(writer.entities) }
}

export const markedText = (markdown: string): MarkedText => {
  const writer = new Writer()
  for (const [index, block] of blocksOf(markdown).entries()) {
    if (index > 0) writer.write("\n")
    writeBlock(writer, block)
  }
  return { text: writer.text, entities: withoutCode(writer.entities) }
}

/** The part of a marked text between two places. */
const cutOut = ({ entities, text }: MarkedText, from: number, to: number): MarkedText => ({
  text: text.slice(from, to),
  entities: entities.flatMap((entity) => {
    const start = Math.max(entity.offset, from)
    const end = Math.min(entity.offset + entity.length, to)
    return end > start ? [{ ...entity, offset: start - from, length: end - start }] : []
  })
})

/** A cut that leaves every mark whole which fits into a part: before the mark, or behind one that the part begins with. */
const wholeMarks = (entities: ReadonlyArray<Entity>, from: number, wanted: number, units_max: number): number => {
  let cut = wanted
  for (let moved = true; moved;) {
    const found = entities.find(
      ({ length, offset }) => offset >= from && offset < cut && offset + length > cut && length <= units_max
    )
    moved = found !== undefined
    if (found !== undefined) cut = found.offset > from ? found.offset : from + found.length
  }
  return cut
}

/**
 * Splits a marked text into parts of at most `units_max` (2 or more) UTF-16 units, whose texts joined are the whole. A mark that fits into a
 * part is never cut; one that is longer, such as a long code block, continues in the next part.
 */
export const splitMarked = (whole: MarkedText, units_max: number): ReadonlyArray<MarkedText> => {
  const parts: Array<MarkedText> = []
  let from = 0
  while (whole.text.length - from > units_max) {
    const end_max = from + units_max
    const wanted = Math.min(placeToCut(whole.text, from, end_max).next, end_max)
    const at = wholeMarks(whole.entities, from, wanted, units_max)
    parts.push(cutOut(whole, from, at))
    from = at
  }
  return [...parts, cutOut(whole, from, whole.text.length)]
}

/** As Telegram takes a part: without blank space around it, and with no more entities than it shows. */
export const trimmed = (part: MarkedText): MarkedText => {
  const from = part.text.length - part.text.trimStart().length
  const { entities, text } = cutOut(part, from, Math.max(from, part.text.trimEnd().length))
  return { text, entities: entities.slice(0, ENTITIES_MAX) }
}
