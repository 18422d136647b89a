/** The choice of documents, and of an excerpt of each, for a prompt that did not ask for them. Pure. */
import { CHARS_A_TOKEN, estimateTokens } from "#src/shared/model/usage.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { sentencesOf } from "#src/shared/text/sentences.ts"
import type { FoundDocument, Term } from "./searchRows.ts"
import { mayBeEnglish } from "./languages.ts"
import { overlap, wordsIn } from "./ranking.ts"
import { splitText } from "./textParts.ts"

/** Tokens of one document, and of the label before it. */
const DOCUMENT_TOKENS_MAX = 160
const LABEL_TOKENS = 24
/** Documents of one block. */
const BLOCK_DOCUMENTS_MAX = 8
/** Words that say the same twice. */
const SAID_ALREADY = 0.75

/** The words of a message that a document has. */
export interface WordFit {
  /** Their share of all, weighted by how rare each is, 0 to 1. */
  readonly words: number
  readonly lexemes: ReadonlyArray<string>
  /** Whether one of them is in so few documents that it tells a subject alone. */
  readonly rare: boolean
}

export const NO_FIT: WordFit = { words: 0, lexemes: [], rare: false }

/** A word is rare in at most so many documents of an agent's memory, or in this share of them. */
const RARE_FOUND_MAX = 2
const RARE_SHARE_MAX = 0.01
/** A number that tells no subject, as an amount or a day does not. */
const SHORT_NUMBER = /^\p{N}{1,3}$/u

const isRare = ({ found, lexemes, total }: Term): boolean =>
  found <= Math.max(RARE_FOUND_MAX, RARE_SHARE_MAX * total) && !lexemes.every((lexeme) => SHORT_NUMBER.test(lexeme))

/** How much of a message's words a document has, by their weights. `has` are the document's own. */
export const wordFit = (terms: ReadonlyArray<Term>, has: ReadonlySet<string>): WordFit => {
  const all = terms.reduce((sum, { weight }) => sum + weight, 0)
  const found = terms.filter(({ lexemes }) => lexemes.some((lexeme) => has.has(lexeme)))
  const words = all === 0 ? 0 : found.reduce((sum, { weight }) => sum + weight, 0) / all
  return { words, lexemes: found.map(({ lexemes }) => lexemes[0] ?? ""), rare: found.some(isRare) }
}

/** The cosines that a model's vectors have to reach: alone, with some words, and with most words. */
export interface Floors {
  readonly alone: number
  readonly some: number
  readonly most: number
}

/** Models that know English alone: to them all texts of another language look alike, so that words decide. */
const ENGLISH_MODELS: ReadonlySet<string> = new Set(["local"])

/** Whether the vector that a model makes of a text says anything. */
export const understands = (model: string, text: string): boolean =>
  !ENGLISH_MODELS.has(model.split(":")[0] ?? "") || mayBeEnglish(text)

/** By the model's name: cosines of other models mean other things. Those of the local model were chosen by the tests' set of questions. */
const FLOORS: Readonly<Record<string, Floors>> = { local: { alone: 0.66, some: 0.27, most: 0.2 } }
const OTHER: Floors = { alone: 0.6, some: 0.25, most: 0.15 }

export const floorsOf = (model: string | undefined): Floors => FLOORS[model?.split(":")[0] ?? ""] ?? OTHER

/** Shares of a message's words, and how many of them. One word in common says little. */
const SOME = 0.2
const MOST = 0.55
const SHARED_MIN = 2
/** The share at which even a single word says enough. */
const ONE_WORD = 0.4
/** The share at which words say enough alone: in a long document that is mostly about something else a vector says little of them. */
const NEARLY_ALL = 0.8

/** The share of a message that has a rare word among others which say nothing of it. */
const RARE_WORDS = 0.35

