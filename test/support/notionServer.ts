/** Notion's API on loopback over pages in memory, which refuses what the real one refuses. */
import { Effect } from "effect"
import { type Answered, type Asked, answeringServer } from "./answeringServer.ts"

export const NOTION_TOKEN = "ntn_token-of-tests"
type Json = Record<string, unknown>

const failed = (status: number, code: string, message: string): Answered => ({
  status,
  body: { object: "error", status, code, message, request_id: "r" }
})
const invalid = (message: string) => failed(400, "validation_error", message)

const TEXTS = [
  "paragraph",
  "heading_1",
  "heading_2",
  "heading_3",
  "bulleted_list_item",
  "numbered_list_item",
  "to_do",
  "quote",
  "code"
]
const KEYS: Readonly<Record<string, ReadonlyArray<string>>> = {
  ...Object.fromEntries(TEXTS.map((type) => [type, ["rich_text", "children", "color"]])),
  to_do: ["rich_text", "children", "checked"],
  code: ["rich_text", "language", "caption"],
  divider: [],
  table: ["table_width", "has_column_header", "has_row_header", "children"],
  table_row: ["cells"]
}

const textProblem = (value: unknown): string | undefined => {
  if (!Array.isArray(value) || value.length > 100) return "rich_text should be an array of at most 100"
  for (const part of value as ReadonlyArray<Json>) {
    const content = (part["text"] as Json | undefined)?.["content"]
    if (part["type"] !== "text" || typeof content !== "string") return "text.content should be defined"
    if (content.length > 2000) return `text.content.length should be ≤ 2000, instead was ${content.length}`
  }
  return undefined
}

/** The API takes two levels of blocks within blocks. */
const blockProblem = (block: Json, level: number): string | undefined => {
  const type = String(block["type"])
  const content = block[type] as Json | undefined
  const keys = KEYS[type]
  if (keys === undefined || content === undefined) return `body.children: ${type} is not a block type`
  const unknown = Object.keys(content).find((key) => !keys.includes(key))
  if (unknown !== undefined) return `${type}.${unknown} should be not present`
  if (TEXTS.includes(type)) {
    const problem = textProblem(content["rich_text"])
    if (problem !== undefined) return problem
  }
  if (type === "table_row") {
    const cell = (content["cells"] as ReadonlyArray<unknown>).map(textProblem).find((problem) => problem !== undefined)
    if (cell !== undefined) return cell
  }
  const children = content["children"] as ReadonlyArray<Json> | undefined
  return children === undefined ? undefined : childrenProblem(children, level + 1)
}

const childrenProblem = (children: unknown, level: number): string | undefined => {
  if (!Array.isArray(children)) return "body.children should be an array"
  if (children.length > 100) return `body.children.length should be ≤ 100, instead was ${children.length}`
  if (level > 2) return "blocks are nested too deep"
  return children.map((child) => blockProblem(child as Json, level)).find((problem) => problem !== undefined)
}

const withPlainText = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withPlainText)
  if (typeof value !== "object" || value === null) return value
  const own: Json = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withPlainText(inner)]))
  const text = own["text"] as Json | undefined
  if (own["type"] !== "text" || text === undefined) return own
  const href = (text["link"] as Json | undefined)?.["url"] ?? null
  return { annotations: {}, ...own, plain_text: text["content"], href }
}

export interface NotionPage {
  readonly id: string
  readonly title: string
  readonly children: Array<Json>
}

