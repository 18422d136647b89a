/** choir.notion.query: the pages and data sources that the agent's Notion integration may see, read and written as Markdown. */
import { Effect, Schema } from "effect"
import { llmView } from "#src/agent/model/llmView.ts"
import { makeNotion, type Notion, NOTION_PAGE_MAX, type NotionList } from "#src/agent/notion/NotionApi.ts"
import { appendTo, createPage, idOf, readPage, titleOf } from "#src/agent/notion/notionPages.ts"
import type { OutsideProblem } from "#src/agent/outside/OutsideApi.ts"
import { decodeInput, refusal, type Tool, type ToolOutcome } from "./Tool.ts"

/** Many requests may make one call, and limits are waited for. */
const NOTION_TIMEOUT_MS = 120_000
const LISTED = 20
const MARKDOWN_CHARS_MAX = 200_000
const WORDS_CHARS_MAX = 500

/** The description belongs to the string: after the filter no provider would see it. */
const id = (description: string) =>
  Schema.String.annotate({ description }).check(
    Schema.isMaxLength(1000),
    Schema.makeFilter((text) => idOf(text) !== undefined || "an id or address of Notion has 32 hex digits")
  )
const Words = Schema.String.check(Schema.isMaxLength(WORDS_CHARS_MAX))
const Anything = Schema.Record(Schema.String, Schema.Json)

const Input = Schema.Struct({
  action: Schema.Literals(["search", "read", "create", "append", "query"]).annotate({ description: "The request" }),
  query: Schema.optionalKey(Words.annotate({ description: "search: words of the title" })),
  id: Schema.optionalKey(id("read, append: a page. query: a data source")),
  parent: Schema.optionalKey(id("create: the parent page")),
  data_source: Schema.optionalKey(id("create: the data source instead")),
  title: Schema.optionalKey(Words.annotate({ description: "create: the title" })),
  markdown: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(MARKDOWN_CHARS_MAX)).annotate({ description: "create, append: the text" })
  ),
  properties: Schema.optionalKey(Anything.annotate({ description: "create in a data source: as in Notion's API" })),
  filter: Schema.optionalKey(Anything.annotate({ description: "query: as in Notion's API" })),
  sorts: Schema.optionalKey(Schema.Array(Anything).annotate({ description: "query: as in Notion's API" })),
  cursor: Schema.optionalKey(Words.annotate({ description: "next of an earlier answer" })),
  limit: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: NOTION_PAGE_MAX })).annotate({
      description: `search, query: at most ${NOTION_PAGE_MAX}`
    })
  )
}).check(
  Schema.makeFilter(({ action, data_source, id, markdown, parent, title }) => {
    if ((action === "read" || action === "append" || action === "query") && id === undefined)
      return { path: ["id"], issue: `${action} needs the id` }
    if (action === "append" && (markdown ?? "") === "") return { path: ["markdown"], issue: "append needs markdown" }
    if (action !== "create") return undefined
    if (title === undefined) return { path: ["title"], issue: "create needs a title" }
    return (parent === undefined) === (data_source === undefined)
      ? { path: ["parent"], issue: "create needs either parent or data_source" }
      : undefined
  })
)
type Input = typeof Input.Type

const listed = ({ next, results }: NotionList): ToolOutcome => ({
  status: "success",
  summary: results.length === 0 ? "nothing found" : `${results.length} found${next === undefined ? "" : ", and more"}`,
  output: {
    found: results.map((one) => ({
      id: one["id"] ?? null,
      kind: one["object"] ?? null,
      title: titleOf(one),
      url: one["url"] ?? null,
      edited: one["last_edited_time"] ?? null,
      ...(one["object"] === "page" && one["properties"] !== undefined ? { properties: one["properties"] } : {})
    })),
    ...(next === undefined ? {} : { next })
  },
  sources: ["notion"]
})

const search = (notion: Notion, { cursor, limit = LISTED, query = "" }: Input) =>
  Effect.map(
    notion.list("POST", "/v1/search", {
      query,
      page_size: limit,
      ...(cursor === undefined ? {} : { start_cursor: cursor })
    }),
    ({ next, results }) =>
      // Their properties are long, and a search is for finding.
      listed({
        next,
        results: results.map(({ id, last_edited_time, object, properties, title, url }) => ({
          id: id ?? null,
          object: object ?? null,
          url: url ?? null,
          last_edited_time: last_edited_time ?? null,
          title: [
            {
              plain_text: titleOf({
                ...(properties === undefined ? {} : { properties }),
                ...(title === undefined ? {} : { title })
              })
            }
          ]
        }))
      })
  )

const query = (notion: Notion, id: string, { cursor, filter, limit = LISTED, sorts }: Input) =>
  Effect.map(
    notion.list("POST", `/v1/data_sources/${id}/query`, {
      page_size: limit,
      ...(filter === undefined ? {} : { filter }),
      ...(sorts === undefined ? {} : { sorts: sorts.map((sort) => ({ ...sort })) }),
      ...(cursor === undefined ? {} : { start_cursor: cursor })
    }),
    listed
  )

const read = (notion: Notion, id: string) =>
  Effect.map(readPage(notion, id), ({ isCut, ...page }): ToolOutcome => ({
    status: "success",
    summary: isCut ? "the page is longer than this; the rest is left out" : "the whole page",
    output: { id, ...page },
    sources: ["notion"]
  }))

const write = (notion: Notion, input: Input): Effect.Effect<ToolOutcome, OutsideProblem> => {
  const { action, data_source, markdown = "", parent, properties = {}, title = "" } = input
  if (action === "append")
    return Effect.map(appendTo(notion, idOf(input.id ?? "") ?? "", markdown), ({ blocks, is_named }) => ({
      status: "success",
      summary: `${blocks} block(s) added`,
      output: { blocks },
      acted: is_named ? "verified" : "accepted"
    }))
  const place =
    parent === undefined ? { data_source_id: idOf(data_source ?? "") ?? "" } : { page_id: idOf(parent) ?? "" }
  return Effect.map(createPage(notion, { parent: place, title, properties, markdown }), ({ is_named, ...made }) => ({
    status: "success",
    summary: `created the page ${made.id}`,
    output: made,
    acted: is_named ? "verified" : "accepted"
  }))
}

export const notionQuery = Effect.gen(function* () {
  const connect = yield* makeNotion
  const decode = decodeInput(Input)

  const run = Effect.fn("notionQuery.run")(function* (input: Input) {
    const notion = yield* connect
    const id = idOf(input.id ?? "") ?? ""
    switch (input.action) {
      case "search":
        return yield* search(notion, input)
      case "query":
        return yield* query(notion, id, input)
      case "read":
        return yield* read(notion, id)
      default:
        return yield* write(notion, input)
    }
  })

  const tool: Tool = {
    llm: llmView(
      "choir.notion.query",
      "Notion: search pages by title, read a page as Markdown, create a page, append Markdown to one, query a data source.",
      Input
    ),
    effect: "external",
    lanes: "both",
    prepare: Effect.fn("notionQuery.prepare")(function* (raw) {
      const input = yield* decode(raw)
      const writes = input.action === "create" || input.action === "append"
      return {
        locks: [],
        timeout_ms: NOTION_TIMEOUT_MS,
        effect: writes ? "external" : "none",
        run: () =>
          Effect.catch(run(input), (error) =>
            Effect.succeed<ToolOutcome>(
              writes && error.in_doubt ? { ...refusal(error), acted: "unknown" } : refusal(error)
            )
          )
      }
    })
  }
  return tool
})
