/**
 * Answers of real providers, as they publish them: each with its source, the event that is committed for it, and what of it comes back to
 * the provider in the next request. `corpus/NAME.json` has the answer whole (`body`) or as the blocks of a stream (`stream`).
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Schema, Struct } from "effect"
import { DIALECTS, type DialectName } from "#demo/dialects/Dialect.ts"
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
    /** Messages, or items of Responses, with the ids of the provider, which need not come back; null where nothing was said. */
    next: Schema.NullOr(Schema.Array(Schema.Record(Schema.String, Schema.Unknown)))
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