/** Whether a document is near enough to a message to be shown unasked. Without a vector it needs most of the words. */
export const fits = (
  { lexemes, rare, similarity, words }: WordFit & { readonly similarity: number | undefined },
  { alone, most, some }: Floors
): boolean => {
  if (rare && words >= RARE_WORDS) return true
  if (similarity === undefined) return words >= MOST && lexemes.length >= SHARED_MIN
  if (words >= NEARLY_ALL && lexemes.length >= SHARED_MIN) return true
  if (similarity >= alone || (similarity >= most && words >= ONE_WORD)) return true
  return similarity >= some && words >= SOME && lexemes.length >= SHARED_MIN
}

/** A word whose lines are looked for. */
type Shared = Pick<Term, "lexemes">

/** The score of a line beside one that has a word. */
const BESIDE = 0.5

const lineScore = (line: string, stems: ReadonlyArray<string>) => {
  const words = [...wordsIn(line)]
  return stems.filter((stem) => words.some((word) => word.startsWith(stem))).length
}

/** How well each line answers: by the words that it has, or a little if one beside it does; all alike where none has any. */
const lineScores = (lines: ReadonlyArray<string>, terms: ReadonlyArray<Shared>): ReadonlyArray<number> => {
  const stems = terms.flatMap(({ lexemes }) => lexemes)
  const own = lines.map((line) => lineScore(line, stems))
  if (own.every((score) => score === 0)) return own.map(() => 1)
  return own.map((score, place) => (score > 0 ? score : (own[place - 1] ?? 0) + (own[place + 1] ?? 0) > 0 ? BESIDE : 0))
}

/** A first line that tells when and where something was said: `[3 Mar 2026, 09:00 UTC, job dig]`. */
const HEADER = /^\[[^\]\n]{1,200}\]$/u

/** The header of a text, and its sentences. Where none ends for long, as in Thai, a part of half the room counts as one. */
const linesOf = (
  text: string,
  tokens_max: number
): readonly [header: string | undefined, lines: ReadonlyArray<string>] => {
  const [first = "", ...rest] = text.split("\n")
  const header = HEADER.test(first) ? first : undefined
  const units_max = (CHARS_A_TOKEN * tokens_max) / 2
  const lines = (header === undefined ? [first, ...rest] : rest)
    .flatMap((line) => sentencesOf(line))
    .flatMap((sentence) => splitText(sentence, units_max))
  return [header, lines]
}

/** The header and the lines of a long text that have the words looked for, with those beside them. */
export const excerpt = (text: string, terms: ReadonlyArray<Shared>, tokens_max = DOCUMENT_TOKENS_MAX): string => {
  if (estimateTokens(text.length) <= tokens_max) return text
  const [header, lines] = linesOf(text, tokens_max)
  const order = lineScores(lines, terms)
    .map((score, place) => ({ place, score }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score || a.place - b.place)
  const kept = new Set<number>()
  let left = tokens_max - estimateTokens(header?.length ?? 0)
  for (const { place } of order) {
    const tokens = estimateTokens((lines[place] ?? "").length + 1)
    if (tokens > left) continue
    kept.add(place)
    left -= tokens
  }
  const shown = lines.map((line, place) => (kept.has(place) ? line : "…"))
  const joined = shown.filter((line, place) => line !== "…" || shown[place - 1] !== "…")
  return firstPart([...(header === undefined ? [] : [header]), ...joined].join("\n"), 2 * CHARS_A_TOKEN * tokens_max)
}

/** The documents of a block in their order, each cut, as long as there is room; none that says what one before it said. */
export const block = (
  documents: ReadonlyArray<FoundDocument>,
  terms: ReadonlyArray<Shared>,
  tokens_max: number
): ReadonlyArray<FoundDocument> => {
  const taken: Array<FoundDocument> = []
  let left = tokens_max
  for (const document of documents) {
    if (taken.length === BLOCK_DOCUMENTS_MAX) break
    const text = excerpt(document.text, terms)
    const tokens = estimateTokens(text.length) + LABEL_TOKENS
    const words = wordsIn(document.text)
    if (tokens > left || taken.some((other) => overlap(wordsIn(other.text), words) > SAID_ALREADY)) continue
    taken.push({ ...document, text })
    left -= tokens
  }
  return taken
}
