/** The problems of a tool's input in words for the model that wrote it, with the key that it meant. Pure. */
import { type Schema, SchemaAST } from "effect"
import { decoderProblems } from "#src/shared/config/configProblems.ts"
import { plainReason } from "#src/shared/config/plainReason.ts"
import { nearestWord } from "#src/shared/text/nearestWord.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** Keys of an input that the words about it name. */
const KEYS_TOLD_MAX = 16
/** Characters of all the words about one input; they quote it. */
const PROBLEM_CHARS_MAX = 1500
/** Characters of a key that somebody made up. */
const KEY_CHARS_MAX = 64

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The keys of an input as its schema has them, and whether others are fine as well. */
const keysOf = (schema: Schema.Top) => {
  const ast = SchemaAST.toEncoded(schema.ast)
  if (!SchemaAST.isObjects(ast)) return { keys: [], isOpen: true }
  return { keys: ast.propertySignatures.map(({ name }) => String(name)), isOpen: ast.indexSignatures.length > 0 }
}

const wordsOf = (key: string): ReadonlyArray<string> =>
  key
    .replaceAll(/([a-z])([A-Z])/gu, "$1_$2")
    .toLowerCase()
    .split("_")

/** The key that a made-up one means: spelt almost so, or with a word in common; a lone missing key is meant by a lone unknown one. */
const meantKey = (unknown: string, keys: ReadonlyArray<string>): string | undefined => {
  const words = wordsOf(unknown)
  const sharing = keys.filter((key) => wordsOf(key).some((word) => words.includes(word)))
  return nearestWord(unknown, keys) ?? (sharing.length === 1 ? sharing[0] : undefined)
}

const isUnknown = (reason: string): boolean => reason === "an unknown key" || reason.startsWith("an unknown key,")

/** The problems of an input, from the message of its decoder. */
export const inputProblem = (schema: Schema.Top, input: unknown, message: string): string => {
  if (!isObject(input)) return "the input must be a JSON object"
  const { isOpen, keys } = keysOf(schema)
  // Words about unknown keys of the input itself name the key that was meant.
  const problems = decoderProblems([message]).filter(({ path, reason }) => !isUnknown(reason) || path.includes("."))
  const missing = problems.filter(({ reason }) => reason === "Missing key").map(({ path }) => path)
  const unset = isOpen ? [] : keys.filter((key) => !Object.hasOwn(input, key))
  const unknown = Object.keys(input)
    .filter((key) => !keys.includes(key))
    .slice(0, KEYS_TOLD_MAX)
  const lone = unknown.length === 1 && missing.length === 1 ? missing[0] : undefined
  const meant = new Map(unknown.map((key) => [key, meantKey(key, missing) ?? meantKey(key, unset) ?? lone]))
  const explained = new Set(meant.values())
  const told = [
    ...[...meant].flatMap(([key, instead]) => {
      const name = firstPart(key, KEY_CHARS_MAX)
      if (instead === undefined && isOpen) return []
      return instead === undefined
        ? `there is no ${name}; the keys are ${keys.slice(0, KEYS_TOLD_MAX).join(", ")}`
        : `there is no ${name}; the key is ${instead}`
    }),
    ...problems
      .filter(({ path, reason }) => reason !== "Missing key" || !explained.has(path))
      .map(({ path, reason }) => {
        const words = plainReason(reason)
        return path === "" ? words : words.startsWith("it ") ? `${path} ${words.slice(3)}` : `${path}: ${words}`
      })
  ]
  return firstPart(told.join("; "), PROBLEM_CHARS_MAX)
}
