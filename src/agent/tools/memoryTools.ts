/**
 * The tools of a lane's memory. choir.memory.query, store `working`, searches the lane's own view of the session's log. What the agent holds is searched
 * here, what left it in choird (D9); a lane sees no more of the log than its prompt could have shown it.
 */
import { Effect, Result, Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { Source } from "#schema/Source.ts"
import { withSources } from "#src/shared/session/sources.ts"
import { toWireName } from "#schema/Tool.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import {
  LOG_SEARCH_HITS_MAX,
  LogAnswer,
  type LogHit,
  LogQuery,
  logSearch,
  type LogView,
  outputRevOf,
  sees,
  viewOf
} from "#src/shared/session/search.ts"
import type { LaneMemory } from "#src/shared/session/State.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { Compactor } from "#src/agent/memory/Compactor.ts"
import { deltaView } from "#src/agent/memory/compaction.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { RPC_TIMEOUT_MS } from "#src/agent/control/verbAnswer.ts"
import { makeAskHost } from "./hostTool.ts"
import { LONG_TERM_TIMEOUT_MS, searchInput, searchLongTerm } from "./longTermMemory.ts"
import { decodeInput, invalidInput, refusal, type Tool, type ToolContext, type ToolOutcome } from "./Tool.ts"
import { CONTROL_TIMEOUT_MS } from "./coreTools.ts"

/** Canonical bytes of events that an agent looks through before it lets its other lanes run; a few milliseconds of work. */
const LOG_SEARCH_SLICE_BYTES = 256 * 1024
/** Requests that one call of choir.memory.query makes to choird, and the time after which it makes no further one. */
export const LOG_SEARCH_REQUESTS_MAX = 20
const LOG_SEARCH_MS_MAX = 3000

/** Whether models see only how the results of a tool ended (`prompt_mask`). */
type IsMasked = (tool: string) => boolean

/** choird has not searched its part of the log; the reason is for the model. */
class LogSearchFailed extends Schema.TaggedError<LogSearchFailed>()("LogSearchFailed", { reason: Schema.String }) {}

/** A search of one lane, from a revision, exclusive, back to the beginning of its view. */
interface Search {
  readonly context: ToolContext
  readonly view: LogView
  readonly query: LogQuery
  readonly before: number
}

/** The hits, and the revision before which nothing was searched yet. */
interface Found {
  readonly hits: ReadonlyArray<LogHit>
  readonly next: number
  readonly problem?: string
}

const LONG_TERM = ["hybrid", "semantic", "text", "session_detail"] as const

/** The stores have one tool, so that no prompt describes three. */
const MemoryQuery = Schema.Struct({
  query: LogQuery.fields.query.annotate({ description: "Words or a question; for hash 8 or more hex digits" }),
  store: Schema.optionalKey(
    Schema.Literals(["working", "session", "knowledge"]).annotate({
      description: "This session (default), earlier ones, or facts"
    })
  ),
  mode: Schema.optionalKey(Schema.Literals(["keyword", "hash", ...LONG_TERM])),
  session_id: Schema.optionalKey(Schema.String.annotate({ description: "Only this session" })),
  agent: Schema.optionalKey(Schema.String.annotate({ description: "Another agent's memory" })),
  limit: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: LOG_SEARCH_HITS_MAX })).annotate({
      description: "The most hits"
    })
  ),
  before_rev: LogQuery.fields.before_rev
})
type MemoryQuery = typeof MemoryQuery.Type

const isLongTerm = (mode: MemoryQuery["mode"]): mode is (typeof LONG_TERM)[number] =>
  LONG_TERM.some((each) => each === mode)

/** The input as models see it: each store has the mode that most searches need by default, and hybrid finds what semantic and text find. All are accepted. */
const OFFERED = Schema.Struct({
  ...MemoryQuery.fields,
  mode: Schema.optionalKey(
    Schema.Literals(["hash", "session_detail"]).annotate({
      description: "hash: one event of this session. session_detail: all of an earlier one"
    })
  )
})

const MEMORY_QUERY = llmView("choir.memory.query", "Search this session and your memory.", OFFERED)

/** The name by which models call it. */
const SEARCH = toWireName(MEMORY_QUERY.name)

