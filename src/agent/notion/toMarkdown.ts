/** Blocks of Notion as Markdown. What has no form in it stays visible as the name of its kind. Pure. */
import type { Schema } from "effect"
import type { NotionObject } from "./NotionApi.ts"

/** A block with the blocks within it. */
export interface NotionBlock {
  readonly block: NotionObject
  readonly children: ReadonlyArray<NotionBlock>
}

const isObject = (value: Schema.Json | undefined): value is NotionObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const objectOf = (value: Schema.Json | undefined): NotionObject => (isObject(value) ? value : {})
const listOf = (value: Schema.Json | undefined): ReadonlyArray<Schema.Json> =>
  Array.isArray(value) ? (value as ReadonlyArray<Schema.Json>) : []
const textOf = (value: Schema.Json | undefined): string => (typeof value === "string" ? value : "")

const styled = (text: string, annotations: NotionObject): string => {
  if (text.trim() === "") return text
  const [words, before] = [text.trim(), text.slice(0, text.length - text.trimStart().length)]
  const after = text.slice(text.trimEnd().length)
  if (annotations["code"] === true) return `${before}\`${words}\`${after}`
  const bold = annotations["bold"] === true ? `**${words}**` : words
  const italic = annotations["italic"] === true ? `*${bold}*` : bold
  return `${before}${annotations["strikethrough"] === true ? `~~${italic}~~` : italic}${after}`
}

/** The words of a rich text, with their style. */
export const richText = (value: Schema.Json | undefined): string =>
  listOf(value)
    .map((part) => {
      const { annotations, href, plain_text, text } = objectOf(part)
      const words = textOf(plain_text) === "" ? textOf(objectOf(text)["content"]) : textOf(plain_text)
      const shown = styled(words, objectOf(annotations))
      return typeof href === "string" && href !== words ? `[${shown}](${href})` : shown
    })
    .join("")

/** The words of a rich text alone. */
export const plainText = (value: Schema.Json | undefined): string =>
  listOf(value)
    .map((part) => textOf(objectOf(part)["plain_text"]))
    .join("")

const rows = (children: ReadonlyArray<NotionBlock>): string => {
  const cells = children.map(({ block }) =>
    listOf(objectOf(block["table_row"])["cells"]).map((cell) =>
      richText(cell).replaceAll("|", "\\|").replaceAll("\n", " ")
    )
  )
  const [head = [], ...rest] = cells
  const line = (row: ReadonlyArray<string>) => `| ${row.join(" | ")} |`
  return [line(head), line(head.map(() => "---")), ...rest.map(line)].join("\n")
}

const fileOf = (content: NotionObject): string =>
  textOf(content["url"]) || textOf(objectOf(content["external"])["url"]) || textOf(objectOf(content["file"])["url"])

type Line = (content: NotionObject, words: string) => string

const FORMS: Readonly<Record<string, Line>> = {
  paragraph: (_, words) => words,
  heading_1: (_, words) => `# ${words}`,
  heading_2: (_, words) => `## ${words}`,
  heading_3: (_, words) => `### ${words}`,
  bulleted_list_item: (_, words) => `- ${words}`,
  numbered_list_item: (_, words) => `1. ${words}`,
  to_do: (content, words) => `- [${content["checked"] === true ? "x" : " "}] ${words}`,
  toggle: (_, words) => `- ${words}`,
  quote: (_, words) => `> ${words.replaceAll("\n", "\n> ")}`,
  callout: (_, words) => `> ${words.replaceAll("\n", "\n> ")}`,
  code: (content) =>
    `\`\`\`${textOf(content["language"]).replace("plain text", "")}\n${plainText(content["rich_text"])}\n\`\`\``,
  equation: (content) => `$$${textOf(content["expression"])}$$`,
  divider: () => "---",
  child_page: (content) => `[page: ${textOf(content["title"])}]`,
  child_database: (content) => `[database: ${textOf(content["title"])}]`
}

const LIST = new Set(["bulleted_list_item", "numbered_list_item", "to_do", "toggle"])

const lineOf = ({ block, children }: NotionBlock): string => {
  const type = textOf(block["type"])
  const content = objectOf(block[type])
  if (type === "table") return rows(children)
  const form = FORMS[type]
  const words = richText(content["rich_text"])
  if (form !== undefined) {
    const id = type.startsWith("child_") ? ` (${textOf(block["id"])})` : ""
    return form(content, words) + id
  }
  const address = fileOf(content)
  return address === "" ? `[${type || "block"}]` : `[${richText(content["caption"]) || type}](${address})`
}

const indented = (text: string, by: string): string => text.replaceAll(/^(?=.)/gmu, by)

/** The blocks in their order, list entries without a line between them. */
export const toMarkdown = (blocks: ReadonlyArray<NotionBlock>): string => {
  let text = ""
  let before = ""
  for (const one of blocks) {
    const type = textOf(one.block["type"])
    const isTight = LIST.has(type) && LIST.has(before)
    const inner = type === "table" || one.children.length === 0 ? "" : toMarkdown(one.children)
    const under = inner === "" ? "" : `\n${LIST.has(type) ? indented(inner, "  ") : inner}`
    text += `${text === "" ? "" : isTight ? "\n" : "\n\n"}${lineOf(one)}${under}`
    before = type
  }
  return text
}
