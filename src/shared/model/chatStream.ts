/** A streamed chat completion, put together to a whole one. */
import { Result, Schema } from "effect"
import type { ModelError } from "#schema/Event.ts"
import { errorIn, MODEL_TOOL_ARGUMENT_BYTES_MAX, otherApi, unreadable } from "./Answer.ts"
import type { Assembler, Delta } from "./Codec.ts"
import { argumentsIn, besideIn, placeIn, reasonIn, Words, wordsIn } from "./leniency.ts"

const Text = Schema.optionalKey(Schema.NullOr(Schema.String))
const Any = Schema.optionalKey(Schema.Unknown)

const CalledPart = Schema.Struct({ name: Text, arguments: Any })
const called = Schema.NullOr(CalledPart)
const callFields = { index: Any, id: Any, extra_content: Any }
const CallPart = Schema.Struct({ ...callFields, function: Schema.optionalKey(called) })
type CallPart = typeof CallPart.Type

const OneCall = Schema.Struct({ ...callFields, function: called })
const isOneCall = Schema.is(OneCall)

/** The calls of a chat completion, or of a piece of one. Servers whose language has one kind of table write a list as an object, above all an empty one. */
export const Calls = Schema.Union([
  Schema.NullOr(Schema.Array(Schema.NullOr(CallPart))),
  OneCall,
  Schema.Record(Schema.String, CallPart)
])

export const callsOf = (calls: typeof Calls.Type | undefined): ReadonlyArray<CallPart> => {
  if (calls === undefined || calls === null) return []
  const values: ReadonlyArray<CallPart | null> = isOneCall(calls) ? [calls] : Object.values(calls)
  return values.filter((call) => call !== null)
}

const Piece = Schema.Struct({
  content: Schema.optionalKey(Words),
  refusal: Any,
  reasoning: Any,
  reasoning_content: Any,
  reasoning_details: Any,
  extra_content: Any,
  tool_calls: Schema.optionalKey(Calls),
  /** A call as it was before there could be several. */
  function_call: Schema.optionalKey(Schema.NullOr(CalledPart))
})
type Piece = typeof Piece.Type

const Chunk = Schema.Struct({
  choices: Schema.optionalKey(
    Schema.NullOr(
      Schema.Array(
        Schema.Struct({
          delta: Schema.optionalKey(Schema.NullOr(Piece)),
          /** Where some servers have their pieces; others repeat the whole message here in the end. */
          message: Schema.optionalKey(Schema.NullOr(Piece)),
          finish_reason: Text,
          /** Moonshot counts here. */
          usage: Any
        })
      )
    )
  ),
  usage: Any
})
const decodeChunk = Schema.decodeUnknownResult(Chunk)
const isDetails = Schema.is(Schema.Array(Schema.Record(Schema.String, Schema.Json)))

/** The weight of a part beside its text, so that many empty ones do not get around a limit. */
const PART_CHARS = 64

interface CallSlot {
  id: string
  extra_content?: unknown
  readonly function: { name: string; arguments: string }
}

type Detail = Record<string, Schema.Json>

/** The texts of a part of reasoning, which come in pieces. */
const PIECES = new Set(["text", "summary", "data"])

