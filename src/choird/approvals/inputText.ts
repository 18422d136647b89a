/**
 * The arguments of a call for a person: whom, where and what it reaches first, then other short values, long ones last, so that no value can
 * push another out of a card. Pure.
 */
import { visibleJson } from "./approvalText.ts"
import { HOSTS, PATHS, RECIPIENTS } from "./grantWords.ts"

/** Characters of one value in a card, the first of these with which all arguments fit. */
const VALUE_CHARS = [2000, 1000, 500, 250, 100] as const
/** Characters of an argument's name in a card. */
const NAME_CHARS_MAX = 100

const FIRST: ReadonlyMap<string, number> = new Map([...RECIPIENTS, ...HOSTS, ...PATHS].map((name, at) => [name, at]))

interface Argument {
  readonly name: string
  readonly text: string
}

const rankOf = ({ name }: Argument): number => FIRST.get(name.toLowerCase()) ?? FIRST.size

const isObject = (input: unknown): input is Readonly<Record<string, unknown>> =>
  typeof input === "object" && input !== null && !Array.isArray(input)

const argumentsOf = (input: Readonly<Record<string, unknown>>): ReadonlyArray<Argument> =>
  Object.entries(input)
    .map(([name, value]) => ({ name, text: visibleJson(value) }))
    .sort(
      (a, b) =>
        rankOf(a) - rankOf(b) ||
        a.text.length + a.name.length - (b.text.length + b.name.length) ||
        (a.name < b.name ? -1 : 1)
    )

/** The whole input as JSON, in the order in which a person should read it. */
export const inputText = (input: unknown): string =>
  isObject(input)
    ? `{${argumentsOf(input)
        .map(({ name, text }) => `${visibleJson(name)}:${text}`)
        .join(",")}}`
    : visibleJson(input)

/** A text within a length, and how much of it is left out. */
const shortened = (text: string, chars: number): string =>
  text.length <= chars ? text : `${text.slice(0, chars).toWellFormed()}… (and ${text.length - chars} more characters)`

/** As much of an input as fits: every argument that reaches somebody, each shortened with a count, and the number of those left out. */
export const inputBrief = (input: unknown, chars_max: number): string => {
  if (!isObject(input)) return shortened(visibleJson(input), Math.max(0, chars_max - 40))
  const all = argumentsOf(input)
  const partsWith = (chars: number) =>
    all.map(({ name, text }) => `${shortened(visibleJson(name), NAME_CHARS_MAX)}: ${shortened(text, chars)}`)
  const lines = VALUE_CHARS.map(partsWith).find((parts) => parts.join("\n").length <= chars_max)
  if (lines !== undefined) return lines.join("\n")
  const parts = partsWith(VALUE_CHARS[VALUE_CHARS.length - 1] ?? 0)
  let room = chars_max - 40
  const fitting = parts.findIndex((part) => (room -= part.length + 1) < 0)
  return [...parts.slice(0, fitting), `and ${parts.length - fitting} more arguments`].join("\n")
}