/** A query beyond this session's log, or what is wrong with it. */
const longTermOf = ({ agent, limit, mode, query, session_id, store }: MemoryQuery) => {
  if (store === undefined || store === "working")
    return isLongTerm(mode) || session_id !== undefined || agent !== undefined
      ? invalidInput(
          "modes hybrid, semantic, text and session_detail, session_id and agent need store session or knowledge"
        )
      : undefined
  if (mode !== undefined && !isLongTerm(mode))
    return invalidInput(`store ${store} has the modes ${LONG_TERM.join(", ")}; keyword and hash are of store working`)
  return searchInput({ store, mode: mode ?? "hybrid", query, limit, session_id, agent })
}

/**
 * A result that prompts mask is not found either, nor one of which it is not known. Words do not find what an earlier search found, so that nothing is
 * found twice; its hash does, since notes and summaries name results by it.
 */
const isShown = (isMasked: IsMasked, { mode }: LogQuery, { event_type, tool }: LogHit): boolean =>
  event_type !== "ToolResultCommitted" ||
  (tool !== undefined && (mode === "hash" || tool !== SEARCH) && !isMasked(tool))

/** Looks through what is here, in slices, so that other lanes run meanwhile. */
const makeSearchHere = Effect.fnUntraced(function* (isMasked: IsMasked) {
  const log = yield* EventLog
  /** The tool whose result an event is, as the output named it that proposed the call. */
  const toolOf = (event: ChoirEvent): string | undefined => {
    if (event.event_type !== "ToolResultCommitted") return undefined
    const { call_id } = event.payload
    const output = log.find(outputRevOf(call_id) ?? 0)
    return output?.event_type === "ModelOutput"
      ? output.payload.tool_calls.find((call) => call.call_id === call_id)?.name
      : undefined
  }
  return Effect.fnUntraced(function* ({ before, query, view }: Search) {
    const search = logSearch(query)
    const look = (rev: number): LogHit | undefined => {
      const event = log.get(rev)
      const hit = sees(view, event) ? search.hit(event, () => log.hashAt(rev)) : undefined
      const tool = hit === undefined ? undefined : toolOf(event)
      return hit === undefined || tool === undefined ? hit : { ...hit, tool }
    }
    const hits: Array<LogHit> = []
    let next = before
    let slice = log.bytesAfter(Math.max(next, log.oldest()) - 1)
    while (hits.length < query.limit && next > Math.max(view.from, log.oldest())) {
      next -= 1
      const hit = look(next)
      if (hit !== undefined && isShown(isMasked, query, hit)) hits.push(hit)
      if (log.bytesAfter(next - 1) - slice < LOG_SEARCH_SLICE_BYTES) continue
      yield* Effect.yieldNow
      // Meanwhile events may have come, and old ones may have left: then the rest is choird's.
      if (next >= log.oldest()) slice = log.bytesAfter(next - 1)
    }
    return { hits, next } satisfies Found
  })
})

const decodeAnswer = Schema.decodeUnknownEffect(LogAnswer)

/** Asks choird for what is older, until there is enough, nothing is left, or it took long. What was found stays if choird fails. */
const makeSearchThere = Effect.fnUntraced(function* (isMasked: IsMasked) {
  const ask = yield* makeAskHost
  /** One request for what is before a revision. */
  const request = Effect.fnUntraced(function* ({ context, query }: Search, { hits, next }: Found) {
    const { call_id, lane } = context
    const input = { ...query, limit: query.limit - hits.length, before_rev: next }
    const asked = ask(lane, { tool_name: MEMORY_QUERY.name, call_id, input, timeout_ms: RPC_TIMEOUT_MS })
    const { output, status } = yield* Effect.mapError(asked, ({ message }) => new LogSearchFailed({ reason: message }))
    return status === "success"
      ? yield* Effect.orDie(decodeAnswer(output))
      : yield* new LogSearchFailed({ reason: `choird ended the search with ${status}` })
  })
  return Effect.fnUntraced(function* (search: Search, here: Found) {
    const { query, view } = search
    const started = yield* monotonicMs
    let found = here
    for (let requests = 0; requests < LOG_SEARCH_REQUESTS_MAX; requests += 1) {
      const isLate = (yield* monotonicMs) - started >= LOG_SEARCH_MS_MAX
      if (isLate || found.hits.length >= query.limit || found.next <= view.from) break
      const answer = yield* Effect.result(request(search, found))
      if (Result.isFailure(answer)) return { ...found, problem: answer.failure.reason }
      const hits = answer.success.hits.filter((hit) => isShown(isMasked, query, hit))
      // Each answer leads further back, whatever it says, so that the search ends.
      const next = Math.min(found.next - 1, answer.success.next_before_rev ?? view.from)
      found = { hits: [...found.hits, ...hits], next }
    }
    return found
  })
})

