/**
 * Anthropic's Messages API: the system text apart, roles that alternate, results in the message behind their calls, thinking with its
 * signatures, and breakpoints of the cache.
 */
import { Predicate, Result, Schema } from "effect"
import type { ModelError } from "#schema/Event.ts"
import { type Answer, answerOf, errorIn, otherApi, unreadable } from "./Answer.ts"
import { type Codec, listed, toolsOnce, written } from "./Codec.ts"
import type { Asked } from "./Asked.ts"
import { isThoughtThrough, reasoningOf } from "./continuation.ts"
import type { AssistantMessage, Call, Message, Tool } from "./Conversation.ts"
import { argumentsIn, reasonIn } from "./leniency.ts"
import { messagesAssembler } from "./messagesStream.ts"
import { isPictured, type Shown, type ShownPicture, shownIn } from "./pictures.ts"
import { answerTokensOf, type Quirks, quirksOf } from "./quirks.ts"
import { requestParameters } from "./requestParameters.ts"
import { anthropicUsage } from "./usage.ts"

const VERSION = "2023-06-01"

const Text = Schema.optionalKey(Schema.NullOr(Schema.String))

const Block = Schema.Struct({
  type: Schema.String,
  text: Text,
  name: Text,
  input: Schema.optionalKey(Schema.Unknown),
  /** The arguments of a streamed call, whose JSON may be cut. */
  partial_json: Text
})
type Block = typeof Block.Type

const Reply = Schema.Struct({
  type: Schema.optionalKey(Schema.Literal("message")),
  content: Schema.Union([Schema.Array(Schema.Record(Schema.String, Schema.Json)), Schema.NullOr(Schema.String)]),
  stop_reason: Text,
  stop_details: Schema.optionalKey(Schema.Unknown),
  usage: Schema.optionalKey(Schema.Unknown)
})
const decodeReply = Schema.decodeUnknownResult(Reply)
const decodeBlocks = Schema.decodeUnknownResult(Schema.Array(Block))

const Thinking = Schema.Struct({
  type: Schema.Literal("thinking"),
  thinking: Schema.String,
  signature: Schema.NonEmptyString
})
const Redacted = Schema.Struct({ type: Schema.Literal("redacted_thinking"), data: Schema.String })
/** The places of an answer's blocks: thinking as it came, and where its text and its calls stood. */
const Layout = Schema.Array(Schema.Union([Schema.Literals(["text", "call"]), Thinking, Redacted]))
type Layout = typeof Layout.Type
const decodeLayout = Schema.decodeUnknownResult(Schema.fromJsonString(Layout))
const isThinking = Schema.is(Schema.Union([Thinking, Redacted]))

type Blocks = Exclude<(typeof Reply.Type)["content"], string | null>

/** The blocks of an answer; some servers write a text in their place. */
const blocksOf = (content: (typeof Reply.Type)["content"]): Blocks =>
  typeof content === "string" ? [{ type: "text", text: content }] : (content ?? [])

/** The arguments of a call: its pieces, or the input that stood at its beginning or in an answer in one piece. */
const callArguments = ({ input, partial_json }: Block): string => {
  if (partial_json === undefined || partial_json === null) return argumentsIn(input ?? {})
  const begun = argumentsIn(input)
  return partial_json === "" && begun !== "{}" ? begun : partial_json
}

const layoutOf = (content: Blocks): Layout =>
  content.flatMap((block): Layout => {
    if (isThinking(block))
      return block.type === "thinking"
        ? [{ type: block.type, thinking: block.thinking, signature: block.signature }]
        : [{ type: block.type, data: block.data }]
    return block["type"] === "text" ? ["text"] : block["type"] === "tool_use" ? ["call"] : []
  })

const wordsIn = (details: unknown): string | undefined => {
  const words = Predicate.hasProperty(details, "explanation") ? details.explanation : undefined
  return typeof words === "string" ? words : undefined
}

const read = (body: unknown): Result.Result<Answer, ModelError> => {
  const reply = decodeReply(body)
  const blocks = Result.flatMap(reply, ({ content }) => decodeBlocks(blocksOf(content)))
  if (Result.isFailure(reply) || Result.isFailure(blocks))
    return Result.fail(errorIn(body) ?? otherApi(body, "messages") ?? unreadable("the answer is not a message", body))
  const { content, stop_details, stop_reason, usage } = reply.success
  const layout = layoutOf(blocksOf(content))
  const refusal = stop_reason === "refusal" ? wordsIn(stop_details) : undefined
  return answerOf({
    text: blocks.success.flatMap(({ text, type }) => (type === "text" ? [text ?? ""] : [])).join(""),
    calls: blocks.success.flatMap((block) =>
      block.type === "tool_use" ? [{ name: block.name ?? "", arguments: callArguments(block) }] : []
    ),
    reason: reasonIn(stop_reason),
    ...(refusal === undefined ? {} : { refusal }),
    usage: usage === undefined || usage === null ? undefined : anthropicUsage(usage),
    reasoning: layout.some((part) => typeof part === "object") ? JSON.stringify(layout) : undefined
  })
}