/** Pieces of one part have its index and type; a signature comes at the end. */
const makeDetails = () => {
  const details: Array<Detail> = []
  const places = new Map<string, Detail>()
  const add = (piece: Detail) => {
    const place = JSON.stringify([piece["type"], piece["index"] ?? 0])
    const last = places.get(place)
    if (
      last === undefined ||
      (typeof piece["id"] === "string" && typeof last["id"] === "string" && piece["id"] !== last["id"])
    ) {
      const detail = { ...piece }
      places.set(place, detail)
      return void details.push(detail)
    }
    for (const [key, value] of Object.entries(piece)) {
      const before = last[key]
      if (PIECES.has(key) && typeof value === "string" && typeof before === "string") last[key] = before + value
      else if (value !== null) last[key] = value
    }
  }
  return { details, add }
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** A piece of arguments. An empty object begins a call whose arguments follow as text. */
const piecesOf = (value: unknown): string => {
  const text = argumentsIn(value)
  return typeof value !== "string" && text === "{}" ? "" : text
}

const makeCalls = () => {
  const slots: Array<CallSlot> = []
  /** Arguments that were looked at and go on: a stream may repeat the name of a call in each of its pieces. */
  let begun = ""
  const isWhole = (text: string): boolean => {
    const isLooked = text === "" || text === begun || text.length > MODEL_TOOL_ARGUMENT_BYTES_MAX
    if (isLooked || !/\}\s{0,16}$/u.test(text.slice(-20))) return false
    if (isJson(text)) return true
    begun = text
    return false
  }
  const places = new Map<number, CallSlot>()
  const ids = new Map<string, CallSlot>()
  /** Some providers count the pieces of a call elsewhere than its beginning, or not at all: a bare piece is of the call that its id, or else the order, names. */
  const slotOf = (part: CallPart, id: string, name: string): CallSlot | undefined => {
    const index = placeIn(part.index)
    const known = index === undefined ? undefined : places.get(index)
    if (name !== "") return known ?? (index === undefined ? places.get(0) : undefined)
    return (id === "" ? known : (ids.get(id) ?? known)) ?? (id === "" ? slots.at(-1) : undefined)
  }
  const add = (part: CallPart): Delta | undefined => {
    const index = placeIn(part.index) ?? 0
    const id = besideIn(part.id)
    const { arguments: text, name } = part.function ?? {}
    const before = slotOf(part, id, name ?? "")
    // Some providers give all calls the same index, each in one piece.
    const isNext =
      before === undefined ||
      (id !== "" && before.id !== "" && id !== before.id) ||
      (id === "" && (name ?? "") !== "" && isWhole(before.function.arguments))
    const slot: CallSlot = isNext ? { id, function: { name: "", arguments: "" } } : before
    if (isNext) {
      slots.push(slot)
      places.set(index, slot)
      if (id !== "") ids.set(id, slot)
    }
    const isNamed = slot.function.name === "" && (name ?? "") !== ""
    if (isNamed) slot.function.name = name ?? ""
    slot.function.arguments += piecesOf(text)
    if (part.extra_content !== undefined && part.extra_content !== null) slot.extra_content = part.extra_content
    return isNamed ? { type: "call", name: slot.function.name } : undefined
  }
  return { slots, add }
}

/** A call as it was before there could be several. */
const makeOlder = () => {
  let call: CallSlot["function"] | undefined
  let chars = 0
  return {
    add: (part: typeof CalledPart.Type | undefined): Delta | undefined => {
      if (part === undefined) return undefined
      call ??= { name: "", arguments: "" }
      const isNamed = call.name === "" && (part.name ?? "") !== ""
      if (isNamed) call.name = part.name ?? ""
      call.arguments += piecesOf(part.arguments)
      chars += PART_CHARS + argumentsIn(part.arguments).length
      return isNamed ? { type: "call", name: call.name } : undefined
    },
    call: () => call,
    chars: () => chars
  }
}

/** Choir asks for one choice. */
const choiceOf = ({ choices }: typeof Chunk.Type) => choices?.[0]

/** The chunk that a part of a stream is; a failure is the error that it tells or is. */
const chunkIn = (data: unknown): Result.Result<typeof Chunk.Type, ModelError> => {
  const error = errorIn(data)
  if (error !== undefined) return Result.fail(error)
  const chunk = decodeChunk(data)
  if (Result.isFailure(chunk)) return Result.fail(unreadable("a part of the answer is not of a chat completion", data))
  const other = choiceOf(chunk.success) === undefined ? otherApi(data, "chat") : undefined
  return other === undefined ? Result.succeed(chunk.success) : Result.fail(other)
}