/** `limits` are the seconds of Retry-After that the first requests get instead of an answer. */
export const notionServer = (pages: ReadonlyArray<NotionPage>, limits: ReadonlyArray<number> = []) => {
  const held = new Map<string, { readonly object: Json; readonly children: Array<Json> }>()
  let made = 0
  let limited = 0
  const newId = () => (made++).toString(16).padStart(32, "e")
  const pageObject = (id: string, properties: unknown) => ({
    object: "page",
    id,
    url: `https://notion.example/${id}`,
    last_edited_time: "2026-11-02T10:00:00.000Z",
    properties
  })
  const store = (children: ReadonlyArray<Json>): Array<Json> =>
    children.map((child) => {
      const type = String(child["type"])
      const content = { ...(child[type] as Json) }
      const inner = (content["children"] ?? []) as ReadonlyArray<Json>
      delete content["children"]
      const id = newId()
      held.set(id, { object: { object: "block", id }, children: store(inner) })
      return { object: "block", id, type, has_children: inner.length > 0, [type]: withPlainText(content) }
    })
  for (const { children, id, title } of pages)
    held.set(id, {
      object: pageObject(id, {
        title: { id: "title", type: "title", title: [{ type: "text", plain_text: title, text: { content: title } }] }
      }),
      children: store(children)
    })
  const page = (list: ReadonlyArray<Json>, size: number, cursor: string | null): Answered => {
    const from = Number(cursor ?? 0)
    const next = from + size < list.length ? String(from + size) : null
    return {
      status: 200,
      body: { object: "list", results: list.slice(from, from + size), has_more: next !== null, next_cursor: next }
    }
  }
  const sizeOf = (value: unknown): number | undefined => {
    const size = Number(value ?? 100)
    return Number.isInteger(size) && size >= 1 && size <= 100 ? size : undefined
  }

  const answer = ({ body, headers, method, url }: Asked): Answered => {
    if (headers.authorization !== `Bearer ${NOTION_TOKEN}`) return failed(401, "unauthorized", "API token is invalid.")
    if (headers["notion-version"] !== "2025-09-03")
      return failed(400, "missing_version", "Notion-Version header should be defined")
    const wait = limits[limited++]
    if (wait !== undefined)
      return { ...failed(429, "rate_limited", "slow down"), headers: { "retry-after": String(wait) } }
    const given = (body === "" ? {} : JSON.parse(body)) as Json
    const [, kind = "", id = "", part = ""] = /^\/v1\/(\w+)\/?(\w*)\/?(\w*)$/u.exec(url.pathname) ?? []
    const found = held.get(id)
    if (method === "GET" && kind === "users" && id === "me")
      return { status: 200, body: { object: "user", id: "b".repeat(32), type: "bot", bot: {}, name: "Choir" } }
    if (method === "POST" && kind === "search") {
      const size = sizeOf(given["page_size"])
      const words = (typeof given["query"] === "string" ? given["query"] : "").toLowerCase()
      const all = [...held.values()]
        .map(({ object }) => object)
        .filter((one) => one["object"] === "page" && JSON.stringify(one).toLowerCase().includes(words))
      return size === undefined
        ? invalid("page_size should be ≤ 100")
        : page(all, size, given["start_cursor"] as string | null)
    }
    if (method === "POST" && kind === "data_sources" && part === "query") {
      const size = sizeOf(given["page_size"])
      const filter = given["filter"] as Json | undefined
      if (filter !== undefined && !("property" in filter) && !("and" in filter) && !("or" in filter))
        return invalid("body.filter should have a property")
      const all = [...held.values()].map(({ object }) => object).filter((one) => one["object"] === "page")
      return size === undefined
        ? invalid("page_size should be ≤ 100")
        : page(all, size, given["start_cursor"] as string | null)
    }
    if (method === "GET" && kind === "data_sources")
      return {
        status: 200,
        body: { object: "data_source", id, properties: { Task: { id: "title", type: "title", title: {} } } }
      }
    if (method === "POST" && kind === "pages") {
      const parent = given["parent"] as Json
      const isSource = parent["type"] === "data_source_id"
      if (!isSource && !held.has(String(parent["page_id"])))
        return failed(404, "object_not_found", "Could not find page")
      const name = isSource ? "Task" : "title"
      if ((given["properties"] as Json)[name] === undefined) return invalid(`${name} is not a property that exists`)
      const problem = childrenProblem(given["children"], 1)
      if (problem !== undefined) return invalid(problem)
      const made = newId()
      held.set(made, {
        object: pageObject(made, withPlainText(given["properties"])),
        children: store(given["children"] as ReadonlyArray<Json>)
      })
      return { status: 200, body: held.get(made)?.object }
    }
    if (found === undefined)
      return failed(
        404,
        "object_not_found",
        `Could not find ${kind} with ID: ${id}. Make sure the relevant pages are shared with your integration.`
      )
    if (method === "GET" && kind === "pages") return { status: 200, body: found.object }
    if (kind !== "blocks" || part !== "children") return failed(400, "invalid_request_url", "Invalid request URL.")
    if (method === "GET") {
      const size = sizeOf(url.searchParams.get("page_size") ?? undefined)
      return size === undefined
        ? invalid("page_size should be ≤ 100")
        : page(found.children, size, url.searchParams.get("start_cursor"))
    }
    const problem = childrenProblem(given["children"], 1)
    if (problem !== undefined) return invalid(problem)
    const added = store(given["children"] as ReadonlyArray<Json>)
    found.children.push(...added)
    return { status: 200, body: { object: "list", results: added, has_more: false, next_cursor: null } }
  }
  return Effect.map(answeringServer(answer), (server) => ({ ...server, held }))
}
