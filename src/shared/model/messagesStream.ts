/** A streamed message of Anthropic's API, put together to a whole one. */
import { Option, Predicate, Result, Schema } from "effect"
import type { ModelError } from "#schema/Event.ts"
import { errorIn, otherApi, unreadable } from "./Answer.ts"
import type { Assembler, Delta } from "./Codec.ts"
import { besideIn, placeIn } from "./leniency.ts"

const Any = Schema.Record(Schema.String, Schema.Unknown)
const Text = Schema.optionalKey(Schema.NullOr(Schema.String))
const Place = Schema.optionalKey(Schema.Unknown)

const Event = Schema.Union([
  Schema.Struct({ type: Schema.Literal("message_start"), message: Any }),
  Schema.Struct({
    type: Schema.Literal("content_block_start"),
    index: Place,
    content_block: Schema.StructWithRest(Schema.Struct({ type: Schema.String }), [
      Schema.Record(Schema.String, Schema.Json)
    ])
  }),
  Schema.Struct({
    type: Schema.Literal("content_block_delta"),
    index: Place,
    delta: Schema.Struct({
      type: Schema.String,
      text: Text,
      thinking: Text,
      signature: Text,
      partial_json: Text
    })
  }),
  Schema.Struct({
    type: Schema.Literal("message_delta"),
    delta: Schema.optionalKey(Schema.NullOr(Any)),
    usage: Schema.optionalKey(Schema.Unknown)
  }),
  Schema.Struct({ type: Schema.Literals(["content_block_stop", "message_stop", "ping"]) })
])
type Event = typeof Event.Type
const decodeEvent = Schema.decodeUnknownResult(Event)

/** The types that mean something here; later ones are left alone, as the API asks of its clients. */
const KNOWN: ReadonlySet<unknown> = new Set([
  "message_start",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
  "ping"
])

/** The weight of a block beside its text, so that many empty ones do not get around a limit. */
const BLOCK_CHARS = 64

const PIECES = ["text", "thinking", "signature", "partial_json"] as const

type Block = Record<string, unknown>

const malformed = (data: unknown): ModelError =>
  otherApi(data, "messages") ?? unreadable("a part of the answer is not of a message", data)

/** A call's input comes in pieces of its text; some servers have all of it at the beginning. */
const begun = (block: Readonly<Record<string, unknown>>): Block =>
  block["type"] === "tool_use" ? { ...block, partial_json: "" } : { ...block }

const keysOf = (value: unknown): Readonly<Record<string, unknown>> =>
  Option.getOrElse(Schema.decodeUnknownOption(Any)(value), () => ({}))

/** The event that a part of a stream is, `undefined` where it means nothing here; a failure is the error that it tells or is. */
const eventIn = (data: unknown): Result.Result<Event | undefined, ModelError> => {
  const type = Predicate.hasProperty(data, "type") ? data.type : undefined
  // An event that names another type may have a message of any meaning.
  const isNamed = typeof type === "string" && type !== "error" && !Predicate.hasProperty(data, "error")
  const error = type === "error" ? (errorIn(data) ?? malformed(data)) : isNamed ? undefined : errorIn(data)
  if (error !== undefined) return Result.fail(error)
  if (typeof type === "string" && !KNOWN.has(type)) {
    const other = otherApi(data, "messages")
    return other === undefined ? Result.succeed(undefined) : Result.fail(other)
  }
  return Result.mapError(decodeEvent(data), () => malformed(data))
}

export const messagesAssembler = (): Assembler => {
  const blocks = new Map<number, Block>()
  const usage = new Map<string, unknown>()
  let stop_reason: unknown
  let stop_details: unknown
  let chars = 0
  let newest = -1

  const addPiece = ({ delta, index }: Extract<Event, { type: "content_block_delta" }>): ReadonlyArray<Delta> => {
    const block = blocks.get(placeIn(index) ?? newest)
    if (block === undefined) return []
    for (const key of PIECES) {
      const piece = delta[key]
      if (piece === undefined || piece === null) continue
      const before = block[key]
      block[key] = (typeof before === "string" ? before : "") + piece
      chars += piece.length
    }
    if (delta.type === "text_delta") return [{ type: "text", text: delta.text ?? "" }]
    return delta.type === "thinking_delta" ? [{ type: "thinking" }] : []
  }
  /** The counts of a later event stand; those of the prompt may come in the first one only. */
  const count = (counts: unknown) => {
    const before = usage.size
    for (const [key, value] of Object.entries(keysOf(counts))) if (value !== null) usage.set(key, value)
    chars += (usage.size - before) * BLOCK_CHARS
  }
  const add = (event: Event): ReadonlyArray<Delta> => {
    switch (event.type) {
      case "message_start":
        count(event.message["usage"])
        return []
      case "content_block_start": {
        const { content_block } = event
        newest = placeIn(event.index) ?? newest + 1
        chars += BLOCK_CHARS + JSON.stringify(content_block).length
        blocks.set(newest, begun(content_block))
        const { name, type } = content_block as Block
        if (type === "thinking" || type === "redacted_thinking") return [{ type: "thinking" }]
        return type === "tool_use" && typeof name === "string" ? [{ type: "call", name }] : []
      }
      case "content_block_delta":
        return addPiece(event)
      case "message_delta":
        stop_reason = event.delta?.["stop_reason"] ?? stop_reason
        stop_details = event.delta?.["stop_details"] ?? stop_details
        count(event.usage)
        return []
      default:
        return []
    }
  }
  return {
    take: (data) => Result.map(eventIn(data), (event) => (event === undefined ? [] : add(event))),
    whole: (isMarked) =>
      (typeof stop_reason === "string" && stop_reason !== "") || (isMarked && blocks.size > 0)
        ? {
            type: "message",
            content: [...blocks].toSorted(([a], [b]) => a - b).map(([, block]) => block),
            stop_reason: besideIn(stop_reason),
            stop_details,
            usage: Object.fromEntries(usage)
          }
        : undefined,
    chars: () => chars
  }
}
