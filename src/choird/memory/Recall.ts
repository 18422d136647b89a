/** Searches of an agent's long-term memory, by words and by vectors. */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { DocumentId, MemoryAnswer, MemoryHit, MemoryTier } from "#schema/Memory.ts"
import type { RecallAnswer, RecallInput, SearchInput } from "#src/shared/memory/hostQueries.ts"
import { type DatabaseAway, inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { asAgent } from "./agentTables.ts"
import { EmbeddingMeter } from "./Embedder.ts"
import { hasMemory } from "./embeddingRows.ts"
import { type AnEmbedder, Embeddings } from "./Embeddings.ts"
import { type About, rank } from "./ranking.ts"
import { block, fits, floorsOf, NO_FIT, understands, wordFit, type WordFit } from "./recallBlock.ts"
import {
  byVectors,
  byWords,
  type FoundDocument,
  lexemesOf,
  readDocument,
  readDocuments,
  readSession,
  type Scope,
  termsOf
} from "./searchRows.ts"

/** The store of a search and whose; `cross` when an agent reads the memory of another one (D40). */
export type Search = Omit<SearchInput, "agent"> & {
  readonly agent: AgentId
  readonly cross: boolean
  /** The agent that embedding the query counts for; the one whose memory is searched if absent. */
  readonly payer?: AgentId
}

/** The time that the vector of a query may take, which includes the start of a local model that was idle; the words rank alone then. */
const VECTOR_MS_MAX = 1500

export class Recall extends Context.Service<
  Recall,
  {
    /** The best hits first. Where no vector comes in time, words alone rank, and the answer says so. */
    search(search: Search): Effect.Effect<MemoryAnswer, DatabaseAway>
    /** Facts and parts of sessions that may matter to a message. Empty when nothing fits well enough; nothing from outside. */
    recall(agent_id: AgentId, session_id: SessionId, input: RecallInput): Effect.Effect<RecallAnswer, DatabaseAway>
    /** A chunk, a summary or a fact by its id. */
    get(agent_id: AgentId, id: DocumentId): Effect.Effect<Option.Option<MemoryHit>, DatabaseAway>
  }
>()("choir/choird/Recall") {
  static readonly layer = Layer.effect(
    Recall,
    Effect.gen(function* () {
      const embeddings = yield* Embeddings
      const onDatabase = yield* useDatabase
      const embed = makeEmbed(embeddings)
      return Recall.of({
        search: Effect.fn("Recall.search")(function* (search) {
          const { agent, cross, mode } = search
          if (!(yield* onDatabase(hasMemory(agent)))) return { hits: [], ranked_by: "words" }
          const near =
            mode === "hybrid" || mode === "semantic"
              ? yield* embed(agent, search.query, VECTOR_MS_MAX, search.payer)
              : undefined
          const now_ms = yield* Clock.currentTimeMillis
          const found = searchIn(search, near, now_ms)
          const documents = yield* onDatabase(cross ? inTransaction(found) : asAgent(agent, found))
          const hits = documents.map((document) => hitOf(document, cross ? agent : undefined))
          return { hits, ranked_by: near === undefined ? "words" : "hybrid" }
        }),
        recall: Effect.fn("Recall.recall")(function* (agent_id, session_id, input) {
          if (!(yield* onDatabase(hasMemory(agent_id)))) return { hits: [], ranked_by: "words", cost_usd: 0 }
          let cost_usd = 0
          const near = yield* Effect.provideService(embed(agent_id, input.text, VECTOR_MS_MAX), EmbeddingMeter, (use) =>
            Effect.sync(() => void (cost_usd += use.cost_usd))
          )
          const now_ms = yield* Clock.currentTimeMillis
          const documents = yield* onDatabase(asAgent(agent_id, recallFor(agent_id, session_id, input, near, now_ms)))
          return {
            hits: documents.map((one) => hitOf(one)),
            ranked_by: near === undefined ? "words" : "hybrid",
            cost_usd
          }
        }),
        get: Effect.fn("Recall.get")(function* (agent_id, id) {
          if (!(yield* hasMemory(agent_id))) return Option.none()
          const read = (store: Scope["store"]) => readDocument({ agent_id, store, tiers: SEARCHED }, id)
          const document = yield* asAgent(
            agent_id,
            Effect.flatMap(read("knowledge"), (fact) => (fact === undefined ? read("session") : Effect.succeed(fact)))
          )
          return Option.map(Option.fromUndefinedOr(document), (found) => hitOf(found))
        }, onDatabase)
      })
    })
  )
}

/** Old detail is found by its session alone. */
const SEARCHED: ReadonlyArray<MemoryTier> = ["mid_term", "long_term_summary"]
const ALL: ReadonlyArray<MemoryTier> = [...SEARCHED, "long_term_detail"]

const hitOf = (
  { first_rev, key, lane, last_rev, said_at, session_id, source, sources, tier, untrusted, ...document }: FoundDocument,
  other?: AgentId
): MemoryHit => ({
  ...document,
  said_at: said_at.toISOString(),
  ...(tier === null ? {} : { tier }),
  ...(key === null ? {} : { key }),
  ...(session_id === null ? {} : { session_id }),
  ...(lane === null ? {} : { lane }),
  ...(first_rev === null ? {} : { first_rev }),
  ...(last_rev === null ? {} : { last_rev }),
  ...(source === null ? {} : { source }),
  ...(untrusted || other !== undefined ? { untrusted: true } : {}),
  ...(sources === null ? {} : { sources }),
  ...(other === undefined ? {} : { agent: other })
})

/** The vector of a query, and the model that made it. */
interface Near {
  readonly model: string
  readonly vector: Float32Array
}

/** Undefined where there are no vectors to compare with, and where none came in time. */
const makeEmbed = (embeddings: Embeddings["Service"]) =>
  Effect.fnUntraced(function* (
    agent_id: AgentId,
    text: string,
    ms_max: number,
    payer?: AgentId
  ): Effect.fn.Return<Near | undefined, DatabaseAway> {
    const embedder: AnEmbedder | undefined = yield* embeddings.serving(agent_id, payer)
    if (embedder === undefined || !understands(embedder.model, text) || text.trim() === "") return undefined
    const made = yield* embedder.embed([text]).pipe(Effect.timeoutOption(ms_max), Effect.result)
    const [vector] = made._tag === "Success" ? Option.getOrElse(made.success, () => []) : []
    return vector === undefined ? undefined : { model: embedder.model, vector }
  })

/** The two lists of candidates of a scope. */
const candidates = Effect.fnUntraced(function* (scope: Scope, query: string | undefined, near: Near | undefined) {
  const terms = query === undefined ? [] : yield* termsOf(scope, query)
  const words = yield* byWords(scope, terms)
  const vectors = near === undefined ? [] : yield* byVectors(scope, near.model, near.vector)
  return { terms, words, vectors }
})

/** The candidates as one list, and the words that each has of the query's. */
const rankIn = Effect.fnUntraced(function* (
  scope: Scope,
  { terms, vectors, words }: Effect.Success<ReturnType<typeof candidates>>,
  now_ms: number,
  limit: number
) {
  const ids = [...new Set([...words, ...vectors].map(({ id }) => id))]
  const lexemes = terms.length === 0 ? new Map<string, ReadonlySet<string>>() : yield* lexemesOf(scope, ids)
  const about = new Map<string, WordFit>(ids.map((id) => [id, wordFit(terms, lexemes.get(id) ?? NO_WORDS)]))
  const near = new Map<string, number>(vectors.map(({ id, score }) => [id, score]))
  const documents = yield* readDocuments(scope, ids)
  const weight = terms.reduce((sum, term) => sum + term.weight, 0)
  return {
    ranked: rank(
      documents,
      { words, weight, vectors },
      (id) => aboutOf(about.get(id) ?? NO_FIT, near.get(id)),
      now_ms,
      limit
    ),
    about
  }
})

const NO_WORDS: ReadonlySet<string> = new Set()

/** The share of a query's words that tells a subject. */
const ABOUT_MIN = 0.25
const aboutOf = ({ lexemes, words }: WordFit, similarity = 0): About => ({
  words: lexemes.join(" "),
  tells: words >= ABOUT_MIN,
  similarity
})

const searchIn = Effect.fnUntraced(function* (search: Search, near: Near | undefined, now_ms: number) {
  const { agent, limit, mode, query, session_id, store } = search
  const tiers = mode === "session_detail" ? ALL : SEARCHED
  const scope: Scope = { agent_id: agent, store, tiers, session_id: store === "session" ? session_id : undefined }
  const { terms, vectors, words } = yield* candidates(
    scope,
    mode === "semantic" && near !== undefined ? undefined : query,
    near
  )
  if (mode === "session_detail" && words.length === 0) return yield* readSession(scope, limit)
  const { about, ranked } = yield* rankIn(scope, { terms, words, vectors }, now_ms, limit)
  const documents = ranked.map(({ document }) => document)
  if (mode !== "hybrid" || near === undefined) return documents
  // The nearest vectors of a small memory may be far away.
  const similarity = new Map(vectors.map(({ id, score }) => [id, score]))
  const { most } = floorsOf(near.model)
  return documents.filter(({ id }) => (about.get(id) ?? NO_FIT).words > 0 || (similarity.get(id) ?? 0) >= most)
})

/** Documents of each store that are weighed for a block. */
const RECALL_WEIGHED_MAX = 12

/** The documents of one store that fit a message, the best first. */
const fittingIn = Effect.fnUntraced(function* (
  scope: Scope,
  input: RecallInput,
  near: Near | undefined,
  now_ms: number
) {
  const found = yield* candidates(scope, input.text, near)
  const { terms, vectors } = found
  const { about, ranked } = yield* rankIn(scope, found, now_ms, RECALL_WEIGHED_MAX)
  const similarity = new Map(vectors.map(({ id, score }) => [id, score]))
  const floors = floorsOf(near?.model)
  const fitting = ranked.filter(({ document: { id } }) =>
    fits(
      { ...(about.get(id) ?? NO_FIT), similarity: near === undefined ? undefined : (similarity.get(id) ?? 0) },
      floors
    )
  )
  return { terms, documents: fitting.map(({ document }) => document) }
})

const recallFor = Effect.fnUntraced(function* (
  agent_id: AgentId,
  session_id: SessionId,
  input: RecallInput,
  near: Near | undefined,
  now_ms: number
) {
  const facts = yield* fittingIn({ agent_id, store: "knowledge", tiers: SEARCHED }, input, near, now_ms)
  const parts = yield* fittingIn({ agent_id, store: "session", tiers: SEARCHED }, input, near, now_ms)
  const isShown = (one: FoundDocument) => one.session_id === session_id && (one.last_rev ?? 0) >= input.shown_from
  const trusted = [...facts.documents, ...parts.documents].filter((one) => !one.untrusted && !isShown(one))
  return block(trusted, [...facts.terms, ...parts.terms], input.tokens_max)
})
