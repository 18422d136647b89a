/** The tools of long-term memory, which choird keeps: what sessions said, and facts. */
import { Effect, Schema } from "effect"
import { builtIn } from "#schema/BuiltInTool.ts"
import { AgentId, Rev, SessionId } from "#schema/Ids.ts"
import { Source } from "#schema/Source.ts"
import {
  DocumentId,
  FactKey,
  FactText,
  MEMORY_HITS,
  MEMORY_HITS_MAX,
  MemoryAnswer,
  type MemoryHit
} from "#schema/Memory.ts"
import { type SearchInput, type UpsertInput } from "#src/shared/memory/hostQueries.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { sourceOf } from "#src/shared/session/sources.ts"
import { outputRevOf } from "#src/shared/session/search.ts"
import { Arbiter, commitIfDue } from "#src/agent/arbiter/Arbiter.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { type AskHost, makeAskHost } from "./hostTool.ts"
import { again, asked, CHOIRD_MS_MAX, KEPT_TIMEOUT_MS, problemOf, refused } from "./keptByChoird.ts"
import { ToolName } from "#schema/Tool.ts"
import { decodeInput, invalidInput, refusal, type Tool, type ToolContext, type ToolOutcome } from "./Tool.ts"

/** A call of choir.memory.query beyond this session's log. */
export const LONG_TERM_TIMEOUT_MS = KEPT_TIMEOUT_MS

/** The input of choir.memory.query beside store `working`. */
export interface LongTermQuery {
  readonly store: "session" | "knowledge"
  readonly mode: SearchInput["mode"]
  readonly query: string
  readonly limit?: number | undefined
  readonly session_id?: string | undefined
  readonly agent?: string | undefined
}

const decodeSession = Schema.decodeUnknownOption(SessionId)
const decodeAgent = Schema.decodeUnknownOption(AgentId)
const decodeAnswer = Schema.decodeUnknownEffect(MemoryAnswer)

/** The request to choird, or what is wrong with the query in words for the model. */
export const searchInput = (query: LongTermQuery) => {
  const { agent, limit = MEMORY_HITS, mode, session_id, store } = query
  const session = decodeSession(session_id)
  const other = decodeAgent(agent)
  if (session_id !== undefined && session._tag === "None") return invalidInput("session_id must be that of a hit")
  if (agent !== undefined && other._tag === "None") return invalidInput("agent must be the id of another agent")
  if (mode === "session_detail" && (store !== "session" || session._tag === "None"))
    return invalidInput("mode session_detail is for store session and needs the session_id of a hit")
  const input: SearchInput = {
    store,
    mode,
    query: query.query,
    limit: Math.min(limit, MEMORY_HITS_MAX),
    ...(session._tag === "Some" ? { session_id: session.value } : {}),
    ...(other._tag === "Some" ? { agent: other.value } : {})
  }
  return input
}

const counted = (count: number) => (count === 1 ? "1 hit" : `${count} hits`)

/** Where a hit's text came from, if that is outside. */
const hitSources = ({ agent, sources = [], untrusted }: MemoryHit): ReadonlyArray<Source> =>
  untrusted !== true ? [] : ["memory", ...(agent === undefined ? [] : [sourceOf("agent", agent)]), ...sources]

/** Asks choird. Hits from outside, and another agent's, taint the lane (D31, D40). */
export const searchLongTerm = (
  ask: AskHost,
  input: SearchInput,
  { call_id, lane }: ToolContext
): Effect.Effect<ToolOutcome> =>
  Effect.gen(function* () {
    const call = { tool_name: SEARCH, call_id, input, timeout_ms: CHOIRD_MS_MAX }
    const { output, status } = yield* ask(lane, call)
    if (status !== "success") return refusal({ message: problemOf(output) ?? `choird ended the search with ${status}` })
    const { hits, ranked_by } = yield* Effect.orDie(decodeAnswer(output))
    const sources = hits.flatMap(hitSources)
    const outcome: ToolOutcome = {
      status: "success",
      summary: hits.length === 0 ? "nothing found" : counted(hits.length),
      output: { hits: hits.map((hit) => ({ ...hit })), ranked_by },
      sources
    }
    return outcome
  }).pipe(Effect.catch((error) => Effect.succeed(refusal({ message: error.message }))))

const SEARCH = ToolName.make("choir.memory.search")

const Upsert = Schema.Struct({
  text: FactText.annotate({ description: "The fact in one sentence, clear by itself" }),
  key: Schema.optionalKey(FactKey.annotate({ description: "Such as user.preference.theme; replaces its old text" }))
})

const Delete = Schema.Struct({
  key: Schema.optionalKey(FactKey.annotate({ description: "Its key" })),
  id: Schema.optionalKey(DocumentId.annotate({ description: "Of a hit, for a fact without a key" }))
})

