/**
 * The words of stored documents. choird divides texts and the database stems their words, so that both engines find the same whatever their
 * locale. A document without words, of an earlier Choir or of a backup, gets them in the background. Statements are for within `asAgent`.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import { agentTable } from "./agentTables.ts"
import { type TextWord, wordsOfText } from "./textWords.ts"

export type WordTable = "memory_documents" | "knowledge_documents"

/** Documents of one statement. */
export const DOCUMENTS_MAX = 100
/** The last position and the positions of one word that a `tsvector` holds. */
const PLACE_MAX = 16_383
const PLACES_MAX = 255

const quoted = (lexeme: string): string => `'${lexeme.replaceAll("'", "''")}'`

/** Words of which a document may have any, as the database reads them. */
export const anyOf = (lexemes: ReadonlyArray<string>): string => lexemes.map(quoted).join(" | ")

/** The stems of words; none of a word that only holds sentences together. */
export type Stems = (word: TextWord) => ReadonlyArray<string>

/** Asks the database for the stems of words by their dictionaries, once for each. */
export const stemsOf = Effect.fnUntraced(function* (words: ReadonlyArray<TextWord>) {
  const asked = new Map<string, { readonly dict: string; readonly word: string }>()
  for (const { spellings, stemmers } of words)
    for (const dict of stemmers) for (const word of spellings) asked.set(`${dict} ${word}`, { dict, word })
  const sql = yield* SqlClient.SqlClient
  const pairs = [...asked.values()]
  const rows =
    pairs.length === 0
      ? []
      : yield* sql<{ readonly dict: string; readonly word: string; readonly stem: string | null }>`SELECT dict, word,
          (ts_lexize(dict::regdictionary, word))[1] AS stem
          FROM unnest(${pairs.map(({ dict }) => dict)}::text[], ${pairs.map(({ word }) => word)}::text[]) AS asked (dict, word)`
  const known = new Map(rows.map(({ dict, stem, word }) => [`${dict} ${word}`, stem]))
  const stems: Stems = ({ spellings, stemmers }) => {
    if (stemmers.length === 0) return spellings
    const found = stemmers.flatMap((dict) => spellings.map((word) => known.get(`${dict} ${word}`) ?? undefined))
    return found.includes(undefined) ? [] : [...new Set(found.filter((stem) => stem !== undefined))]
  }
  return stems
})

/** A document's words with their places, as the database reads them. */
const vectorOf = (words: ReadonlyArray<TextWord>, stems: Stems): string => {
  const places = new Map<string, Array<number>>()
  for (const [index, word] of words.entries())
    for (const stem of stems(word)) {
      const of = places.get(stem) ?? []
      if (of.length < PLACES_MAX) of.push(Math.min(index + 1, PLACE_MAX))
      places.set(stem, of)
    }
  return [...places].map(([lexeme, at]) => `${quoted(lexeme)}:${at.join(",")}`).join(" ")
}

/** Gives their words to documents that have none yet, to some of them or to those with these ids; answers how many there were. */
export const addWords = Effect.fnUntraced(function* (agent_id: AgentId, name: WordTable, ids?: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const table = sql(agentTable(agent_id, name))
  const text = name === "memory_documents" ? sql`text` : sql`concat_ws(' ', translate(key, '._', '  '), text)`
  const which = ids === undefined ? sql`tsv IS NULL LIMIT ${DOCUMENTS_MAX}` : sql`id = ANY(${ids}::uuid[])`
  const rows = yield* sql<{ readonly id: string; readonly text: string }>`SELECT id::text AS id, ${text} AS text
    FROM ${table} WHERE ${which}`
  if (rows.length === 0) return 0
  const documents = rows.map(({ id, text }) => ({ id, words: wordsOfText(text) }))
  const stems = yield* stemsOf(documents.flatMap(({ words }) => words))
  const vectors = documents.map(({ words }) => vectorOf(words, stems))
  yield* sql`UPDATE ${table} AS d SET tsv = made.words::tsvector
    FROM unnest(${documents.map(({ id }) => id)}::uuid[], ${vectors}::text[]) AS made (id, words) WHERE d.id = made.id`
  return rows.length
})
