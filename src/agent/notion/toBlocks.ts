/** Markdown as blocks of Notion, within what the API takes in one request. Pure. */
import type { Schema } from "effect"
import type { NotionObject } from "./NotionApi.ts"

/** Characters of one piece of rich text, pieces of one text, and levels of lists in one request. */
const PIECE_CHARS_MAX = 2000
const PIECES_MAX = 100
const LIST_LEVELS_MAX = 2

const LANGUAGES = new Set([
  "bash",
  "c",
  "c++",
  "c#",
  "css",
  "diff",
  "docker",
  "go",
  "graphql",
  "html",
  "java",
  "javascript",
  "json",
  "kotlin",
  "latex",
  "lua",
  "makefile",
  "markdown",
  "php",
  "plain text",
  "python",
  "r",
  "ruby",
  "rust",
  "scala",
  "shell",
  "sql",
  "swift",
  "typescript",
  "xml",
  "yaml"
])

interface Style {
  readonly bold?: boolean
  readonly italic?: boolean
  readonly strikethrough?: boolean
  readonly code?: boolean
}

// A longer label is left as it is written, or the end of each of many brackets would be searched again.
const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|~~([^~\n]+)~~|\*([^*\n]+)\*|\[([^\]\n]{1,500})\]\((https?:\/\/[^\s)]+)\)/u

const pieces = (text: string, style: Style, url: string | undefined): ReadonlyArray<NotionObject> => {
  const found: Array<NotionObject> = []
  for (let at = 0; at < text.length; at += PIECE_CHARS_MAX) {
    const content = text.slice(at, at + PIECE_CHARS_MAX).toWellFormed()
    found.push({
      type: "text",
      text: { content, ...(url === undefined ? {} : { link: { url } }) },
      ...(Object.keys(style).length === 0 ? {} : { annotations: { ...style } })
    })
  }
  return found
}

/** Words with the styles that Markdown has for them. */
const richText = (line: string): ReadonlyArray<NotionObject> => {
  const found: Array<NotionObject> = []
  let rest = line
  while (rest !== "" && found.length < PIECES_MAX - 1) {
    const match = INLINE.exec(rest)
    if (match === null) break
    found.push(...pieces(rest.slice(0, match.index), {}, undefined))
    const [whole, code, bold, strikethrough, italic, words, url] = match
    if (code !== undefined) found.push(...pieces(code, { code: true }, undefined))
    else if (bold !== undefined) found.push(...pieces(bold, { bold: true }, undefined))
    else if (strikethrough !== undefined) found.push(...pieces(strikethrough, { strikethrough: true }, undefined))
    else if (italic !== undefined) found.push(...pieces(italic, { italic: true }, undefined))
    else found.push(...pieces(words ?? "", {}, url))
    rest = rest.slice(match.index + whole.length)
  }
  return [...found, ...pieces(rest, {}, undefined)].slice(0, PIECES_MAX)
}

const block = (type: string, content: NotionObject): NotionObject => ({ object: "block", type, [type]: content })
const words = (type: string, line: string, more: NotionObject = {}): NotionObject =>
  block(type, { rich_text: [...richText(line)] as Schema.Json, ...more })

interface Line {
  readonly level: number
  readonly block: NotionObject
}

const listLine = (line: string): Line | undefined => {
  const [, spaces = "", mark = "", rest = ""] = /^( *|\t*)([-*+]|\d{1,9}[.)]) +(.*)$/su.exec(line) ?? []
  if (mark === "") return undefined
  const level = Math.min(LIST_LEVELS_MAX - 1, Math.floor(spaces.replaceAll("\t", "  ").length / 2))
  const task = /^\[([ xX])\] +(.*)$/su.exec(rest)
  if (task !== null) return { level, block: words("to_do", task[2] ?? "", { checked: task[1] !== " " }) }
  return { level, block: words(/^\d/u.test(mark) ? "numbered_list_item" : "bulleted_list_item", rest) }
}

const HEADING = /^(#{1,6}) +(.*)$/su
const ROW = /^\s*\|(.*)\|\s*$/u
const isStart = (line: string): boolean =>
  line.trim() === "" || HEADING.test(line) || listLine(line) !== undefined || /^(?:```|>|\||-{3,}\s*$)/u.test(line)

const cellsOf = (line: string): ReadonlyArray<string> =>
  (ROW.exec(line)?.[1] ?? "").split(/(?<!\\)\|/u).map((cell) => cell.trim().replaceAll("\\|", "|"))

const table = (lines: ReadonlyArray<string>): NotionObject => {
  const rows = lines.filter((line) => !/^[\s|:-]+$/u.test(line)).map(cellsOf)
  const width = Math.max(1, ...rows.map(({ length }) => length))
  const children = rows.map((row) =>
    block("table_row", { cells: Array.from({ length: width }, (_, at) => [...richText(row[at] ?? "")]) as Schema.Json })
  )
  return block("table", {
    table_width: width,
    has_column_header: true,
    has_row_header: false,
    children
  })
}

/** With a list entry in its place: below the one before where it is further in. */
const withListLine = (blocks: Array<NotionObject>, { block: entry, level }: Line): void => {
  const last = blocks.at(-1)
  const type = typeof last?.["type"] === "string" ? last["type"] : ""
  const content = last?.[type]
  const isList = type.endsWith("list_item") || type === "to_do"
  if (level === 0 || !isList || typeof content !== "object" || content === null || Array.isArray(content)) {
    blocks.push(entry)
    return
  }
  const known = (content as NotionObject)["children"]
  const children = [...(Array.isArray(known) ? (known as ReadonlyArray<Schema.Json>) : []), entry]
  blocks[blocks.length - 1] = { ...last, [type]: { ...(content as NotionObject), children } }
}

export const toBlocks = (markdown: string): ReadonlyArray<NotionObject> => {
  const lines = markdown.replaceAll(/\r\n?/gu, "\n").split("\n")
  const blocks: Array<NotionObject> = []
  let at = 0
  const take = (while_: (line: string) => boolean): ReadonlyArray<string> => {
    const from = at
    while (at < lines.length && while_(lines[at] ?? "")) at += 1
    return lines.slice(from, at)
  }
  while (at < lines.length) {
    const line = lines[at] ?? ""
    const heading = HEADING.exec(line)
    const entry = listLine(line)
    if (line.startsWith("```")) {
      at += 1
      const language = line.slice(3).trim().toLowerCase()
      const code = take((next) => !next.startsWith("```")).join("\n")
      at += 1
      const rich_text = pieces(code, {}, undefined).slice(0, PIECES_MAX) as Schema.Json
      blocks.push(block("code", { rich_text, language: LANGUAGES.has(language) ? language : "plain text" }))
    } else if (heading !== null) {
      blocks.push(words(`heading_${Math.min(3, heading[1]?.length ?? 1)}`, heading[2] ?? ""))
      at += 1
    } else if (/^-{3,}\s*$/u.test(line)) {
      blocks.push(block("divider", {}))
      at += 1
    } else if (line.startsWith(">")) {
      blocks.push(
        words(
          "quote",
          take((next) => next.startsWith(">"))
            .map((next) => next.replace(/^> ?/u, ""))
            .join("\n")
        )
      )
    } else if (ROW.test(line)) blocks.push(table(take((next) => ROW.test(next))))
    else if (entry !== undefined) {
      withListLine(blocks, entry)
      at += 1
    } else if (line.trim() === "") at += 1
    else {
      const first = at
      at += 1
      take((next) => !isStart(next))
      blocks.push(words("paragraph", lines.slice(first, at).join("\n")))
    }
  }
  return blocks
}