const Written = Schema.Struct({ change: Schema.Literals(["inserted", "updated", "same"]), document_id: DocumentId })
const decodeWritten = Schema.decodeUnknownEffect(Written)
const Deleted = Schema.Struct({ deleted: Schema.NullOr(Schema.Struct({ id: DocumentId, text: Schema.String })) })
const decodeDeleted = Schema.decodeUnknownEffect(Deleted)

/** choir.memory.upsert: a fact that is kept beyond the session. A tainted lane's is labelled as a claim from outside. */
export const memoryUpsert = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const ask = yield* makeAskHost
  const decode = decodeInput(Upsert)
  const name = builtIn("choir.memory.upsert")
  const run = Effect.fnUntraced(function* (
    input: typeof Upsert.Type,
    { call_id, lane }: Pick<ToolContext, "call_id" | "lane">
  ) {
    const memory = laneOf(arbiter.state(), lane)
    const sources = memory?.sources ?? []
    const fact: UpsertInput = {
      ...input,
      untrusted: memory?.tainted !== false,
      ...(sources.length === 0 ? {} : { sources }),
      rev: Rev.make(outputRevOf(call_id) ?? 0),
      lane,
      call_id
    }
    const output = yield* asked(ask, lane, name, call_id, fact)
    const { change, document_id } = yield* Effect.orDie(decodeWritten(output))
    const key = input.key === undefined ? {} : { key: input.key }
    if (change !== "same")
      yield* commitIfDue(arbiter, {
        type: "MemoryWrite",
        lane,
        call_id,
        action: change === "inserted" ? "insert" : "update",
        document_id,
        ...key
      })
    const outcome: ToolOutcome = {
      status: "success",
      summary:
        change === "same"
          ? "already known"
          : change === "updated"
            ? "remembered, in place of the old value"
            : "remembered",
      output: { id: document_id, change },
      ...(change === "same" ? {} : { acted: "verified" })
    }
    return outcome
  })
  const tool: Tool = {
    llm: llmView(name, "Remember a fact in all later sessions: a preference, a decision.", Upsert),
    effect: "external",
    keepsOwn: true,
    lanes: "both",
    prepare: Effect.fn("memoryUpsert.prepare")(function* (raw) {
      const input = yield* decode(raw)
      return {
        locks: [],
        timeout_ms: LONG_TERM_TIMEOUT_MS,
        besideJobs: true,
        run: (context) => Effect.catch(run(input, context), (error) => Effect.succeed(refused(error)))
      }
    }),
    settle: ({ call_id, input, lane }) =>
      Effect.flatMap(
        Effect.mapError(decode(input), ({ problem }) => ({ message: problem })),
        (fact) => again(run(fact, { call_id, lane }))
      )
  }
  return tool
})

const STILL = "deleted from your facts; the conversation it came from stays, and the user can send /forget to remove it"

/** choir.memory.delete: ends a fact. What was said of it stays in the log. */
export const memoryDelete = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const ask = yield* makeAskHost
  const decode = decodeInput(Delete)
  const name = builtIn("choir.memory.delete")
  const run = Effect.fnUntraced(function* (
    input: Schema.Json,
    key: FactKey | undefined,
    { call_id, lane }: Pick<ToolContext, "call_id" | "lane">
  ) {
    const output = yield* asked(ask, lane, name, call_id, input)
    const { deleted } = yield* Effect.orDie(decodeDeleted(output))
    if (deleted === null) return refusal({ message: "there is no such fact; a query of store knowledge finds facts" })
    yield* commitIfDue(arbiter, {
      type: "MemoryWrite",
      lane,
      call_id,
      action: "delete",
      document_id: deleted.id,
      ...(key === undefined ? {} : { key })
    })
    const outcome: ToolOutcome = { status: "success", summary: STILL, output: { id: deleted.id }, acted: "verified" }
    return outcome
  })
  const fact = Effect.fnUntraced(function* (raw: unknown) {
    const { id, key } = yield* decode(raw)
    if ((id === undefined) === (key === undefined)) return yield* Effect.fail(invalidInput("give either key or id"))
    const input: Schema.Json = key === undefined ? { id: id ?? "" } : { key }
    return { input, key }
  })
  const tool: Tool = {
    llm: llmView(name, "Delete a remembered fact, by its key or id.", Delete),
    effect: "external",
    keepsOwn: true,
    lanes: "both",
    prepare: Effect.fn("memoryDelete.prepare")(function* (raw) {
      const { input, key } = yield* fact(raw)
      return {
        locks: [],
        timeout_ms: LONG_TERM_TIMEOUT_MS,
        besideJobs: true,
        run: (context) => Effect.catch(run(input, key, context), (error) => Effect.succeed(refused(error)))
      }
    }),
    settle: ({ call_id, input, lane }) =>
      Effect.flatMap(
        Effect.mapError(fact(input), ({ problem }) => ({ message: problem })),
        (known) => again(run(known.input, known.key, { call_id, lane }))
      )
  }
  return tool
})
