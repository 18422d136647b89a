/** The part of the OpenAI chat completions protocol that the offline model speaks. */
import { Schema } from "effect"

/** Messages of one request to the offline model. */
const OFFLINE_MODEL_MESSAGES_MAX = 10_000
/** Tools offered to the offline model in one request. */
const OFFLINE_MODEL_TOOLS_MAX = 512

/** The only model that is served, and the label of everything it says (E3). */
export const OFFLINE_MODEL = "offline-model"

const Content = Schema.Union([
  Schema.String,
  Schema.Array(Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }))
])

const ToolCall = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("function"),
  function: Schema.Struct({ name: Schema.String, arguments: Schema.String })
})
type ToolCall = typeof ToolCall.Type

const Message = Schema.Union([
  Schema.Struct({ role: Schema.Literals(["system", "developer", "user"]), content: Content }),
  Schema.Struct({
    role: Schema.Literal("assistant"),
    content: Schema.optionalKey(Schema.NullOr(Content)),
    tool_calls: Schema.optionalKey(Schema.NullOr(Schema.Array(ToolCall)))
  }),
  Schema.Struct({ role: Schema.Literal("tool"), content: Content, tool_call_id: Schema.String })
])
export type Message = typeof Message.Type

const OfferedTool = Schema.Struct({
  type: Schema.Literal("function"),
  function: Schema.Struct({ name: Schema.String })
})

/** A request. Keys that the offline model has no use for, such as temperature, are dropped. */
export const ChatRequest = Schema.Struct({
  model: Schema.String,
  messages: Schema.NonEmptyArray(Message).check(Schema.isMaxLength(OFFLINE_MODEL_MESSAGES_MAX)),
  tools: Schema.optionalKey(Schema.Array(OfferedTool).check(Schema.isMaxLength(OFFLINE_MODEL_TOOLS_MAX))),
  tool_choice: Schema.optionalKey(Schema.Unknown),
  stream: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  stream_options: Schema.optionalKey(
    Schema.NullOr(Schema.Struct({ include_usage: Schema.optionalKey(Schema.Boolean) }))
  ),
  max_tokens: Schema.optionalKey(Schema.NullOr(Schema.Natural)),
  max_completion_tokens: Schema.optionalKey(Schema.NullOr(Schema.Natural))
})
export type ChatRequest = typeof ChatRequest.Type

/** A reply in one piece. */
export interface ChatCompletion {
  readonly id: string
  readonly object: "chat.completion"
  /** Seconds since 1970. */
  readonly created: number
  readonly model: string
  readonly system_fingerprint: string
  readonly choices: readonly [
    {
      readonly index: 0
      readonly message: {
        readonly role: "assistant"
        readonly content: string | null
        readonly refusal: null
        readonly tool_calls?: ReadonlyArray<ToolCall>
      }
      readonly logprobs: null
      readonly finish_reason: "stop" | "length" | "tool_calls"
    }
  ]
  readonly usage: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly total_tokens: number
  }
}

/** The text of a message, its parts joined; empty for a message that only holds tool calls. */
export const textOf = ({ content }: Message): string =>
  content === undefined || content === null
    ? ""
    : typeof content === "string"
      ? content
      : content.map((part) => part.text).join("\n")
