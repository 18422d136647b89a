/**
 * An agent's Markdown as the blocks of a rich message. choird builds each block itself, since Telegram's own Rich Markdown holds HTML, entities,
 * pictures that Telegram's servers fetch, and buttons whose taps come back as the person's (D60). Pure.
 */
import { agentMarkdown, openingOf, opensPlainly } from "#src/choird/queues/chatText.ts"
import type { Outgoing } from "#src/choird/queues/Outbox.ts"
import { type Block, blocksOf, cellsOf } from "./markdownBlocks.ts"
import { type Entity, type MarkedText, markedLine } from "./markedText.ts"

/** The most that Telegram takes in one rich message: characters, blocks with items and rows among them, and columns of a table. */
const RICH_CHARS_MAX = 32_768
const RICH_BLOCKS_MAX = 500
const RICH_COLUMNS_MAX = 20
/** Lists within lists; deeper items become neighbours of those above them. */
const LISTS_NESTED_MAX = 3

export type RichText =
  | string
  | ReadonlyArray<RichText>
  | { readonly type: "bold" | "italic" | "strikethrough" | "spoiler" | "code"; readonly text: RichText }
  | { readonly type: "url"; readonly text: RichText; readonly url: string }
  | { readonly type: "email_address"; readonly text: RichText; readonly email_address: string }

interface RichCell {
  /** Absent where the cell is empty. */
  readonly text?: RichText
  readonly is_header?: true
  readonly align: "left" | "center" | "right"
  readonly valign: "top"
}

interface RichItem {
  readonly blocks: ReadonlyArray<RichBlock>
  readonly value?: number
}

export type RichBlock =
  | { readonly type: "paragraph"; readonly text: RichText }
  | { readonly type: "heading"; readonly text: RichText; readonly size: number }
  | { readonly type: "pre"; readonly text: string; readonly language?: string }
  | { readonly type: "divider" }
  | { readonly type: "blockquote"; readonly blocks: ReadonlyArray<RichBlock> }
  | { readonly type: "list"; readonly items: ReadonlyArray<RichItem> }
  | { readonly type: "table"; readonly cells: ReadonlyArray<ReadonlyArray<RichCell>>; readonly is_bordered: true }

