/**
 * Answers of real providers, as they publish them: each with its source, the event that is committed for it, what of it comes back to the
 * provider, and the request that follows it. `corpus/NAME.json` has the answer whole (`body`) or as the blocks of a stream (`stream`).
 * `CHOIR_GOLDEN=write npx vitest run corpusLanes` renews the requests.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Schema, Struct } from "effect"
import { DIALECTS, type DialectName } from "#demo/dialects/Dialect.ts"
import { isObject, type Keys } from "#demo/dialects/jsonKeys.ts"
import { ModelError } from "#schema/Event.ts"

const FOLDER = join(import.meta.dirname, "providers/corpus")

const Tokens = Schema.optionalKey(Schema.Natural)

const Completed = Schema.Struct({
  text: Schema.optionalKey(Schema.String),
  /** Input that does not parse is the text as it came. */
  tool_calls: Schema.Array(Schema.Struct({ name: Schema.String, input: Schema.Json })),
  /** In the words of chat completions. */
  finish_reason: Schema.String,
  /** `input_tokens` is the whole prompt in every spelling. */
  usage: Schema.optionalKey(
    Schema.Struct({
      input_tokens: Schema.Natural,
      output_tokens: Schema.Natural,
      cache_read_tokens: Tokens,
      cache_write_tokens: Tokens,
      reasoning_tokens: Tokens,
      cost_usd: Schema.optionalKey(Schema.Finite)
    })
  )
})

const Failed = Schema.Struct({
  error: ModelError.mapFields(Struct.omit(["message"])),
  /** Words of the provider that the error has to show. */
  says: Schema.optionalKey(Schema.String),
  /** The prompt was too long. */
  overflow: Schema.optionalKey(Schema.Literal(true))
})

/** What edge asks for after an answer; only after `end` its turn is over, and it asks for nothing before a person writes again. */
const After = Schema.Literals(["again", "compaction", "correction", "end", "results"])
export type After = typeof After.Type

const Next = Schema.Struct({
  after: After,
  /** All messages, or items of Responses, behind the instructions. A compaction's own note is cut behind its first sentence. */
  messages: Schema.NonEmptyArray(Schema.Record(Schema.String, Schema.Unknown))
})
export type Next = typeof Next.Type

const Fixture = Schema.Struct({
  dialect: Schema.Literals(Object.keys(DIALECTS) as ReadonlyArray<DialectName>),
  source: Schema.String.check(Schema.isPattern(/^https:\/\//u)),
  response: Schema.Struct({
    status: Schema.Natural,
    headers: Schema.Record(Schema.String, Schema.String),
    body: Schema.optionalKey(Schema.Unknown),
    stream: Schema.optionalKey(Schema.Array(Schema.String))
  }),
  expected: Schema.Struct({
    event: Schema.Union([Completed, Failed]),
    /** The part of the answer that comes back, as messages or items of Responses with the ids of the provider, which need not come back. */
    comes_back: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)),
    /** The next request of edge, whose person writes "one" before the answer and "two" after the end of its turn. */
    next: Next
  })
})

export type Fixture = typeof Fixture.Type & { readonly name: string }

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Fixture), { onExcessProperty: "error" })

/** The corpus by name. */
export const readCorpus = (): ReadonlyArray<Fixture> =>
  readdirSync(FOLDER)
    .toSorted()
    .map((file) => ({ name: file.replace(/\.json$/u, ""), ...decode(readFileSync(join(FOLDER, file), "utf8")) }))

/** The bytes of a response as the provider sends them. */
export const bytesOf = ({ response }: Fixture): string =>
  response.stream === undefined
    ? JSON.stringify(response.body)
    : response.stream.map((block) => `${block}\n\n`).join("")

const COMPACTION = /(<choir-note>\nCompaction: [^.]*\.)[^]*(\n<\/choir-note>)/u

/** The messages of a request without the instructions. */
const messagesOf = (body: unknown): ReadonlyArray<Keys> => {
  const { input, messages } = Object(body) as Readonly<Record<string, unknown>>
  const sent = (messages ?? input) as ReadonlyArray<Keys>
  const all: unknown = JSON.parse(JSON.stringify(sent), (_, value: unknown) =>
    typeof value === "string" ? value.replace(COMPACTION, "$1 …$2") : value
  )
  return (all as ReadonlyArray<Keys>).filter(({ role }) => role !== "system")
}

/** The text at the end of messages; a result has another key for it. */
const lastText = (messages: ReadonlyArray<Keys>): string => {
  const last = messages.at(-1)
  if (last?.["role"] === "tool") return ""
  const content = last?.["content"]
  const part: unknown = Array.isArray(content) ? content.at(-1) : { text: content }
  return isObject(part) && typeof part["text"] === "string" ? part["text"] : ""
}

/** A request as the corpus has it, beside the one that was answered. */
export const nextOf = (answered: unknown, body: unknown): Next => {
  const [before, messages] = [messagesOf(answered), messagesOf(body)]
  const text = lastText(messages)
  const after = (): After => {
    if (JSON.stringify(before) === JSON.stringify(messages)) return "again"
    if (text.startsWith("<choir-note>")) return COMPACTION.test(text) ? "compaction" : "correction"
    return text === "two" ? "end" : "results"
  }
  return decodeNext({ after: after(), messages })
}

const decodeNext = Schema.decodeUnknownSync(Next)

/** Records the next request of an answer. */
export const recordNext = (name: string, next: Next): void => {
  const file = join(FOLDER, `${name}.json`)
  const { expected, ...fixture } = JSON.parse(readFileSync(file, "utf8")) as typeof Fixture.Encoded
  writeFileSync(file, `${JSON.stringify({ ...fixture, expected: { ...expected, next } }, null, 2)}\n`)
}
