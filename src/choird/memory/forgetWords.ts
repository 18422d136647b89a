/** Whether words that are to be forgotten are in a text or in an event, whatever their case and the spaces between them. Pure. */
import type { ChoirEvent } from "#schema/Event.ts"

/** Levels of a payload that are looked through; events have fewer. */
const DEPTH_MAX = 64

const folded = (text: string): string => text.normalize("NFC").toLowerCase().replaceAll(/\s+/gu, " ")

const escaped = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, String.raw`\$&`)

const isWordChar = /[\p{L}\p{N}]/u

/** Finds texts that hold one of some phrases. A phrase does not match within a longer word: `Ann` is not in `Annual`. */
export class ForgetWords {
  readonly #patterns: ReadonlyArray<RegExp>
  /** The phrases as the database compares them, in lowercase with single spaces. */
  readonly phrases: ReadonlyArray<string>

  constructor(phrases: ReadonlyArray<string>) {
    this.phrases = [...new Set(phrases.map((phrase) => folded(phrase).trim()).filter((phrase) => phrase !== ""))]
    this.#patterns = this.phrases.map((phrase) => {
      const before = isWordChar.test(phrase[0] ?? "") ? String.raw`(?<![\p{L}\p{N}])` : ""
      const after = isWordChar.test(phrase.at(-1) ?? "") ? String.raw`(?![\p{L}\p{N}])` : ""
      return new RegExp(before + escaped(phrase) + after, "u")
    })
  }

  in(text: string): boolean {
    if (this.#patterns.length === 0) return false
    const plain = folded(text)
    return this.#patterns.some((pattern) => pattern.test(plain))
  }

  /** Whether any text of the event holds one, the names of its fields among them: an input may have any. */
  inEvent({ payload }: Pick<ChoirEvent, "payload">): boolean {
    return this.#patterns.length > 0 && this.#inValue(payload, 0)
  }

  #inValue(value: unknown, depth: number): boolean {
    if (typeof value === "string") return this.in(value)
    if (typeof value === "number") return this.in(String(value))
    if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return false
    if (Array.isArray(value)) return value.some((inner) => this.#inValue(inner, depth + 1))
    return Object.entries(value).some(([key, inner]) => this.in(key) || this.#inValue(inner, depth + 1))
  }
}

/** Long enough, or odd enough, that a text which holds it was said of the same thing. */
const DISTINCT_CHARS_MIN = 12
const DISTINCT_WORDS_MIN = 3
const DISTINCT_NUMBER = /\d{4,}/u

/** Whether the value of a fact is worth looking for everywhere. `dark` and `yes` are in too much that has nothing to do with it. */
export const isDistinct = (text: string): boolean =>
  DISTINCT_NUMBER.test(text) ||
  (text.length >= DISTINCT_CHARS_MIN && text.trim().split(/\s+/u).length >= DISTINCT_WORDS_MIN)
