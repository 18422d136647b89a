/** How candidates of several searches become one list: a sum of scores, a little for what is new, and no two hits that say the same. Pure. */
import type { Candidate, FoundDocument } from "./searchRows.ts"
import { DAY_MS } from "#src/shared/days.ts"
import { isPair, wordsOfText } from "./textWords.ts"

/** How much a vector counts beside the words: over real talks words find more than a small model's vectors. */
const VECTORS_WEIGHT = 0.5
/** The share of a query's words below which the best match is not a good one, so that the vectors decide. */
const MATCH_MIN = 0.6
/** Cosines that differ by less than this are about the same. */
const SPREAD_MIN = 0.1
/** How much more the newest counts than the oldest, and after how many days half of that is gone. */
const RECENCY = 0.1
const RECENCY_DAYS = 30
/** Of a summary: its session's own words are gone from the search. */
const SUMMARY = 1.02
/** Maximal marginal relevance: how much the fit counts against the difference to the hits before. */
const MMR = 0.7
/** Texts that share so much of their words say the same: the newer one goes first. */
const SAME = 0.6

/** Letters of a word that two texts are compared by. */
const COMPARED_MIN = 3

/** A document with its place in the fused list. */
export interface Ranked {
  readonly document: FoundDocument
  readonly score: number
}

/** How a document's subject compares with the query's. */
export interface About {
  /** The words of the query that it has, and whether they are enough to tell its subject. */
  readonly words: string
  readonly tells: boolean
  readonly similarity: number
}
export type AboutOf = (id: string) => About

/** Documents with the same words of a query, as near to it as that, are about the same. */
const NEAR = 0.08
const isAboutSame = (a: About, b: About): boolean => a.tells && Math.abs(a.similarity - b.similarity) <= NEAR

/** The candidates of both halves of a search, the best first. */
export interface Lists {
  readonly words: ReadonlyArray<Candidate>
  /** The weight of all words of the query, by which their candidates are scored. */
  readonly weight: number
  readonly vectors: ReadonlyArray<Candidate>
}

/** The weighted sum of both scores, by document. Scores rather than ranks: one document may fit far better than the next, or hardly better. */
const fuse = ({ vectors, weight, words }: Lists): ReadonlyMap<string, number> => {
  const scores = new Map<string, number>()
  const add = (id: string, score: number) => scores.set(id, (scores.get(id) ?? 0) + score)
  const most = Math.max(words[0]?.score ?? 0, MATCH_MIN * weight)
  for (const { id, score } of words) add(id, score / most)
  const farthest = vectors.at(-1)?.score ?? 0
  const spread = Math.max((vectors[0]?.score ?? 0) - farthest, SPREAD_MIN)
  for (const { id, score } of vectors) add(id, (VECTORS_WEIGHT * (score - farthest)) / spread)
  return scores
}

const ageFactor = (said_at: Date, now_ms: number) =>
  1 + RECENCY * 0.5 ** (Math.max(0, now_ms - said_at.getTime()) / (RECENCY_DAYS * DAY_MS))

/** The words of a text by which two texts are compared; short ones say little where words stand between blanks. */
export const wordsIn = (text: string): ReadonlySet<string> =>
  new Set(wordsOfText(text).flatMap(({ word }) => (word.length >= COMPARED_MIN || isPair(word) ? [word] : [])))

export const overlap = (a: ReadonlySet<string>, b: ReadonlySet<string>): number => {
  if (a.size === 0 || b.size === 0) return 0
  let shared = 0
  for (const word of a) if (b.has(word)) shared += 1
  return shared / (a.size + b.size - shared)
}

/** By fit alone, with the small factors of age and tier. */
const weighed = (documents: ReadonlyArray<FoundDocument>, scores: ReadonlyMap<string, number>, now_ms: number) =>
  documents
    .map((document): Ranked => {
      const tier = document.tier === "long_term_summary" ? SUMMARY : 1
      return { document, score: (scores.get(document.id) ?? 0) * ageFactor(document.said_at, now_ms) * tier }
    })
    .toSorted((a, b) => b.score - a.score)

/** Takes what fits best and differs from what was already taken. */
const diverse = (ranked: ReadonlyArray<Ranked>, limit: number): ReadonlyArray<Ranked> => {
  const first = ranked[0]?.score ?? 0
  const best = first > 0 ? first : 1
  const words = new Map(ranked.map(({ document }) => [document.id, wordsIn(document.text)]))
  const of = ({ document }: Ranked) => words.get(document.id) ?? new Set<string>()
  const left = [...ranked]
  const taken: Array<Ranked> = []
  while (taken.length < limit && left.length > 0) {
    let place = 0
    let highest = -Infinity
    for (const [index, each] of left.entries()) {
      const likeness = Math.max(0, ...taken.map((other) => overlap(of(each), of(other))))
      const value = MMR * (each.score / best) - (1 - MMR) * likeness
      if (value > highest) [place, highest] = [index, value]
    }
    taken.push(...left.splice(place, 1))
  }
  return taken
}

/** Of hits that say the same thing at different times, with the same words of the query, the newest is first. */
const newestFirst = (hits: ReadonlyArray<Ranked>, aboutOf: AboutOf): ReadonlyArray<Ranked> => {
  const words = hits.map(({ document }) => wordsIn(document.text))
  const about = hits.map(({ document }) => aboutOf(document.id))
  const isSame = (a: number, b: number) => {
    const [one, other] = [about[a], about[b]]
    if (one === undefined || other === undefined || one.words !== other.words) return false
    return isAboutSame(one, other) || overlap(words[a] ?? new Set(), words[b] ?? new Set()) >= SAME
  }
  const order = hits.map((_, place) => place)
  for (const place of order)
    for (let other = place + 1; other < order.length; other += 1) {
      const [a, b] = [order[place] ?? 0, order[other] ?? 0]
      const newer = (hits[b]?.document.said_at.getTime() ?? 0) > (hits[a]?.document.said_at.getTime() ?? 0)
      if (newer && isSame(a, b)) {
        order[place] = b
        order[other] = a
      }
    }
  return order.flatMap((place) => hits[place] ?? [])
}

/** The best documents, in their order. */
export const rank = (
  documents: ReadonlyArray<FoundDocument>,
  lists: Lists,
  aboutOf: AboutOf,
  now_ms: number,
  limit: number
): ReadonlyArray<Ranked> => newestFirst(diverse(weighed(documents, fuse(lists), now_ms), limit), aboutOf)