const MEMORY: ReadonlyArray<Source> = ["memory"]

/** @param past the sources of labels that have ended: what is found may be text from there. */
const outcomeOf = (
  { from }: LogView,
  { sources, tainted }: Pick<LaneMemory, "sources" | "tainted">,
  past: ReadonlyArray<Source>,
  { hits, next, problem }: Found
): ToolOutcome => {
  const known = withSources(sources, past)
  if (problem !== undefined && hits.length === 0)
    return refusal({ message: `events before revision ${next} could not be searched: ${problem}` })
  const isMore = next > from
  const count = hits.length === 1 ? "1 event" : `${hits.length} events`
  return {
    status: "success",
    summary: isMore ? `${count}; events before revision ${next} were not searched` : count,
    output: {
      hits,
      ...(isMore ? { next_before_rev: next } : {}),
      ...(problem === undefined ? {} : { problem })
    },
    ...(tainted || past.length > 0 || hits.some(({ untrusted }) => untrusted === true)
      ? { sources: known.length === 0 ? MEMORY : known }
      : {})
  }
}

export const memoryQuery = Effect.fnUntraced(function* (isMasked: IsMasked) {
  const { state } = yield* Arbiter
  const log = yield* EventLog
  const ask = yield* makeAskHost
  const searchHere = yield* makeSearchHere(isMasked)
  const searchThere = yield* makeSearchThere(isMasked)
  const decodeAll = decodeInput(MemoryQuery)
  const decode = decodeInput(LogQuery)

  const run = Effect.fnUntraced(function* (query: LogQuery, context: ToolContext) {
    const lane = laneOf(state(), context.lane)
    const view = viewOf(state(), context.lane)
    if (lane === undefined || view === undefined) return refusal({ message: "the job is no longer running" })
    // A search that names no place begins before the output that asks for it, which holds the words that it looks for.
    const asking = lane.calls.find(({ call_id }) => call_id === context.call_id)?.output_rev ?? Infinity
    const before = Math.min(query.before_rev ?? asking, log.head() + 1)
    const search: Search = { context, view, query, before }
    const found = yield* searchThere(search, yield* searchHere(search))
    return outcomeOf(view, laneOf(state(), context.lane) ?? lane, state().past_sources, found)
  })

  const tool: Tool = {
    llm: MEMORY_QUERY,
    effect: "none",
    lanes: "both",
    prepare: Effect.fn("memoryQuery.prepare")(function* (raw) {
      const asked = yield* decodeAll(raw)
      const search = longTermOf(asked)
      if (search !== undefined && "_tag" in search) return yield* Effect.fail(search)
      if (search !== undefined)
        return {
          locks: [],
          timeout_ms: LONG_TERM_TIMEOUT_MS,
          run: (context) => searchLongTerm(ask, search, context)
        }
      const { before_rev, limit, mode = "keyword", query: words } = asked
      const query = yield* decode({
        mode,
        query: words,
        ...(limit === undefined ? {} : { limit }),
        ...(before_rev === undefined ? {} : { before_rev })
      })
      return { locks: [], timeout_ms: CONTROL_TIMEOUT_MS, run: (context) => run(query, context) }
    })
  }
  return tool
})

/** choir.memory.compact: requests an update of the calling lane's reference summary. */
export const memoryCompact = Effect.map(Compactor, ({ request }): Tool => ({
  llm: llmView("choir.memory.compact", "Fold the oldest part of your context into your summary.", Schema.Struct({})),
  effect: "none",
  lanes: "both",
  prepare: () =>
    Effect.succeed({
      locks: [],
      timeout_ms: CONTROL_TIMEOUT_MS,
      run: ({ lane }) =>
        Effect.as(request(lane), { status: "success", summary: "the summary is being updated" } as const)
    })
}))

/** choir.memory.delta: the answer to a compaction, which runs nothing. Every call of a lane offers it, so that all of them begin alike. */
export const memoryDelta: Tool = {
  llm: deltaView,
  effect: "none",
  lanes: "both",
  prepare: () =>
    Effect.fail({
      _tag: "InvalidInput",
      problem: "no compaction is pending; continue with your work"
    } as const)
}
