/** The chat completions format of OpenAI: what is sent, and how an answer is read. An answer is hostile input. */
import { Effect, Result, Schema } from "effect"
import type { Model } from "#schema/Config.ts"
import type { ModelError } from "#schema/Event.ts"
import { isDeeperThan } from "#src/shared/text/canonicalJson.ts"
import type { Message, Tool } from "./Conversation.ts"
import { type ParameterChanges, requestParameters } from "#src/shared/model/requestParameters.ts"

/** Tool calls in one answer of a model. */
export const MODEL_TOOL_CALLS_MAX = 32
/** The arguments of one tool call, as the model sent them. */
export const MODEL_TOOL_ARGUMENT_BYTES_MAX = 64 * 1024
/** How deep the arguments of a tool call may nest, far below what an event may (EVENT_DEPTH_MAX). */
const MODEL_TOOL_ARGUMENT_DEPTH_MAX = 100
/** Tokens that a provider may report for one call; a higher count is taken for this one, so that sums stay exact. */
export const MODEL_USAGE_TOKENS_MAX = 1_000_000_000

const Reply = Schema.Struct({
  choices: Schema.NonEmptyArray(
    Schema.Struct({
      finish_reason: Schema.optionalKey(Schema.NullOr(Schema.String)),
      message: Schema.Struct({
        content: Schema.optionalKey(Schema.NullOr(Schema.String)),
        refusal: Schema.optionalKey(Schema.NullOr(Schema.String)),
        tool_calls: Schema.optionalKey(
          Schema.NullOr(
            Schema.Array(Schema.Struct({ function: Schema.Struct({ name: Schema.String, arguments: Schema.String }) }))
          )
        )
      })
    })
  ),
  usage: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({
        prompt_tokens: Schema.optionalKey(Schema.Unknown),
        completion_tokens: Schema.optionalKey(Schema.Unknown)
      })
    )
  )
})
const decodeReply = Schema.decodeUnknownEffect(Schema.fromJsonString(Reply))
const decodeJson = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

/** A provider's count as far as it can be one; nonsense counts as nothing, so that the estimate stands. */
export const reported = (tokens: unknown): number =>
  Schema.is(Schema.Natural)(tokens) ? Math.min(tokens, MODEL_USAGE_TOKENS_MAX) : 0

/** Errs on the high side for English. */
export const CHARS_A_TOKEN = 4

/** A rough count from characters; the provider's own count wins when it is higher. */
export const estimateTokens = (chars: number): number => Math.ceil(chars / CHARS_A_TOKEN)

export const problem = (kind: ModelError["kind"], message: string, more: Partial<ModelError> = {}): ModelError => ({
  kind,
  message,
  ...more
})

/** The provider's own words, shortened and in one line, since they may be a whole page. */
export const excerpt = (text: string): string => text.slice(0, 3000).replaceAll(/\s+/gu, " ").trim().slice(0, 300)

/**
 * Some servers put a model's reasoning in front of its answer instead of into a field of its own. It is nobody's to read
 * (invariant 6); an answer that is nothing else is none.
 */
const withoutThoughts = (content: string): string => {
  const opening = /^\s*<(think|thinking|reasoning)>/u.exec(content)
  if (opening === null) return content
  const closing = `</${opening[1]}>`
  const end = content.indexOf(closing)
  return end < 0 ? "" : content.slice(end + closing.length).trimStart()
}

/** A provider's words instead of an answer that it, or its model, does not want to give. */
const refusalIn = (
  finish_reason: string | null | undefined,
  { content, refusal }: (typeof Reply.Type)["choices"][0]["message"]
): string | undefined => {
  const words = (refusal ?? "").trim()
  if (words !== "") return `the model refused: ${words}`
  if (finish_reason !== "content_filter") return undefined
  const said = (content ?? "").trim()
  return `the provider's content filter stopped the answer${said === "" ? "" : `: ${said}`}`
}

