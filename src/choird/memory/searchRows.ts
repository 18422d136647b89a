/** The documents that may answer a query: those that share its words, weighted by how rare they are, and those whose vectors lie near. */
import { toSql } from "pgvector"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, LaneId, Rev, SessionId } from "#schema/Ids.ts"
import type { DocumentId, FactKey, FactSource, MemoryTier } from "#schema/Memory.ts"
import type { Source } from "#schema/Source.ts"
import { agentTable } from "./agentTables.ts"
import { wordsOfQuery } from "./textWords.ts"
import { vectorType } from "./VectorIndexes.ts"
import { anyOf, stemsOf } from "./wordRows.ts"

/** Candidates of each half of a search. */
const CANDIDATES_MAX = 50
/** Words of a query that are looked for; of more the rarest. */
const TERMS_MAX = 16
/** Documents with a word of the query that are weighed; the words that most documents have are left out then. */
const WEIGHED_MAX = 2000
/** How far the index of vectors is searched, so that CANDIDATES_MAX are left after the filters. */
export const EF_SEARCH = 100
/** BM25: how soon a repeated word counts no more, how much long documents count less, and the words of a usual one. */
const K1 = 1.2
const B = 0.5
const USUAL_WORDS = 80
/** In a smaller memory a word that each document has may be rare all the same: words are weighed as if there were so many documents. */
const USUAL_DOCUMENTS = 100

export type Store = "session" | "knowledge"

/** The documents that are searched. Tiers and session are of the store `session`. */
export interface Scope {
  readonly agent_id: AgentId
  readonly store: Store
  readonly tiers: ReadonlyArray<MemoryTier>
  readonly session_id?: SessionId | undefined
}

const documents = ({ agent_id, store }: Scope) =>
  agentTable(agent_id, store === "session" ? "memory_documents" : "knowledge_documents")
const embeddings = ({ agent_id, store }: Scope) =>
  agentTable(agent_id, store === "session" ? "memory_embeddings" : "knowledge_embeddings")

const isSearched = ({ session_id, store, tiers }: Scope) =>
  Effect.map(SqlClient.SqlClient, (sql) =>
    store === "knowledge"
      ? sql`d.valid_to IS NULL`
      : sql`d.tier = ANY(${tiers}::text[]) AND ${session_id === undefined ? sql`true` : sql`d.session_id = ${session_id}`}`
  )

/** A word of a query in the forms that documents may have of it, and its weight: rare words tell documents apart. */
export interface Term {
  readonly lexemes: ReadonlyArray<string>
  readonly weight: number
  /** Documents that have it, up to WEIGHED_MAX and one, and all documents. */
  readonly found: number
  readonly total: number
}

/** The words of a query, the rarest first, those that no document has among them; none of a query that has no word. */
export const termsOf = Effect.fnUntraced(function* (scope: Scope, query: string) {
  const words = wordsOfQuery(query)
    .toSorted((a, b) => b.word.length - a.word.length)
    .slice(0, 2 * TERMS_MAX)
  const stems = yield* stemsOf(words)
  const asked = new Map(
    words.flatMap((word) => {
      const lexemes = stems(word)
      return lexemes.length === 0 ? [] : [[anyOf(lexemes), { lexemes, ...word }] as const]
    })
  )
  if (asked.size === 0) return []
  const sql = yield* SqlClient.SqlClient
  const searched = yield* isSearched(scope)
  const table = sql(documents(scope))
  const rows = yield* sql<{
    readonly any: string
    readonly found: number
    readonly total: number
  }>`SELECT q.words AS any,
      n.found::int AS found, t.total::int AS total
    FROM unnest(${[...asked.keys()]}::text[]) AS q (words)
    CROSS JOIN (SELECT count(*) AS total FROM ${table} AS d WHERE ${searched}) AS t
    CROSS JOIN LATERAL (SELECT count(*) AS found FROM (SELECT FROM ${table} AS d
      WHERE d.tsv @@ q.words::tsquery AND ${searched} LIMIT ${WEIGHED_MAX + 1}) AS having_it) AS n`
  return rows
    .flatMap(({ any, found, total }): ReadonlyArray<Term> => {
      const word = asked.get(any)
      // The parts of a name are enough where no document has the whole.
      if (word === undefined || (word.whole === true && found === 0)) return []
      const weight = word.share * Math.log(1 + (Math.max(total, USUAL_DOCUMENTS) - found + 0.5) / (found + 0.5))
      return [{ lexemes: word.lexemes, weight, found, total }]
    })
    .toSorted((a, b) => a.found - b.found)
    .slice(0, TERMS_MAX)
})

/** The rarest words that together stand in few enough documents to weigh each of them, and at least one. */
const selective = (terms: ReadonlyArray<Term>) => {
  let sum = 0
  return terms.filter(({ found }, place) => {
    sum += found
    return place === 0 || sum <= WEIGHED_MAX
  })
}

/** A document and how well it fits, the best first. */
export interface Candidate {
  readonly id: DocumentId
  readonly score: number
}

