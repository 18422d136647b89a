/**
 * OpenAI's Responses API without stored state: everything that the model needs is in each request, its reasoning in encrypted form and in the
 * order of its own output.
 */
import { Predicate, Result, Schema } from "effect"
import type { Model } from "#schema/Config.ts"
import type { ModelError } from "#schema/Event.ts"
import { type Answer, answerOf, errorIn, otherApi, problem, unreadable } from "./Answer.ts"
import { type Codec, listed, toolsOnce, written } from "./Codec.ts"
import type { Asked } from "./Asked.ts"
import { reasoningOf } from "./continuation.ts"
import type { AssistantMessage, Call, Message } from "./Conversation.ts"
import { apiOf, argumentsIn, besideIn, Words, wordsIn } from "./leniency.ts"
import { isPictured, type Shown, type ShownPicture, shownIn } from "./pictures.ts"
import { answerTokensOf, quirksOf } from "./quirks.ts"
import { openAiKeys, requestParameters } from "./requestParameters.ts"
import { responsesAssembler } from "./responsesStream.ts"
import { openAiUsage } from "./usage.ts"

/** The least that the API takes as a limit. */
const OUTPUT_TOKENS_MIN = 16

const Item = Schema.Struct({
  type: Schema.String,
  content: Schema.optionalKey(Schema.Unknown),
  phase: Schema.optionalKey(Schema.Unknown)
})

const Reply = Schema.Struct({
  status: Schema.optionalKey(Schema.NullOr(Schema.String)),
  error: Schema.optionalKey(Schema.Unknown),
  incomplete_details: Schema.optionalKey(Schema.Unknown),
  output: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.Record(Schema.String, Schema.Json)))),
  usage: Schema.optionalKey(Schema.Unknown)
})
const decodeReply = Schema.decodeUnknownResult(Reply)
const decodeItem = Schema.decodeUnknownResult(Item)
const decodeWords = Schema.decodeUnknownResult(Schema.UndefinedOr(Words))
const decodeCall = Schema.decodeUnknownResult(
  Schema.Struct({
    name: Schema.String,
    arguments: Schema.optionalKey(Schema.Unknown),
    input: Schema.optionalKey(Schema.Unknown)
  })
)

/** The places of an answer's items: reasoning as it came, and where its text and its calls stood. */
const Layout = Schema.Array(
  Schema.Union([
    Schema.Literal("call"),
    Schema.Struct({ phase: Schema.NullOr(Schema.String) }),
    Schema.Struct({ item: Schema.Record(Schema.String, Schema.Json) })
  ])
)
type Layout = typeof Layout.Type
const decodeLayout = Schema.decodeUnknownResult(Schema.fromJsonString(Layout))

interface Found {
  text: string
  refusal: string
  readonly calls: Array<{ readonly name: string; readonly arguments: string }>
  readonly layout: Array<Layout[number]>
}

const malformed = (body: unknown): ModelError =>
  errorIn(body) ?? otherApi(body, "responses") ?? unreadable("the answer is not a response", body)

type Raw = NonNullable<(typeof Reply.Type)["output"]>[number]

/** The types of a call of a function: some servers write each call as one of a tool that takes any text. */
const CALLS = new Set(["function_call", "custom_tool_call"])

const refusalIn = (content: unknown): string =>
  Array.isArray(content)
    ? content.map((part) => (Predicate.hasProperty(part, "refusal") ? besideIn(part.refusal) : "")).join("")
    : ""

/** Adds one item to an answer; false where it is not of its type. */
const addItem = (found: Found, raw: Raw): boolean => {
  const item = decodeItem(raw)
  if (Result.isFailure(item)) return false
  const { content, phase, type } = item.success
  if (type === "reasoning") {
    // Without its encrypted content nobody can continue it, since nothing is stored.
    if (typeof raw["encrypted_content"] === "string") found.layout.push({ item: raw })
    return true
  }
  if (CALLS.has(type)) {
    const call = decodeCall(raw)
    if (Result.isFailure(call)) return false
    found.calls.push({ name: call.success.name, arguments: argumentsIn(call.success.arguments ?? call.success.input) })
    found.layout.push("call")
    return true
  }
  if (type !== "message") return true
  const words = decodeWords(content)
  if (Result.isFailure(words)) return false
  const said = wordsIn(words.success)
  const refusal = refusalIn(content)
  // An empty message beside a call says nothing, and has no place.
  if (said === "" && refusal === "") return true
  found.text = found.text === "" || said === "" ? found.text + said : `${found.text}\n\n${said}`
  found.refusal += refusal
  found.layout.push({ phase: typeof phase === "string" ? phase.slice(0, 64) : null })
  return true
}

const reasonOf = (details: unknown): string =>
  (Predicate.hasProperty(details, "reason") ? besideIn(details.reason) : "") || "length"

const read = (body: unknown): Result.Result<Answer, ModelError> => {
  const reply = decodeReply(body)
  if (Result.isFailure(reply)) return Result.fail(malformed(body))
  const { incomplete_details, status, usage } = reply.success
  // A response that leaves its output out is empty; a body that is not a response at all is not.
  const output = reply.success.output ?? (apiOf(body) === "responses" ? [] : undefined)
  if (status === "failed") return Result.fail(errorIn(body) ?? problem("http", "the provider failed", { status: 502 }))
  if (output === undefined) return Result.fail(malformed(body))
  const found: Found = { text: "", refusal: "", calls: [], layout: [] }
  for (const raw of output) if (!addItem(found, raw)) return Result.fail(malformed(body))
  const { calls, layout, refusal, text } = found
  const isThought = layout.some((part) => typeof part === "object" && "item" in part)
  return answerOf({
    text,
    calls,
    refusal,
    reason: status === "incomplete" ? reasonOf(incomplete_details) : undefined,
    usage: usage === undefined || usage === null ? undefined : openAiUsage(usage),
    reasoning: isThought ? JSON.stringify(layout) : undefined
  })
}

