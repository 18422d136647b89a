/** A streamed chat completion, put together to a whole one. */
import { Result, Schema } from "effect"
import { errorIn, excerpt, MODEL_TOOL_ARGUMENT_BYTES_MAX, problem } from "./Answer.ts"
import type { Assembler, Delta } from "./Codec.ts"

const Text = Schema.optionalKey(Schema.NullOr(Schema.String))

const CallPart = Schema.Struct({
  index: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  id: Text,
  extra_content: Schema.optionalKey(Schema.Unknown),
  function: Schema.optionalKey(Schema.NullOr(Schema.Struct({ name: Text, arguments: Text })))
})

const ContentPart = Schema.Struct({ type: Schema.String, text: Schema.optionalKey(Schema.String) })

const Piece = Schema.Struct({
  content: Schema.optionalKey(Schema.Union([Schema.NullOr(Schema.String), Schema.Array(ContentPart)])),
  refusal: Text,
  reasoning: Text,
  reasoning_content: Text,
  reasoning_details: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.Record(Schema.String, Schema.Json)))),
  extra_content: Schema.optionalKey(Schema.Unknown),
  tool_calls: Schema.optionalKey(Schema.NullOr(Schema.Array(CallPart)))
})

const Chunk = Schema.Struct({
  choices: Schema.optionalKey(
    Schema.NullOr(
      Schema.Array(
        Schema.Struct({
          delta: Schema.optionalKey(Schema.NullOr(Piece)),
          finish_reason: Text,
          /** Moonshot counts here. */
          usage: Schema.optionalKey(Schema.Unknown)
        })
      )
    )
  ),
  usage: Schema.optionalKey(Schema.Unknown)
})
const decodeChunk = Schema.decodeUnknownResult(Chunk)

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
  const add = (part: typeof CallPart.Type): Delta | undefined => {
    const index = part.index ?? 0
    const { arguments: text, name } = part.function ?? {}
    const before = places.get(index)
    // Some providers give all calls the same index, each in one piece.
    const isNext =
      before === undefined ||
      ((part.id ?? "") !== "" && before.id !== "" && part.id !== before.id) ||
      ((part.id ?? "") === "" && (name ?? "") !== "" && isWhole(before.function.arguments))
    const slot: CallSlot = isNext ? { id: part.id ?? "", function: { name: "", arguments: "" } } : before
    if (isNext) {
      slots.push(slot)
      places.set(index, slot)
    }
    const isNamed = slot.function.name === "" && (name ?? "") !== ""
    if (isNamed) slot.function.name = name ?? ""
    slot.function.arguments += text ?? ""
    if (part.extra_content !== undefined && part.extra_content !== null) slot.extra_content = part.extra_content
    return isNamed ? { type: "call", name: slot.function.name } : undefined
  }
  return { slots, add }
}

const textOf = (content: (typeof Piece.Type)["content"]): string =>
  content === undefined || content === null
    ? ""
    : typeof content === "string"
      ? content
      : content.flatMap(({ text, type }) => (type === "text" ? [text ?? ""] : [])).join("")

export const chatAssembler = (): Assembler => {
  const message = { content: "", refusal: "", reasoning: "", reasoning_content: "" }
  const { add: addDetail, details } = makeDetails()
  const calls = makeCalls()
  let extra_content: unknown
  let finish_reason: string | undefined
  let usage: unknown
  let chars = 0

  const addDelta = (delta: typeof Piece.Type): ReadonlyArray<Delta> => {
    const text = textOf(delta.content)
    const thoughts = (delta.reasoning ?? "") + (delta.reasoning_content ?? "")
    message.content += text
    message.refusal += delta.refusal ?? ""
    message.reasoning += delta.reasoning ?? ""
    message.reasoning_content += delta.reasoning_content ?? ""
    for (const detail of delta.reasoning_details ?? []) {
      addDetail(detail)
      chars += PART_CHARS + JSON.stringify(detail).length
    }
    if (delta.extra_content !== undefined && delta.extra_content !== null) extra_content = delta.extra_content
    const called = (delta.tool_calls ?? []).flatMap((part) => {
      chars += PART_CHARS + (part.function?.arguments ?? "").length + (part.function?.name ?? "").length
      return calls.add(part) ?? []
    })
    chars += text.length + thoughts.length + (delta.refusal ?? "").length
    const isThinking = thoughts !== "" || (delta.reasoning_details ?? []).length > 0
    return [
      ...(isThinking ? [{ type: "thinking" } as const] : []),
      ...(text === "" ? [] : [{ type: "text", text } as const]),
      ...called
    ]
  }

  return {
    take: (data) => {
      const error = errorIn(data)
      if (error !== undefined) return Result.fail(error)
      const chunk = decodeChunk(data)
      if (Result.isFailure(chunk))
        return Result.fail(
          problem(
            "malformed",
            `a part of the answer is not of a chat completion: ${excerpt(JSON.stringify(data) ?? "")}`
          )
        )
      // Choir asks for one choice.
      const choice = chunk.success.choices?.[0]
      finish_reason = choice?.finish_reason ?? finish_reason
      usage = chunk.success.usage ?? choice?.usage ?? usage
      return Result.succeed(choice?.delta === undefined || choice.delta === null ? [] : addDelta(choice.delta))
    },
    whole: () =>
      finish_reason === undefined
        ? undefined
        : {
            choices: [
              {
                finish_reason,
                message: {
                  ...message,
                  extra_content,
                  ...(details.length === 0 ? {} : { reasoning_details: details }),
                  ...(calls.slots.length === 0 ? {} : { tool_calls: calls.slots })
                }
              }
            ],
            usage
          },
    chars: () => chars
  }
}