/** The documents that share the query's words, by BM25. Of the forms of a word the best one counts. */
export const byWords = Effect.fnUntraced(function* (scope: Scope, all: ReadonlyArray<Term>) {
  const terms = all.filter(({ found }) => found > 0)
  if (terms.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const searched = yield* isSearched(scope)
  const query = anyOf(selective(terms).flatMap(({ lexemes }) => lexemes))
  const forms = terms.flatMap(({ lexemes, weight }, term) => lexemes.map((lexeme) => ({ term, lexeme, weight })))
  return yield* sql<Candidate>`WITH forms AS (
      SELECT * FROM unnest(${forms.map(({ term }) => term)}::int[], ${forms.map(({ lexeme }) => lexeme)}::text[],
        ${forms.map(({ weight }) => weight)}::float8[]) AS form (term, lexeme, weight)
    ), matching AS (
      SELECT d.id, d.tsv FROM ${sql(documents(scope))} AS d WHERE d.tsv @@ ${query}::text::tsquery AND ${searched}
      LIMIT ${2 * WEIGHED_MAX}
    ), scores AS (
      SELECT matching.id, forms.term, max(forms.weight * cardinality(w.positions) * ${K1 + 1}::float8
        / (cardinality(w.positions) + ${K1}::float8 * (${1 - B}::float8 + ${B}::float8 * length(matching.tsv) / ${USUAL_WORDS}::float8))) AS score
      FROM matching CROSS JOIN LATERAL unnest(matching.tsv) AS w (lexeme, positions, weights) JOIN forms ON forms.lexeme = w.lexeme
      GROUP BY matching.id, forms.term
    )
    SELECT id::text AS id, sum(score) AS score FROM scores GROUP BY id ORDER BY score DESC, id LIMIT ${CANDIDATES_MAX}`
})

/** The documents whose vectors lie nearest, by their cosine. Only columns of the vectors' own table filter, so that its index is used. */
export const byVectors = Effect.fnUntraced(function* (scope: Scope, model: string, vector: Float32Array) {
  const sql = yield* SqlClient.SqlClient
  // The predicate of the index has to be there in so many words.
  const named = sql.literal(`'${model.replaceAll("'", "''")}'`)
  const type = sql.literal(vectorType(vector.length))
  const { session_id, store, tiers } = scope
  const filter =
    store === "knowledge"
      ? sql`true`
      : sql`e.tier = ANY(${tiers}::text[]) AND ${session_id === undefined ? sql`true` : sql`e.session_id = ${session_id}`}`
  const near = toSql(Array.from(vector))
  yield* sql`SELECT set_config('hnsw.ef_search', ${String(EF_SEARCH)}, true), set_config('hnsw.iterative_scan', 'relaxed_order', true)`
  // The vector is long: it is sent once.
  const rows = yield* sql<{
    readonly id: DocumentId
    readonly far: number
  }>`SELECT e.document_id::text AS id, e.embedding::${type} <=> ${near}::${type} AS far
    FROM ${sql(embeddings(scope))} AS e WHERE e.model = ${named} AND ${filter} ORDER BY far LIMIT ${CANDIDATES_MAX}`
  return rows.map(({ far, id }): Candidate => ({ id, score: 1 - far })).toSorted((a, b) => b.score - a.score)
})

/** A document as it is ranked and shown. */
export interface FoundDocument {
  readonly id: DocumentId
  readonly store: Store
  readonly text: string
  readonly untrusted: boolean
  readonly said_at: Date
  readonly tier: MemoryTier | null
  readonly session_id: SessionId | null
  readonly lane: LaneId | null
  readonly first_rev: Rev | null
  readonly last_rev: Rev | null
  readonly key: FactKey | null
  readonly source: FactSource | null
  readonly sources: ReadonlyArray<Source> | null
}

const SESSION_COLUMNS = `d.id::text AS id, 'session' AS store, d.text, d.untrusted, d.said_at, d.tier, d.session_id, d.lane, d.first_rev,
  d.last_rev, NULL AS key, NULL::jsonb AS source, d.metadata -> 'sources' AS sources`
const FACT_COLUMNS = `d.id::text AS id, 'knowledge' AS store, d.text, d.untrusted, d.created_at AS said_at, NULL AS tier, NULL AS session_id,
  NULL AS lane, NULL::int AS first_rev, NULL::int AS last_rev, d.key, d.source, d.source -> 'sources' AS sources`

const columnsOf = ({ store }: Scope) => (store === "session" ? SESSION_COLUMNS : FACT_COLUMNS)

/** Documents by their ids. */
export const readDocuments = Effect.fnUntraced(function* (scope: Scope, ids: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const searched = yield* isSearched(scope)
  return yield* sql<FoundDocument>`SELECT ${sql.literal(columnsOf(scope))} FROM ${sql(documents(scope))} AS d
    WHERE d.id = ANY(${ids}::uuid[]) AND ${searched}`
})

/** A document by its id, of any tier, and a fact also when it is over. */
export const readDocument = Effect.fnUntraced(function* (scope: Scope, id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] =
    yield* sql<FoundDocument>`SELECT ${sql.literal(columnsOf(scope))} FROM ${sql(documents(scope))} AS d WHERE d.id = ${id}::uuid`
  return row
})

/** The parts of a session in their order, for a search of it that names no word that it has. */
export const readSession = Effect.fnUntraced(function* (scope: Scope, limit: number) {
  const sql = yield* SqlClient.SqlClient
  const searched = yield* isSearched(scope)
  return yield* sql<FoundDocument>`SELECT ${sql.literal(columnsOf(scope))} FROM ${sql(documents(scope))} AS d
    WHERE ${searched} ORDER BY d.chunk_index, d.id LIMIT ${limit}`
})

/** The stemmed words that documents have. */
export const lexemesOf = Effect.fnUntraced(function* (scope: Scope, ids: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly id: string; readonly lexemes: ReadonlyArray<string> }>`SELECT d.id::text AS id,
    tsvector_to_array(d.tsv) AS lexemes FROM ${sql(documents(scope))} AS d WHERE d.id = ANY(${ids}::uuid[])`
  return new Map(rows.map(({ id, lexemes }) => [id, new Set(lexemes)]))
})
