/** How the candidates by words and by vectors become one list. */
import { assert, describe, it } from "@effect/vitest"
import { DocumentId } from "#schema/Memory.ts"
import { type About, type Lists, rank } from "#src/choird/memory/ranking.ts"
import type { FoundDocument } from "#src/choird/memory/searchRows.ts"

const NOW_MS = Date.UTC(2026, 2, 4)
const idOf = (name: string) =>
  DocumentId.make(`00000000-0000-7000-8000-${name.charCodeAt(0).toString().padStart(12, "0")}`)

const documentOf = (name: string): FoundDocument => ({
  id: idOf(name),
  store: "session",
  text: `${name}${name}${name} ${name}${name}${name}${name}`,
  untrusted: false,
  said_at: new Date(NOW_MS),
  tier: "mid_term",
  session_id: null,
  lane: null,
  first_rev: null,
  last_rev: null,
  key: null,
  source: null,
  sources: null
})

const listOf = (scores: Readonly<Record<string, number>>) =>
  Object.entries(scores).map(([name, score]) => ({ id: idOf(name), score }))

/** Each is about something else. */
const aboutOf = (id: string): About => ({ words: id, tells: true, similarity: 0 })

const order = (words: Readonly<Record<string, number>>, vectors: Readonly<Record<string, number>>, weight = 10) => {
  const names = [...new Set([...Object.keys(words), ...Object.keys(vectors)])]
  const lists: Lists = { words: listOf(words), weight, vectors: listOf(vectors) }
  const ranked = rank(names.map(documentOf), lists, aboutOf, NOW_MS, names.length)
  return ranked.map(({ document }) => document.text[0]).join("")
}

describe("the rank of documents", () => {
  it("goes by words where one document has far more of them", () => {
    assert.strictEqual(order({ a: 12, b: 3 }, { b: 0.5, a: 0.45, c: 0.2 }), "abc")
  })

  it("goes by vectors where the best match by words has few of the query's words", () => {
    assert.strictEqual(order({ a: 1 }, { b: 0.8, c: 0.3, a: 0.1 }), "bac")
  })

  it("goes by words where all vectors lie about as near", () => {
    assert.strictEqual(order({ a: 6, b: 5.9 }, { b: 0.302, c: 0.301, a: 0.3 }), "abc")
  })

  it("has an order for a single document, and for documents that lie equally near", () => {
    assert.strictEqual(order({}, { a: 0.4 }), "a")
    assert.strictEqual(order({}, { a: 0.4, b: 0.4 }), "ab")
  })
})
