/** What an agent said of its own death, as it may stand in a status: hostile text, on one short line, without a secret. */
import { Redacted } from "effect"
import type { SecretsFile } from "#schema/Secrets.ts"
import type { EpochEnd } from "./afterEpoch.ts"

const LAST_WORDS_CHARS_MAX = 400
/** A shorter value is no secret worth the name, and would take ordinary words along. */
const SECRET_CHARS_MIN = 8

/** One line that is safe to print. Secrets go first, since what is left out of the line could hide half of one. */
export const shownWords = (words: string, secrets: SecretsFile): string => {
  const values = Object.values(secrets)
    .map(Redacted.value)
    .filter((value) => value.length >= SECRET_CHARS_MIN)
    .toSorted((one, other) => other.length - one.length)
  const clean = values.reduce((text, value) => text.replaceAll(value, "***"), words)
  const line = clean.replaceAll(/[\p{C}\p{Z}\s]+/gu, " ").trim()
  return line.length > LAST_WORDS_CHARS_MAX ? `${line.slice(0, LAST_WORDS_CHARS_MAX - 1).toWellFormed()}…` : line
}

/** A crash with its cause, where the agent named one. */
export const withLastWords = (end: EpochEnd, secrets: SecretsFile): EpochEnd => {
  if (end.type !== "crashed" || end.last_words === undefined) return end
  const words = shownWords(end.last_words, secrets)
  return words === "" ? end : { ...end, reason: `${end.reason}: ${words}` }
}
