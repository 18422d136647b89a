/** Pages and data sources of Notion: read with all that is in them, made, and added to. */
import { Effect, type Schema } from "effect"
import { OutsideProblem } from "#src/agent/outside/OutsideApi.ts"
import { type Notion, NOTION_PAGE_MAX, type NotionObject } from "./NotionApi.ts"
import { toBlocks } from "./toBlocks.ts"
import { type NotionBlock, plainText, toMarkdown } from "./toMarkdown.ts"

/** Requests for the blocks of one page, and levels of blocks within blocks. */
const READ_REQUESTS_MAX = 30
const READ_LEVELS_MAX = 5
/** Characters of a page that a model is shown. */
const NOTION_TEXT_CHARS_MAX = 24_000

/** Ids and addresses of pages hold 32 hex digits. */
export const idOf = (text: string): string | undefined => {
  const digits = text.replace(/[?#].*$/su, "").replaceAll("-", "")
  return /([0-9a-f]{32})$/iu.exec(digits)?.[1]?.toLowerCase()
}

/** The id that Notion gave an object, if it did. */
const ownId = ({ id }: NotionObject): string | undefined => (typeof id === "string" ? idOf(id) : undefined)

interface Reading {
  requests: number
  isCut: boolean
}

const blocksOf = (
  notion: Notion,
  id: string,
  level: number,
  reading: Reading
): Effect.Effect<ReadonlyArray<NotionBlock>, OutsideProblem> =>
  Effect.gen(function* () {
    const found: Array<NotionBlock> = []
    let cursor: string | undefined
    do {
      if (reading.requests >= READ_REQUESTS_MAX) {
        reading.isCut = true
        break
      }
      reading.requests += 1
      const from = cursor === undefined ? "" : `&start_cursor=${encodeURIComponent(cursor)}`
      const { next, results } = yield* notion.list(
        "GET",
        `/v1/blocks/${id}/children?page_size=${NOTION_PAGE_MAX}${from}`
      )
      for (const block of results) {
        const inner = ownId(block)
        const isOpen =
          block["has_children"] === true && !(typeof block["type"] === "string" && block["type"].startsWith("child_"))
        const children =
          isOpen && inner !== undefined && level < READ_LEVELS_MAX
            ? yield* blocksOf(notion, inner, level + 1, reading)
            : []
        if (isOpen && level >= READ_LEVELS_MAX) reading.isCut = true
        found.push({ block, children })
      }
      cursor = next
    } while (cursor !== undefined)
    return found
  })

/** The title among the properties of a page, whatever it is called. */
export const titleOf = ({ properties, title }: NotionObject): string => {
  if (Array.isArray(title)) return plainText(title)
  if (typeof properties !== "object" || properties === null || Array.isArray(properties)) return ""
  const found = Object.values(properties).find(
    (property): property is NotionObject =>
      typeof property === "object" && property !== null && !Array.isArray(property) && "title" in property
  )
  return plainText(found?.["title"])
}

/** A page as Markdown. */
export const readPage = Effect.fn("notion.readPage")(function* (notion: Notion, id: string) {
  const page = yield* notion.object("GET", `/v1/pages/${id}`)
  const reading: Reading = { requests: 0, isCut: false }
  const markdown = toMarkdown(yield* blocksOf(notion, id, 1, reading))
  const isCut = reading.isCut || markdown.length > NOTION_TEXT_CHARS_MAX
  return {
    title: titleOf(page),
    url: page["url"] ?? null,
    markdown: markdown.slice(0, NOTION_TEXT_CHARS_MAX).toWellFormed(),
    isCut
  }
})

export interface Added {
  readonly blocks: number
  /** Whether Notion named each of them by an id, which proves that they are there. */
  readonly is_named: boolean
}

/** Adds the blocks in requests of what one takes. How many were added is in the error of one that failed. */
const addBlocks = (
  notion: Notion,
  id: string,
  blocks: ReadonlyArray<NotionObject>
): Effect.Effect<Added, OutsideProblem> =>
  Effect.gen(function* () {
    let named = 0
    for (let at = 0; at < blocks.length; at += NOTION_PAGE_MAX) {
      const children = blocks.slice(at, at + NOTION_PAGE_MAX) as Schema.Json
      const answer = notion.list("PATCH", `/v1/blocks/${id}/children`, { children })
      const { results } = yield* Effect.mapError(answer, ({ in_doubt, problem, sources }) => {
        const label = sources === undefined ? {} : { sources }
        return at === 0
          ? new OutsideProblem({ problem, in_doubt, ...label })
          : new OutsideProblem({
              problem: `${at} of ${blocks.length} blocks were added, then: ${problem}`,
              in_doubt: true,
              ...label
            })
      })
      named += results.filter((block) => ownId(block) !== undefined).length
    }
    return { blocks: blocks.length, is_named: named === blocks.length }
  })

export const appendTo = (notion: Notion, id: string, markdown: string) => addBlocks(notion, id, toBlocks(markdown))

export interface NewPage {
  readonly parent: { readonly page_id: string } | { readonly data_source_id: string }
  readonly title: string
  readonly properties: NotionObject
  readonly markdown: string
}

/** The address of a page, which has no words of others in it. */
const PAGE_URL = /^https:\/\/[!-~]{1,300}$/u

export const createPage = Effect.fn("notion.createPage")(function* (notion: Notion, page: NewPage) {
  const { markdown, parent, properties, title } = page
  const blocks = toBlocks(markdown)
  const name = "page_id" in parent ? "title" : yield* titleProperty(notion, parent.data_source_id)
  const body = {
    parent: { type: "page_id" in parent ? "page_id" : "data_source_id", ...parent },
    properties: { ...properties, [name]: { title: [{ type: "text", text: { content: title } }] } },
    children: blocks.slice(0, NOTION_PAGE_MAX)
  }
  const made = yield* notion.object("POST", "/v1/pages", body)
  const id = ownId(made)
  if (id === undefined) return yield* new OutsideProblem({ problem: "Notion gave the page no id", in_doubt: true })
  const rest = yield* Effect.mapError(
    addBlocks(notion, id, blocks.slice(NOTION_PAGE_MAX)),
    ({ problem, sources }) =>
      new OutsideProblem({
        problem: `the page ${id} was made, but not all of it: ${problem}`,
        in_doubt: true,
        ...(sources === undefined ? {} : { sources })
      })
  )
  const { url } = made
  const own = typeof url === "string" && PAGE_URL.test(url) ? url : null
  return { id, url: own, blocks: blocks.length, is_named: rest.is_named }
})

/** Each data source calls the title of its pages as it likes. */
const titleProperty = Effect.fnUntraced(function* (notion: Notion, id: string) {
  const { properties } = yield* notion.object("GET", `/v1/data_sources/${id}`)
  const known = typeof properties === "object" && properties !== null && !Array.isArray(properties) ? properties : {}
  return (
    Object.entries(known).find(([, property]) => (property as NotionObject | null)?.["type"] === "title")?.[0] ?? "Name"
  )
})