type Content = Readonly<Record<string, unknown>>
interface Turn {
  readonly role: "user" | "assistant"
  readonly content: ReadonlyArray<Content>
}

const textBlock = (text: string): Content => ({ type: "text", text })

/** The API takes objects alone. */
const inputOf = (text: string): object => {
  try {
    const input = JSON.parse(text) as unknown
    return typeof input === "object" && input !== null && !Array.isArray(input) ? input : {}
  } catch {
    return {}
  }
}

const callBlock = ({ arguments: text, id, name }: Call): Content => ({
  type: "tool_use",
  id,
  name,
  input: inputOf(text)
})

const isSaid = (content: string | null): content is string => content !== null && content.trim() !== ""

const plainBlocks = ({ calls = [], content }: AssistantMessage): ReadonlyArray<Content> => [
  ...(isSaid(content) ? [textBlock(content)] : []),
  ...calls.map(callBlock)
]

/** The model's own blocks in its own order. One whose parts are not those of the message comes back without its thinking. */
const laidOut = (message: AssistantMessage, layout: Layout): ReadonlyArray<Content> => {
  const { calls = [], content } = message
  if (layout.filter((part) => part === "call").length !== calls.length || typeof layout[0] !== "object")
    return plainBlocks(message)
  let text = content
  let next = 0
  return layout.flatMap((part): ReadonlyArray<Content> => {
    if (typeof part === "object") return [part]
    if (part === "call") {
      const call = calls[next++]
      return call === undefined ? [] : [callBlock(call)]
    }
    // Several texts were joined, so that the first has them all.
    const said = text
    text = null
    return isSaid(said) ? [textBlock(said)] : []
  })
}

const assistantBlocks = (message: AssistantMessage, { model }: Asked): ReadonlyArray<Content> => {
  const own = reasoningOf(message, model)
  const layout = own === undefined ? undefined : decodeLayout(own)
  return layout === undefined || Result.isFailure(layout) ? plainBlocks(message) : laidOut(message, layout.success)
}

const pictureBlock = ({ data, type }: ShownPicture): Content => ({
  type: "image",
  source: { type: "base64", media_type: type, data }
})

/** The text of a message that also has pictures. */
const textsOf = (content: string): ReadonlyArray<Content> => (isSaid(content) ? [textBlock(content)] : [])

const turnOf = (message: Message, asked: Asked, shown: ReturnType<typeof shownIn>): Turn => {
  if (message.role === "assistant") return { role: "assistant", content: assistantBlocks(message, asked) }
  const { content, pictures }: Shown = isPictured(message) ? shown(message) : { content: message.content, pictures: [] }
  const blocks = pictures.map(pictureBlock)
  if (message.role !== "tool") return { role: "user", content: [...blocks, ...textsOf(content)] }
  const result = { type: "tool_result", tool_use_id: message.call_id }
  if (blocks.length > 0) return { role: "user", content: [{ ...result, content: [...textsOf(content), ...blocks] }] }
  return { role: "user", content: [isSaid(content) ? { ...result, content } : result] }
}

const isThought = ({ type }: Content): boolean => type === "thinking" || type === "redacted_thinking"

/** Thinking is at the beginning of a message only. */
const together = (before: Turn, after: Turn): Turn => {
  const [first] = before.content
  const kept =
    first === undefined || isThought(first) ? after.content : after.content.filter((block) => !isThought(block))
  return { role: before.role, content: [...before.content, ...kept] }
}

const turnsOf = (asked: Asked): ReadonlyArray<Turn> => {
  const turns: Array<Turn> = []
  const shown = shownIn(asked)
  for (const message of asked.messages) {
    const turn = turnOf(message, asked, shown)
    if (message.role === "system" || turn.content.length === 0) continue
    const last = turns.at(-1)
    if (last?.role === turn.role) turns[turns.length - 1] = together(last, turn)
    else turns.push(turn)
  }
  const begin: ReadonlyArray<Turn> =
    turns[0]?.role === "user" ? [] : [{ role: "user", content: [textBlock("(Earlier messages are left out.)")] }]
  const end: ReadonlyArray<Turn> =
    turns.at(-1)?.role === "assistant" ? [{ role: "user", content: [textBlock("Continue.")] }] : []
  return [...begin, ...turns, ...end]
}