/** The texts of an answer, of which each comes in pieces. */
const makeTexts = () => {
  const texts = { content: "", refusal: "", reasoning: "", reasoning_content: "" }
  return {
    texts,
    /** Adds the pieces of a delta; answers the characters of thoughts, and of all. */
    add: (delta: Piece, text: string) => {
      const refusal = besideIn(delta.refusal)
      const reasoning = besideIn(delta.reasoning)
      const reasoning_content = besideIn(delta.reasoning_content)
      texts.content += text
      texts.refusal += refusal
      texts.reasoning += reasoning
      texts.reasoning_content += reasoning_content
      const thoughts = reasoning.length + reasoning_content.length
      return { thoughts, chars: text.length + thoughts + refusal.length }
    }
  }
}

/** The parts of an answer beside its texts: reasoning in details, and calls. */
const makeParts = () => {
  const { add: addDetail, details } = makeDetails()
  const calls = makeCalls()
  const older = makeOlder()
  let extra_content: unknown
  let chars = 0

  const addDetails = (value: unknown): number => {
    const added = isDetails(value) ? value : []
    for (const detail of added) {
      addDetail(detail)
      chars += PART_CHARS + JSON.stringify(detail).length
    }
    return added.length
  }
  return {
    add: (delta: Piece) => {
      const added = addDetails(delta.reasoning_details)
      if (delta.extra_content !== undefined && delta.extra_content !== null) extra_content = delta.extra_content
      const called = callsOf(delta.tool_calls).flatMap((part) => {
        chars += PART_CHARS + argumentsIn(part.function?.arguments).length + (part.function?.name ?? "").length
        return calls.add(part) ?? []
      })
      const old = older.add(delta.function_call ?? undefined)
      return { hasDetails: added > 0, called: [...called, ...(old === undefined ? [] : [old])] }
    },
    hasCall: () => calls.slots.length > 0 || (older.call()?.name ?? "") !== "",
    whole: () => ({
      extra_content,
      ...(details.length === 0 ? {} : { reasoning_details: details }),
      ...(calls.slots.length === 0 ? {} : { tool_calls: calls.slots }),
      ...(older.call() === undefined ? {} : { function_call: older.call() })
    }),
    chars: () => chars + older.chars()
  }
}

export const chatAssembler = (): Assembler => {
  const { add: addTexts, texts: message } = makeTexts()
  const parts = makeParts()
  let finish_reason: string | undefined
  let usage: unknown
  let chars = 0
  let hasDeltas = false

  const addDelta = (delta: Piece, text: string): ReadonlyArray<Delta> => {
    const added = addTexts(delta, text)
    const { called, hasDetails } = parts.add(delta)
    chars += added.chars
    return [
      ...(added.thoughts > 0 || hasDetails ? [{ type: "thinking" } as const] : []),
      ...(text === "" ? [] : [{ type: "text", text } as const]),
      ...called
    ]
  }
  /** A piece in place of a delta; if it repeats what came before, only the rest is new, and after deltas nothing is. */
  const addMessage = (piece: Piece): ReadonlyArray<Delta> => {
    if (hasDeltas) return []
    const text = wordsIn(piece.content)
    if (message.content === "" || !text.startsWith(message.content)) return addDelta(piece, text)
    return addDelta({ content: text }, text.slice(message.content.length))
  }
  const isSaid = () => message.content !== "" || message.refusal !== "" || parts.hasCall()

  return {
    take: (data) => {
      const chunk = chunkIn(data)
      if (Result.isFailure(chunk)) return Result.fail(chunk.failure)
      const choice = choiceOf(chunk.success)
      finish_reason = reasonIn(choice?.finish_reason) ?? finish_reason
      usage = chunk.success.usage ?? choice?.usage ?? usage
      const { delta, message: whole } = choice ?? {}
      if (delta !== undefined && delta !== null) {
        hasDeltas = true
        return Result.succeed(addDelta(delta, wordsIn(delta.content)))
      }
      return Result.succeed(whole === undefined || whole === null ? [] : addMessage(whole))
    },
    whole: (isMarked) =>
      finish_reason === undefined && !(isMarked && isSaid())
        ? undefined
        : {
            choices: [
              {
                ...(finish_reason === undefined ? {} : { finish_reason }),
                message: { ...message, ...parts.whole() }
              }
            ],
            usage
          },
    chars: () => chars + parts.chars()
  }
}