const callItem = (call: Call) => ({
  type: "function_call",
  call_id: call.id,
  name: call.name,
  arguments: call.arguments
})

const textItem = (content: string, phase: string | null = null) => ({
  type: "message",
  role: "assistant",
  content: [{ type: "output_text", text: content }],
  ...(phase === null ? {} : { phase })
})

const isSaid = (content: string | null): content is string => content !== null && content !== ""

const plainItems = ({ calls = [], content }: AssistantMessage): ReadonlyArray<object> => [
  ...(isSaid(content) ? [textItem(content)] : []),
  ...calls.map(callItem)
]

/** The model's own items in its own order. One whose parts are not those of the message comes back without its reasoning. */
const laidOut = (message: AssistantMessage, layout: Layout): ReadonlyArray<object> => {
  const { calls = [], content } = message
  const texts = layout.filter((part) => part !== "call" && "phase" in part).length
  const isWhole = layout.filter((part) => part === "call").length === calls.length
  // Reasoning has to be in front of what it led to.
  if (
    !isWhole ||
    texts > 0 !== isSaid(content) ||
    (typeof layout.at(-1) === "object" && "item" in Object(layout.at(-1)))
  )
    return plainItems(message)
  let text = content
  let next = 0
  return layout.flatMap((part): ReadonlyArray<object> => {
    if (part === "call") {
      const call = calls[next++]
      return call === undefined ? [] : [callItem(call)]
    }
    if ("item" in part) return [part.item]
    // Several texts were joined, so that the first has them all.
    const said = text
    text = null
    return isSaid(said) ? [textItem(said, part.phase)] : []
  })
}

const textPart = (text: string) => ({ type: "input_text", text })

const picturePart = ({ data, type }: ShownPicture) => ({
  type: "input_image",
  detail: "auto",
  image_url: `data:${type};base64,${data}`
})

const itemsOf = (message: Message, { model }: Asked, shown: ReturnType<typeof shownIn>): ReadonlyArray<object> => {
  const { content, pictures }: Shown = isPictured(message)
    ? shown(message)
    : { content: message.content ?? "", pictures: [] }
  const parts = [
    ...(pictures.length > 0 && content.trim() === "" ? [] : [textPart(content)]),
    ...pictures.map(picturePart)
  ]
  if (message.role === "tool")
    return [{ type: "function_call_output", call_id: message.call_id, output: pictures.length === 0 ? content : parts }]
  if (message.role !== "assistant") return [{ type: "message", role: message.role, content: parts }]
  const own = reasoningOf(message, model)
  const layout = own === undefined ? undefined : decodeLayout(own)
  return layout === undefined || Result.isFailure(layout) ? plainItems(message) : laidOut(message, layout.success)
}

// Functions are strict unless they say otherwise, and optional parameters are then refused.
const toolJson = toolsOnce((tool) => ({ type: "function", ...tool, strict: false }))

const items = new WeakMap<Message, { readonly model: Model; readonly json: ReadonlyArray<string> }>()

/** The items of a message as JSON; those without pictures are the same in every request to a model, so that they are written once. */
const itemsJson = (message: Message, asked: Asked, shown: ReturnType<typeof shownIn>): ReadonlyArray<string> => {
  const before = items.get(message)
  if (before?.model === asked.model) return before.json
  const json = itemsOf(message, asked, shown).map((item) => JSON.stringify(item))
  if (!isPictured(message)) items.set(message, { model: asked.model, json })
  return json
}

const conversation = (asked: Asked): ReadonlyArray<readonly [string, ReadonlyArray<string>]> => {
  const { messages, tools } = asked
  const instructions = messages.flatMap((message) => (message.role === "system" ? [message.content] : []))
  const shown = shownIn(asked)
  const input = messages.filter(({ role }) => role !== "system").flatMap((message) => itemsJson(message, asked, shown))
  return [
    ...(instructions.length === 0 ? [] : [["instructions", [JSON.stringify(instructions.join("\n\n"))]] as const]),
    ["input", listed(input)],
    ...(tools.length === 0 ? [] : [["tools", toolJson(tools)] as const])
  ]
}

const reasoningWish = ({ model }: Asked): Schema.Json | undefined =>
  model.reasoning_effort === null ? undefined : { effort: model.reasoning_effort }

export const responsesCodec: Codec = {
  path: "/responses",
  headers: (_, key) => (key === undefined ? {} : { authorization: `Bearer ${key}` }),
  parameters: (asked) => {
    const { changes, model } = asked
    const quirks = quirksOf(model)
    const own = {
      ...openAiKeys(asked, quirks),
      max_output_tokens: Math.max(OUTPUT_TOKENS_MIN, answerTokensOf(model)),
      reasoning: reasoningWish(asked),
      include: quirks.encrypted ? ["reasoning.encrypted_content"] : undefined,
      store: false
    }
    return requestParameters(model, own, changes)
  },
  parts: (asked) => written(responsesCodec.parameters(asked), conversation(asked)),
  body: (asked) => responsesCodec.parts(asked).join(""),
  read,
  assembler: responsesAssembler
}
