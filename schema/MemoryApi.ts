/** The operator's endpoints about agents' long-term memory. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { AgentId, SessionId } from "./Ids.ts"
import {
  DocumentId,
  Fact,
  FactKey,
  FactText,
  Forget,
  ForgetPlan,
  ForgetReceipt,
  MEMORY_HITS_MAX,
  MEMORY_QUERY_CHARS_MAX,
  MemoryAnswer,
  MemoryHit
} from "./Memory.ts"

/** Rows of one page. */
export const MEMORY_PAGE_MAX = 200

const agent = { params: { id: AgentId }, error: ApiErrors }

/** A row by its id, or a fact by its key. */
export const MemoryName = Schema.Union([Schema.Struct({ id: DocumentId }), Schema.Struct({ key: FactKey })])
export type MemoryName = typeof MemoryName.Type

/** A fact with its earlier values, the newest first, or a part of a session. */
export const MemoryDetail = Schema.Union([
  Schema.Struct({ type: Schema.Literal("fact"), values: Schema.Array(Fact) }),
  Schema.Struct({ type: Schema.Literal("session"), hit: MemoryHit })
])
export type MemoryDetail = typeof MemoryDetail.Type

/** How much an agent remembers. */
export const MemorySummary = Schema.Struct({
  /** In force. */
  facts: Schema.Natural,
  sessions: Schema.Natural,
  chunks: Schema.Natural,
  summaries: Schema.Natural,
  /** Chunks of sessions whose summaries are searched in their place. */
  detail: Schema.Natural
})
export type MemorySummary = typeof MemorySummary.Type

export const MemoryList = Schema.Struct({ summary: MemorySummary, facts: Schema.Array(Fact) })
export type MemoryList = typeof MemoryList.Type

export const FactWritten = Schema.Struct({ fact: Fact, change: Schema.Literals(["inserted", "updated", "same"]) })
export type FactWritten = typeof FactWritten.Type

/** Every value of every fact, then the chunks and summaries of sessions. `next` asks for the page after this one. */
export const MemoryPage = Schema.Struct({
  facts: Schema.Array(Fact),
  parts: Schema.Array(MemoryHit),
  next: Schema.NullOr(Schema.String)
})
export type MemoryPage = typeof MemoryPage.Type

export const MemoryApi = HttpApiGroup.make("memory").add(
  HttpApiEndpoint.get("list", "/agents/:id/memory", {
    ...agent,
    query: { prefix: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(120), Schema.isPattern(/^[^\0]*$/u))) },
    success: MemoryList
  }),
  HttpApiEndpoint.post("show", "/agents/:id/memory/show", { ...agent, payload: MemoryName, success: MemoryDetail }),
  HttpApiEndpoint.post("search", "/agents/:id/memory/search", {
    ...agent,
    payload: Schema.Struct({
      store: Schema.Literals(["session", "knowledge"]),
      query: Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(MEMORY_QUERY_CHARS_MAX)),
      limit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: MEMORY_HITS_MAX })),
      session_id: Schema.optionalKey(SessionId)
    }),
    success: MemoryAnswer
  }),
  HttpApiEndpoint.post("set", "/agents/:id/memory/facts", {
    ...agent,
    payload: Schema.Struct({ key: Schema.NullOr(FactKey), text: FactText }),
    success: FactWritten
  }),
  HttpApiEndpoint.post("delete", "/agents/:id/memory/facts/delete", { ...agent, payload: MemoryName, success: Fact }),
  HttpApiEndpoint.post("trust", "/agents/:id/memory/facts/trust", { ...agent, payload: MemoryName, success: Fact }),
  HttpApiEndpoint.post("plan", "/agents/:id/memory/forget/plan", { ...agent, payload: Forget, success: ForgetPlan }),
  HttpApiEndpoint.post("forget", "/agents/:id/memory/forget", { ...agent, payload: Forget, success: ForgetReceipt }),
  HttpApiEndpoint.get("page", "/agents/:id/memory/export", {
    ...agent,
    query: { after: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(80))) },
    success: MemoryPage
  })
)
