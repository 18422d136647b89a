/** choir.web.search: pages of the web that fit words, by Brave's API. */
import { Effect, Redacted, Schema } from "effect"
import { llmView } from "#src/agent/model/llmView.ts"
import {
  OUTSIDE_ANSWER_MS_MAX,
  OUTSIDE_WAIT_MS_MAX,
  OutsideApi,
  OutsideProblem
} from "#src/agent/outside/OutsideApi.ts"
import { oneLine } from "#src/shared/text/foreignText.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { retryAfterMs } from "#src/shared/wire/retryAfterMs.ts"
import { decodeInput, refusal, type Tool, type ToolOutcome } from "./Tool.ts"

const ENDPOINT = "https://api.search.brave.com/res/v1/web/search"
/** The limits of the API. */
const QUERY_CHARS_MAX = 400
const QUERY_WORDS_MAX = 50
const COUNT_MAX = 20
const PAGES_MAX = 9
const COUNT = 10
/** Characters of a title and a description that a model is shown. */
const PART_CHARS_MAX = 500
const URL_CHARS_MAX = 2000

const PERIODS = { day: "pd", week: "pw", month: "pm", year: "py" } as const

const Input = Schema.Struct({
  query: Schema.String.annotate({ description: "Words that pages have" }).check(
    Schema.isTrimmed({ message: "no spaces at the ends" }),
    Schema.isNonEmpty(),
    Schema.isMaxLength(QUERY_CHARS_MAX),
    Schema.makeFilter((query) => query.split(/\s+/u).length <= QUERY_WORDS_MAX || `at most ${QUERY_WORDS_MAX} words`)
  ),
  count: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: COUNT_MAX })).annotate({
      description: `Results, at most ${COUNT_MAX}. Default ${COUNT}`
    })
  ),
  page: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: PAGES_MAX })).annotate({ description: "From 0" })
  ),
  freshness: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^(?:day|week|month|year|\d{4}-\d{2}-\d{2}to\d{4}-\d{2}-\d{2})$/u, {
        message: "freshness is day, week, month, year or YYYY-MM-DDtoYYYY-MM-DD"
      })
    ).annotate({ description: "day, week, month, year or YYYY-MM-DDtoYYYY-MM-DD" })
  ),
  safe_search: Schema.optionalKey(
    Schema.Literals(["off", "moderate", "strict"]).annotate({ description: "Whether adult pages are left out" })
  )
})
type Input = typeof Input.Type

/** The input as models see it: hardly a search needs another choice than the usual one, which is accepted all the same. */
const { safe_search: _safe, ...OFFERED } = Input.fields

const Answer = Schema.Struct({
  web: Schema.optionalKey(
    Schema.Struct({
      results: Schema.Array(
        Schema.Struct({
          title: Schema.String,
          url: Schema.String,
          description: Schema.optionalKey(Schema.NullOr(Schema.String)),
          age: Schema.optionalKey(Schema.NullOr(Schema.String))
        })
      )
    })
  ),
  query: Schema.optionalKey(Schema.Struct({ more_results_available: Schema.optionalKey(Schema.Boolean) }))
})
const decodeAnswer = Schema.decodeUnknownOption(Answer)

/** The signs that the engine writes in another way within its texts, which otherwise are not HTML. */
const SIGNS: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  "#x27": "'",
  "#39": "'",
  nbsp: " ",
  amp: "&"
}

const part = (text: string): string => {
  const plain = text.replaceAll(/<\/?[a-z][^>]*>/giu, "")
  const words = plain.replaceAll(
    /&(lt|gt|quot|apos|#x27|#39|nbsp|amp);/giu,
    (sign, name: string) => SIGNS[name.toLowerCase()] ?? sign
  )
  return oneLine(words, PART_CHARS_MAX)
}

const isWeb = (url: string): boolean => /^https?:\/\/[!-~]+$/u.test(url) && url.length <= URL_CHARS_MAX

/** "1, 0" of `x-ratelimit-remaining` and "1, 86400" of `x-ratelimit-reset`: one number for each window. */
const numbers = (header: string | undefined): ReadonlyArray<number> =>
  header === undefined ? [] : header.split(",").map(Number)

/** Milliseconds until every window that is used up begins again. */
export const braveWait = (
  headers: Readonly<Record<string, string | undefined>>,
  now_ms: number
): number | undefined => {
  const after = retryAfterMs(headers, now_ms)
  if (after !== undefined) return after
  const resets = numbers(headers["x-ratelimit-reset"])
  const used = numbers(headers["x-ratelimit-remaining"]).flatMap((left, window) =>
    left === 0 ? [resets[window] ?? 0] : []
  )
  const seconds = Math.max(...used)
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined
}

const urlOf = (
  endpoint: string,
  { count = COUNT, freshness, page = 0, query, safe_search = "moderate" }: Input
): string => {
  const url = new URL(endpoint)
  const period = freshness === undefined ? undefined : Object.entries(PERIODS).find(([name]) => name === freshness)?.[1]
  const values = {
    q: query,
    count: String(count),
    offset: String(page),
    safesearch: safe_search,
    text_decorations: "0"
  }
  for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value)
  if (freshness !== undefined) url.searchParams.set("freshness", period ?? freshness)
  return url.href
}

const outcomeOf = ({ query, web }: typeof Answer.Type): ToolOutcome => {
  const results = (web?.results ?? [])
    .filter(({ url }) => isWeb(url))
    .slice(0, COUNT_MAX)
    .map(({ age, description, title, url }) => ({
      title: part(title),
      url,
      text: part(description ?? ""),
      ...(age === undefined || age === null ? {} : { age: part(age) })
    }))
  return {
    status: "success",
    summary: results.length === 0 ? "nothing found" : `${results.length} result(s)`,
    output: { results, ...(query?.more_results_available === true ? { more: true } : {}) },
    sources: ["search"]
  }
}

export const webSearch = Effect.gen(function* () {
  const api = yield* OutsideApi
  const settings = yield* AgentSettings
  const secrets = yield* SecretStore
  const decode = decodeInput(Input)

  const run = Effect.fn("webSearch.run")(function* (input: Input) {
    const { search } = settings.current().config
    const key = search === undefined ? undefined : yield* secrets.get(search.secret)
    if (search === undefined || key === undefined)
      return yield* new OutsideProblem({
        problem: `the search engine's secret has no value${search === undefined ? "" : `; the operator can set it: choirctl secret set ${search.secret}`}`,
        in_doubt: false
      })
    const answer = yield* api.ask({
      service: "the search engine",
      source: "search",
      method: "GET",
      url: urlOf(search.endpoint ?? ENDPOINT, input),
      headers: { "x-subscription-token": Redacted.value(key) },
      waitOf: braveWait
    })
    const known = decodeAnswer(answer)
    if (known._tag === "Some") return outcomeOf(known.value)
    return yield* new OutsideProblem({
      problem: "the search engine answered in an unknown format",
      in_doubt: false
    })
  })

  const tool: Tool = {
    llm: llmView(
      "choir.web.search",
      "Search the web: titles, addresses and excerpts of pages.",
      Schema.Struct(OFFERED)
    ),
    effect: "none",
    lanes: "both",
    prepare: Effect.fn("webSearch.prepare")(function* (raw) {
      const input = yield* decode(raw)
      return {
        locks: [],
        timeout_ms: 3 * OUTSIDE_ANSWER_MS_MAX + 2 * OUTSIDE_WAIT_MS_MAX,
        run: () => Effect.catch(run(input), (error) => Effect.succeed(refusal(error)))
      }
    })
  }
  return tool
})
