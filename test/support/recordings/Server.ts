/** The shape of one server's answers, as `test/corpus/providers` has it: what it adds, leaves out and spells otherwise. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import type { Meaning } from "./Meaning.ts"

const FOLDER = join(import.meta.dirname, "../../corpus/providers")

const Keys = Schema.Record(Schema.String, Schema.Json)
export type Keys = typeof Keys.Type
const Reasons = Schema.Struct({
  stop: Schema.String,
  calls: Schema.String,
  length: Schema.String,
  filter: Schema.String
})

/** What servers of all APIs differ in. */
const common = {
  name: Schema.String,
  source: Schema.String.check(Schema.isPattern(/^https:\/\//u)),
  reasons: Reasons,
  /** What stands in front of an event's data, and behind it. */
  line: Schema.String,
  eol: Schema.String,
  /** Lines before the first event. */
  comments: Schema.Array(Schema.String),
  /** Whether the stream ends with [DONE]. */
  done: Schema.Boolean,
  /** An error, with `$words` in the place of its words. */
  error: Schema.Json,
  /** Whether the model refuses in a field of its own. */
  refusals: Schema.optionalKey(Schema.Boolean),
  /** Whether the server filters, and says where a model's limit cut an answer. */
  filters: Schema.optionalKey(Schema.Boolean),
  lengths: Schema.optionalKey(Schema.Boolean)
}

const ChatServer = Schema.Struct({
  ...common,
  api: Schema.Literal("chat"),
  envelope: Keys,
  opening: Schema.Array(Keys),
  message: Keys,
  whole_extra: Schema.optionalKey(Keys),
  choice: Keys,
  delta: Keys,
  reasoning: Schema.Literals([
    "none",
    "reasoning",
    "reasoning_content",
    "details",
    "parts",
    "think tag",
    "thought tag",
    "open think tag"
  ]),
  /** Arguments in pieces, in one piece, or as an object. */
  calls: Schema.Literals(["pieces", "whole", "object"]),
  call: Schema.Struct({
    extra_content: Schema.optionalKey(Schema.Json),
    id_empty_later: Schema.optionalKey(Schema.Boolean)
  }),
  call_ids: Schema.optionalKey(Schema.String),
  /** The reason to stop of a piece before the last: null, "", or no such key. */
  unfinished: Schema.NullOr(Schema.Literals(["", "absent"])),
  finish: Schema.Literals(["own", "with last", "none"]),
  usage: Schema.Literals(["own", "last", "each", "choice", "x_groq", "none"]),
  counts: Schema.Literals(["openai", "plain", "deepseek", "moonshot", "openrouter"]),
  error_event: Schema.optionalKey(Schema.Boolean),
  /** Whether the last chunk repeats the whole message. */
  repeats: Schema.optionalKey(Schema.Boolean)
})
export type ChatServer = typeof ChatServer.Type

const MessagesServer = Schema.Struct({
  ...common,
  api: Schema.Literal("messages"),
  pings: Schema.Boolean,
  /** Of the last event. */
  stop: Keys,
  usage: Schema.Literals(["anthropic", "start"]),
  thinking: Schema.Literals(["signed", "unsigned"]),
  /** Whether the input of a call stands at its beginning. */
  start_input: Schema.Boolean,
  /** Whether events have names, and absent fields are null. */
  names: Schema.Boolean,
  nulls: Schema.optionalKey(Schema.Boolean),
  message: Keys
})
export type MessagesServer = typeof MessagesServer.Type

const ResponsesServer = Schema.Struct({
  ...common,
  api: Schema.Literal("responses"),
  output: Schema.Literals(["at end", "left out"]),
  /** Whether items are announced and done; whether arguments come in pieces, or whole and apart from their item. */
  items: Schema.Boolean,
  pieces: Schema.Boolean,
  parts: Schema.Literals(["output_text", "text"]),
  encrypted: Schema.Boolean,
  names: Schema.Boolean,
  envelope: Keys
})
export type ResponsesServer = typeof ResponsesServer.Type

export type Server = ChatServer | MessagesServer | ResponsesServer

const decode = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Union([ChatServer, MessagesServer, ResponsesServer])),
  { onExcessProperty: "error" }
)

export const readServers = (): ReadonlyArray<Server> =>
  readdirSync(FOLDER)
    .toSorted()
    .map((file) => decode(readFileSync(join(FOLDER, file), "utf8")))

/** An answer as it is sent: whole, and as the blocks of a stream, one event each. */
export interface Recording {
  readonly whole: unknown
  readonly blocks: ReadonlyArray<string>
}

/** A block of a stream. */
export const blockOf = ({ eol, line }: Server, data: unknown, name?: string): string => {
  const single = eol.length === 4 ? "\r\n" : "\n"
  const text = typeof data === "string" ? data : JSON.stringify(data)
  return `${name === undefined ? "" : `event: ${name}${single}`}${line}${text}${eol}`
}

/** The server's error. */
export const errorOf = ({ error }: Server, words: string): unknown =>
  JSON.parse(JSON.stringify(error).replaceAll('"$words"', JSON.stringify(words)))

/** Whether a server can say so. */
export const canSay = (server: Server, { calls, end, fails, refusal, text, thoughts }: Meaning): boolean =>
  // Without a reason to stop, an answer of nothing is one that broke off.
  (server.api !== "chat" || server.finish !== "none" || fails !== undefined || text !== "" || calls !== undefined) &&
  (refusal === undefined || server.refusals === true) &&
  (end !== "filter" || server.filters !== false) &&
  (end !== "length" || server.lengths !== false) &&
  (thoughts === undefined || server.api !== "chat" || server.reasoning !== "none")