const EPHEMERAL = { type: "ephemeral" }

const withBreakpoint = ({ content, role }: Turn): Turn => ({
  role,
  content: content.map((block, index) =>
    index === content.length - 1 ? { ...block, cache_control: EPHEMERAL } : block
  )
})

/** The ends of this request and of the one before it, which is found in the cache however many blocks came since. */
const withBreakpoints = (turns: ReadonlyArray<Turn>): ReadonlyArray<Turn> => {
  const ends = new Set(turns.filter(({ role }) => role === "user").slice(-2))
  return turns.map((turn) => (ends.has(turn) ? withBreakpoint(turn) : turn))
}

const toolJson = toolsOnce(({ description, name, parameters }) => ({
  name,
  description,
  input_schema: parameters
}))

/** The API takes no conversation with calls without tools: those that are not offered any more are named. */
const toolsFor = ({ messages, tools }: Asked): ReadonlyArray<Tool> => {
  if (tools.length > 0) return tools
  const called = messages.flatMap((message) => (message.role === "assistant" ? (message.calls ?? []) : []))
  return [...new Set(called.map(({ name }) => name))].map((name) => ({
    name,
    description: "It is not offered any more.",
    parameters: { type: "object", properties: {} }
  }))
}

const conversation = (asked: Asked, { cache }: Quirks): ReadonlyArray<readonly [string, ReadonlyArray<string>]> => {
  const { messages, model } = asked
  const tools = toolsFor(asked)
  const isCached = cache === "breakpoints" && model.cache === "auto"
  const turns = turnsOf(asked)
  const system = messages.flatMap((message) =>
    message.role === "system" && isSaid(message.content) ? [textBlock(message.content)] : []
  )
  const marked = isCached ? withBreakpoint({ role: "user", content: system }).content : system
  return [
    ...(tools.length === 0 ? [] : [["tools", toolJson(tools)] as const]),
    ...(system.length === 0 ? [] : [["system", [JSON.stringify(marked)]] as const]),
    ["messages", listed((isCached ? withBreakpoints(turns) : turns).map((turn) => JSON.stringify(turn)))]
  ]
}

/** Tokens of thinking for models that take a number: the least, and the numbers for the usual words. */
const THINKING_TOKENS_MIN = 1024
const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 24_576,
  xhigh: 32_768
}
/** Room that thinking leaves to the answer. */
const ANSWER_TOKENS_MIN = 1024

/** The words for an effort that is adaptive: low, medium, high and max, and from the models on that refuse a temperature, xhigh. */
const effortWord = (effort: string, isOlder: boolean): string =>
  effort === "minimal" ? "low" : effort === "xhigh" && isOlder ? "high" : effort

/** The effort as this model takes it; empty where it does not think. */
const thinkingOf = (
  { messages, model }: Asked,
  { effort, temperature, unbroken }: Quirks
): Readonly<Record<string, Schema.Json>> => {
  const { reasoning_effort } = model
  if (reasoning_effort === null || reasoning_effort === "none") return {}
  if (unbroken && !isThoughtThrough(messages, model)) return {}
  if (effort === "adaptive")
    return { thinking: { type: "adaptive" }, output_config: { effort: effortWord(reasoning_effort, temperature) } }
  const wanted = BUDGETS[reasoning_effort] ?? BUDGETS["medium"] ?? THINKING_TOKENS_MIN
  const budget_tokens = Math.min(wanted, answerTokensOf(model) - ANSWER_TOKENS_MIN)
  return budget_tokens < THINKING_TOKENS_MIN ? {} : { thinking: { type: "enabled", budget_tokens } }
}

export const messagesCodec: Codec = {
  path: "/messages",
  headers: (model, key) => ({
    "anthropic-version": VERSION,
    ...(key === undefined
      ? {}
      : quirksOf(model).key === "x-api-key"
        ? { "x-api-key": key }
        : { authorization: `Bearer ${key}` })
  }),
  parameters: (asked) => {
    const { changes, model } = asked
    const quirks = quirksOf(model)
    const thinking = thinkingOf(asked, quirks)
    // A template may let the model think as well.
    const thinks = "thinking" in thinking || "thinking" in model.request_template
    const own = {
      model: model.model,
      max_tokens: answerTokensOf(model),
      temperature:
        quirks.temperature && !thinks && model.temperature !== null ? Math.min(1, model.temperature) : undefined,
      ...thinking,
      stream: true
    }
    return requestParameters(model, own, changes)
  },
  parts: (asked) => written(messagesCodec.parameters(asked), conversation(asked, quirksOf(asked.model))),
  body: (asked) => messagesCodec.parts(asked).join(""),
  read,
  assembler: messagesAssembler
}
