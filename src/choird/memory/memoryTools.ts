/** The host tools of long-term memory: choird searches and writes for an agent, whose own memory is the only one that it may write. */
import { Context, Effect, Option, Schema } from "effect"
import type { Config } from "#schema/Config.ts"
import type { Caller } from "#schema/AgentApi.ts"
import type { AgentId } from "#schema/Ids.ts"
import { Fact, type FactSource, MemoryAnswer, type MemoryHit } from "#schema/Memory.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { failed, type HostOutcome, makeHostTool } from "#src/choird/hosttools/HostTool.ts"
import { DeleteInput, RecallAnswer, RecallInput, SearchInput, UpsertInput } from "#src/shared/memory/hostQueries.ts"
import { Knowledge } from "./Knowledge.ts"
import { Recall } from "./Recall.ts"
import { excerpt } from "./recallBlock.ts"
import { wordsOfQuery } from "./textWords.ts"
import { CHARS_A_TOKEN } from "#src/shared/model/usage.ts"
import { isPlainName } from "#src/shared/text/foreignText.ts"

/** Characters of a hit that an agent is sent; drill-down reads the rest. */
const HIT_CHARS_MAX = 2400
/** A search by words and vectors takes milliseconds; the vector of the query may have to come from a provider. */
const SEARCH_MS_MAX = 10_000
/** The longest that a turn waits for its memory. */
const RECALL_MS_MAX = 3000
const WRITE_MS_MAX = 10_000

/** A hit with the part of a long text that has the words looked for. */
const cutFor = (query: string) => {
  const terms = wordsOfQuery(query).map(({ spellings }) => ({ lexemes: spellings }))
  return (hit: MemoryHit): MemoryHit =>
    hit.text.length <= HIT_CHARS_MAX ? hit : { ...hit, text: excerpt(hit.text, terms, HIT_CHARS_MAX / CHARS_A_TOKEN) }
}

const success = (output: Schema.Json): HostOutcome => ({ status: "success", output })

const encodeAnswer = Schema.encodeSync(MemoryAnswer)
const encodeRecall = Schema.encodeSync(RecallAnswer)
const encodeFact = Schema.encodeSync(Fact)

/** Why an agent may not read another one's memory, if it may not (D40). */
const readProblem = ({ agents, memory }: Config, caller: AgentId, other: AgentId): string | undefined => {
  const { cross_read } = memory
  if (!Object.hasOwn(agents, other)) return `there is no agent ${other}`
  if (cross_read === "all" || (cross_read !== "none" && cross_read.includes(other))) return undefined
  return `${caller} may not read the memory of ${other}: memory.cross_read in config.json does not allow it. Ask your user; an operator can add ${other} there`
}

/** Audits a search in another agent's memory, with the number of hits or the reason why there are none; never its words. */
const auditRead = Effect.fnUntraced(function* (
  { agent_id, session_id }: Caller,
  other: AgentId,
  outcome: { readonly hits: number } | { readonly refused: string }
) {
  const audit = yield* Audit
  yield* audit.record({
    who: `agent:${agent_id}`,
    action: "memory.cross_read",
    agent_id: other,
    detail: { session_id, ...outcome }
  })
})

/** Searches the memory of an agent, or of another one where config.json allows it. */
const search = Effect.fn("memoryTools.search")(function* (
  { agent, ...asked }: typeof SearchInput.Type,
  caller: Caller
) {
  const config = yield* ConfigStore
  const recall = yield* Recall
  const { agent_id } = caller
  const other = agent === undefined || agent === agent_id ? undefined : agent
  const problem = other === undefined ? undefined : readProblem((yield* config.current).config, agent_id, other)
  if (other !== undefined && problem !== undefined) {
    yield* auditRead(caller, other, { refused: "NOT_ALLOWED" })
    return failed("error", problem)
  }
  if (asked.mode === "session_detail" && asked.session_id === undefined)
    return failed("error", "session_detail needs the session_id of a hit")
  const { hits, ranked_by } = yield* recall.search({
    ...asked,
    agent: other ?? agent_id,
    cross: other !== undefined,
    payer: agent_id
  })
  if (other !== undefined) yield* auditRead(caller, other, { hits: hits.length })
  return success(encodeAnswer({ hits: hits.map(cutFor(asked.query)), ranked_by }))
})

/** All of them. Repeated writes change nothing more: facts know the call that wrote them, and a fact ends once; so choird keeps no outcome of them. */
export const memoryTools = Effect.gen(function* () {
  const context = Context.pick(Audit, ConfigStore, Recall)(yield* Effect.context<Audit | ConfigStore | Recall>())
  const knowledge = yield* Knowledge
  const recall = yield* Recall

  const searching = makeHostTool({
    name: "choir.memory.search",
    effect: "none",
    timeout_ms: SEARCH_MS_MAX,
    input: SearchInput,
    run: (input, caller) => Effect.provideContext(search(input, caller), context)
  })

  const unasked = makeHostTool({
    name: "choir.memory.recall",
    effect: "none",
    timeout_ms: RECALL_MS_MAX,
    input: RecallInput,
    run: Effect.fn("memoryTools.recall")(function* (input, { agent_id, session_id }) {
      const answer = yield* recall.recall(agent_id, session_id, input)
      // What came from outside is never shown unasked, but where a person has trusted it since.
      const hits = answer.hits.filter(({ untrusted }) => untrusted !== true).map(cutFor(input.text))
      return success(encodeRecall({ ...answer, hits }))
    })
  })

  const upsert = makeHostTool({
    name: "choir.memory.upsert",
    effect: "none",
    timeout_ms: WRITE_MS_MAX,
    input: UpsertInput,
    run: Effect.fn("memoryTools.upsert")(function* (
      { call_id, key = null, lane, rev, sources, text, untrusted },
      caller
    ) {
      const { agent_id, session_id } = caller
      // The key is shown with the fact, and nobody said it: no sentence may fit.
      const isPlain = key === null || isPlainName(key)
      const isOwn = untrusted && isPlain && (yield* knowledge.isSaid(text, { session_id, lane, rev }))
      const labels = sources === undefined || isOwn ? {} : { sources }
      const source: FactSource = { kind: "agent", session_id, rev, call_id, lane, ...labels }
      const fact = { key, text, untrusted: untrusted && !isOwn, source, call_id: idOf(session_id, call_id) }
      return yield* knowledge.set(agent_id, fact).pipe(
        Effect.map(({ change, fact }) => success({ change, document_id: fact.id })),
        Effect.catchTag(["FactTrusted", "KnowledgeFull"], ({ message }) => Effect.succeed(failed("error", message)))
      )
    })
  })

  const remove = makeHostTool({
    name: "choir.memory.delete",
    effect: "none",
    timeout_ms: WRITE_MS_MAX,
    input: DeleteInput,
    run: Effect.fn("memoryTools.delete")(function* (name, { agent_id }) {
      const gone = Option.getOrUndefined(yield* knowledge.remove(agent_id, name))
      return gone === undefined ? success({ deleted: null }) : success({ deleted: encodeFact(gone) })
    })
  })

  return [searching, unasked, upsert, remove]
})

/** A call's id is its session's. */
const idOf = (session_id: string, call_id: string) => `${session_id} ${call_id}`
