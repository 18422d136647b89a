/** Notion's REST API for one call: its address, version and token, its pages of answers, and its limits by Retry-After. */
import { Effect, Redacted, Schema } from "effect"
import { OutsideApi, OutsideProblem, type OutsideRequest } from "#src/agent/outside/OutsideApi.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { retryAfterMs } from "#src/shared/wire/retryAfterMs.ts"

const ENDPOINT = "https://api.notion.com"
/** The version that has data sources. */
const NOTION_VERSION = "2025-09-03"
/** Entries of one answer, and blocks of one request. */
export const NOTION_PAGE_MAX = 100

/** A list as every endpoint gives it. */
const Listed = Schema.Struct({
  results: Schema.Array(Schema.Record(Schema.String, Schema.Json)),
  has_more: Schema.optionalKey(Schema.Boolean),
  next_cursor: Schema.optionalKey(Schema.NullOr(Schema.String))
})
const decodeListed = Schema.decodeUnknownOption(Listed)
const decodeObject = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.Json))

export type NotionObject = Readonly<Record<string, Schema.Json>>

export interface NotionList {
  readonly results: ReadonlyArray<NotionObject>
  /** Where the list continues, if it does. */
  readonly next: string | undefined
}

const unknownForm = new OutsideProblem({ problem: "Notion answered in an unknown format", in_doubt: true })

/** The API with the token that the agent has now. */
export const makeNotion = Effect.gen(function* () {
  const api = yield* OutsideApi
  const settings = yield* AgentSettings
  const secrets = yield* SecretStore

  return Effect.gen(function* () {
    const { notion } = settings.current().config
    const token = notion === undefined ? undefined : yield* secrets.get(notion.secret)
    if (notion === undefined || token === undefined)
      return yield* new OutsideProblem({
        problem:
          notion === undefined
            ? "this agent no longer has a Notion integration"
            : `the Notion integration's secret has no value; the operator can set it: choirctl secret set ${notion.secret}`,
        in_doubt: false
      })
    const origin = (notion.endpoint ?? ENDPOINT).replace(/\/+$/u, "")
    const ask = (method: OutsideRequest["method"], path: string, body?: Schema.Json) =>
      api.ask({
        service: "Notion",
        source: "notion",
        method,
        url: `${origin}${path}`,
        headers: { authorization: `Bearer ${Redacted.value(token)}`, "notion-version": NOTION_VERSION },
        ...(body === undefined ? {} : { body }),
        waitOf: retryAfterMs
      })
    return {
      object: (method: OutsideRequest["method"], path: string, body?: Schema.Json) =>
        Effect.flatMap(ask(method, path, body), (json): Effect.Effect<NotionObject, OutsideProblem> => {
          const object = decodeObject(json)
          return object._tag === "Some" ? Effect.succeed(object.value) : Effect.fail(unknownForm)
        }),
      list: (method: OutsideRequest["method"], path: string, body?: Schema.Json) =>
        Effect.flatMap(ask(method, path, body), (json): Effect.Effect<NotionList, OutsideProblem> => {
          const list = decodeListed(json)
          if (list._tag === "None") return Effect.fail(unknownForm)
          const { has_more, next_cursor, results } = list.value
          return Effect.succeed({ results, next: has_more === true ? (next_cursor ?? undefined) : undefined })
        })
    }
  })
})
export type Notion = Effect.Success<Effect.Success<typeof makeNotion>>