const ADDRESS = /(https?:\/\/[^\s<>"'`]{0,2000}[^\s<>"'`.,;:!?)\]}])/u

/** A text without marks, in which the addresses of the web are links. Nothing else of it is looked for, such as commands. */
const linked = (text: string): RichText => {
  const parts = text.split(ADDRESS).flatMap((part, at): ReadonlyArray<RichText> => {
    if (part === "") return []
    return [at % 2 === 0 ? part : { type: "url", text: part, url: part }]
  })
  return parts.length === 1 ? (parts[0] ?? "") : parts
}

const marked = ({ type, url = "" }: Entity, text: RichText): RichText => {
  if (type === "text_link")
    return url.startsWith("mailto:")
      ? { type: "email_address", text, email_address: url.slice("mailto:".length).split("?", 1)[0] ?? "" }
      : { type: "url", text, url }
  return type === "pre" || type === "blockquote" ? text : { type, text }
}

/** The part of a text between two places, whose marks are within each other and never cross. */
const treeOf = (text: string, from: number, to: number, entities: ReadonlyArray<Entity>, isLink: boolean): RichText => {
  const parts: Array<RichText> = []
  const plain = (start: number, end: number) => {
    if (end > start) parts.push(isLink ? text.slice(start, end) : linked(text.slice(start, end)))
  }
  let at = from
  for (let index = 0; index < entities.length;) {
    const entity = entities[index]
    if (entity === undefined) break
    const end = entity.offset + entity.length
    let next = index + 1
    while ((entities[next]?.offset ?? end) < end) next += 1
    plain(at, entity.offset)
    const isFixed = isLink || entity.type === "text_link" || entity.type === "code"
    parts.push(marked(entity, treeOf(text, entity.offset, end, entities.slice(index + 1, next), isFixed)))
    at = end
    index = next
  }
  plain(at, to)
  return parts.length === 1 ? (parts[0] ?? "") : parts
}

const richText = ({ entities, text }: MarkedText): RichText =>
  treeOf(
    text,
    0,
    text.length,
    entities.toSorted((a, b) => a.offset - b.offset || b.length - a.length),
    false
  )

const paragraph = (text: string): RichBlock => ({ type: "paragraph", text: richText(markedLine(text)) })

const ALIGNMENTS = [
  [/^:-+:$/u, "center"],
  [/^-+:$/u, "right"]
] as const

/** A table by its lines; one that is too wide stays as it is written. */
const tableOf = (lines: ReadonlyArray<string>): RichBlock => {
  const [head = [], rule = [], ...rows] = lines.map(cellsOf)
  if ([head, ...rows].some((cells) => cells.length > RICH_COLUMNS_MAX)) return { type: "pre", text: lines.join("\n") }
  const cell = (isHeader: boolean) => (text: string, column: number) => ({
    ...(text === "" ? {} : { text: richText(markedLine(text)) }),
    ...(isHeader ? { is_header: true as const } : {}),
    align: ALIGNMENTS.find(([pattern]) => pattern.test(rule[column] ?? ""))?.[1] ?? ("left" as const),
    valign: "top" as const
  })
  return { type: "table", cells: [head.map(cell(true)), ...rows.map((row) => row.map(cell(false)))], is_bordered: true }
}

type Item = Extract<Block, { readonly type: "item" }>

/** The first item behind one that does not belong to it. */
const endOf = (items: ReadonlyArray<Item>, at: number, depth: number): number => {
  const indent = items[at]?.indent ?? 0
  let next = at + 1
  if (depth < LISTS_NESTED_MAX) while ((items[next]?.indent ?? 0) > indent) next += 1
  return next
}

/** A list of items, of which those that are indented more belong to the one above them. */
const listOf = (items: ReadonlyArray<Item>, depth = 1): RichBlock => {
  const found: Array<RichItem> = []
  for (let at = 0; at < items.length;) {
    const item = items[at]
    if (item === undefined) break
    const next = endOf(items, at, depth)
    const below = items.slice(at + 1, next)
    found.push({
      blocks: [paragraph(item.text), ...(below.length === 0 ? [] : [listOf(below, depth + 1)])],
      ...(item.number === undefined ? {} : { value: item.number })
    })
    at = next
  }
  return { type: "list", items: found }
}

const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$/u

/** Whether two neighbouring blocks are parts of one: lines of a paragraph, or items of a list. */
const isOne = (before: Block, block: Block): boolean => {
  if (before.type === "item") return block.type === "item"
  const isText = (one: Block) => one.type === "line" && one.text.trim() !== "" && !RULE.test(one.text)
  return isText(before) && isText(block)
}

const grouped = (blocks: ReadonlyArray<Block>): ReadonlyArray<ReadonlyArray<Block>> => {
  const groups: Array<Array<Block>> = []
  for (const block of blocks) {
    const group = groups.at(-1)
    const before = group?.at(-1)
    if (group !== undefined && before !== undefined && isOne(before, block)) group.push(block)
    else groups.push([block])
  }
  return groups
}

/** One block of what belongs together; none of a line without words. */
const richOf = (group: ReadonlyArray<Block>): ReadonlyArray<RichBlock> => {
  const [block] = group
  switch (block?.type) {
    case undefined:
      return []
    case "code": {
      const { language, text } = block
      return text === "" ? [] : [{ type: "pre", text, ...(language === undefined ? {} : { language }) }]
    }
    case "table":
      return [tableOf(block.lines)]
    case "quote":
      return block.text.trim() === "" ? [] : [{ type: "blockquote", blocks: [paragraph(block.text)] }]
    case "heading":
      return [{ type: "heading", text: richText(markedLine(block.text)), size: block.size }]
    case "item":
      return [listOf(group.flatMap((one) => (one.type === "item" ? [one] : [])))]
    case "line": {
      if (RULE.test(block.text)) return [{ type: "divider" }]
      const text = group.flatMap((one) => (one.type === "line" ? [one.text.trim()] : [])).join("\n")
      return text === "" ? [] : [paragraph(text)]
    }
  }
}

const plainText = (text: RichText): string => {
  if (typeof text === "string") return text
  return "type" in text ? plainText(text.text) : text.map(plainText).join("")
}

/** The blocks that Telegram counts: each with its items and rows. */
const countOf = (block: RichBlock): number => {
  const all = (blocks: ReadonlyArray<RichBlock>) => blocks.reduce((sum, one) => sum + countOf(one), 0)
  if (block.type === "list") return 1 + block.items.reduce((sum, { blocks }) => sum + 1 + all(blocks), 0)
  if (block.type === "table") return 1 + block.cells.length
  return 1 + (block.type === "blockquote" ? all(block.blocks) : 0)
}

const beginsPlainly = (block: RichBlock | undefined): boolean =>
  (block?.type === "paragraph" || block?.type === "heading") && opensPlainly(plainText(block.text))

/** The blocks of an agent's message; `undefined` where Telegram would not take so many, or so long ones. */
export const richBlocks = (row: Pick<Outgoing, "agent_id" | "text">): ReadonlyArray<RichBlock> | undefined => {
  const markdown = agentMarkdown(row)
  if (markdown.length > RICH_CHARS_MAX) return undefined
  const blocks = grouped(blocksOf(markdown)).flatMap(richOf)
  if (blocks.length === 0) return undefined
  const all = beginsPlainly(blocks[0]) ? blocks : [{ type: "paragraph", text: openingOf(row) } as const, ...blocks]
  return all.reduce((sum, block) => sum + countOf(block), 0) > RICH_BLOCKS_MAX ? undefined : all
}