/** Reads an answer; `redact` takes secrets out of what an error quotes of it. */
export const interpret = Effect.fnUntraced(function* (text: string, redact: (text: string) => string) {
  const reply = yield* decodeReply(text).pipe(
    Effect.mapError(() => problem("malformed", `the answer is not a chat completion: ${excerpt(redact(text))}`))
  )
  const { finish_reason, message } = reply.choices[0]
  const calls = message.tool_calls ?? []
  const refused = refusalIn(finish_reason, message)
  if (refused !== undefined) return yield* Effect.fail(problem("content_filter", excerpt(redact(refused))))
  if (calls.length > MODEL_TOOL_CALLS_MAX)
    return yield* Effect.fail(
      problem("malformed", `${calls.length} tool calls in one answer; ${MODEL_TOOL_CALLS_MAX} are allowed`)
    )
  const large = calls.find((call) => Buffer.byteLength(call.function.arguments) > MODEL_TOOL_ARGUMENT_BYTES_MAX)
  if (large !== undefined)
    return yield* Effect.fail(
      problem("too_large", `the arguments of ${redact(large.function.name).slice(0, 64)} are too large`)
    )
  const said = withoutThoughts(message.content ?? "")
  // An answer of blanks says nothing, and no provider takes it back.
  const content = said.trim() === "" ? "" : said
  const tool_calls = calls.map((call, index) => {
    // Arguments that were cut before their first character are not those of a call without any.
    const isWhole = finish_reason !== "length" || index < calls.length - 1
    const parsed = decodeJson(call.function.arguments === "" && isWhole ? "{}" : call.function.arguments)
    const isUsable = Result.isSuccess(parsed) && !isDeeperThan(parsed.success, MODEL_TOOL_ARGUMENT_DEPTH_MAX)
    return {
      name: call.function.name.slice(0, 128),
      input: isUsable ? parsed.success : call.function.arguments
    }
  })
  return { content, tool_calls, finish_reason: (finish_reason ?? "stop").slice(0, 64), usage: reply.usage ?? undefined }
})

/** The most tokens that an answer may have, for room and budget: what is sent, whichever key says so. */
export const outputTokensMax = ({ max_tokens, request_template }: Model): number => {
  const { max_completion_tokens, max_tokens: replaced } = request_template
  const counts = [max_completion_tokens, replaced].filter(Schema.is(Schema.Natural))
  return counts.length === 0 ? max_tokens : Math.min(Math.max(...counts), MODEL_USAGE_TOKENS_MAX)
}

/** A message as chat completions write it. */
const chatMessage = (message: Message): Schema.Json => {
  if (message.role === "tool") return { role: "tool", tool_call_id: message.call_id, content: message.content }
  if (message.role !== "assistant") return { role: message.role, content: message.content }
  const { calls = [], content } = message
  return {
    role: "assistant",
    content,
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map(({ id, ...call }) => ({
            id,
            type: "function",
            function: { name: call.name, arguments: call.arguments }
          }))
        })
  }
}

const written = new WeakMap<Message | Tool, string>()

/** A part of a request as it is sent. Most are sent many times, so that each is written once. */
const jsonOnce =
  <A extends Message | Tool>(write: (part: A) => unknown) =>
  (parts: ReadonlyArray<A>): string =>
    `[${parts
      .map((part) => {
        const json = written.get(part) ?? JSON.stringify(write(part))
        written.set(part, json)
        return json
      })
      .join(",")}]`

const messageList = jsonOnce(chatMessage)
const toolList = jsonOnce((tool: Tool) => ({ type: "function", function: tool }))

/** A request as JSON. */
export const requestBody = (
  config: Model,
  messages: ReadonlyArray<Message>,
  tools: ReadonlyArray<Tool>,
  changes?: ParameterChanges
): string => {
  const plain = requestParameters(config, changes)
  return `{${[
    ...plain.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`),
    `"messages":${messageList(messages)}`,
    ...(tools.length === 0 ? [] : [`"tools":${toolList(tools)}`])
  ].join(",")}}`
}
