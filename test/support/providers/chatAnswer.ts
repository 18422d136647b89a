/** Answers of chat completions, with what each server adds: https://platform.openai.com/docs/api-reference/chat/object and .../chat/streaming */
import { isObject, type Keys } from "#demo/dialects/jsonKeys.ts"
import { family } from "#demo/dialects/Rule.ts"
import { signatureOf, signedCall } from "#demo/dialects/signatures.ts"
import {
  type Answer,
  ANTHROPIC_STOP,
  argumentsOf,
  asksToThink,
  finishOf,
  type Occasion,
  piecesOf,
  type ServerEvent,
  THOUGHT,
  type Written
} from "./Answer.ts"

const FINISH = { stop: "stop", calls: "tool_calls", length: "length", filter: "content_filter" } as const
/** https://openrouter.ai/docs/guides/best-practices/reasoning-tokens */
const FORMATS = { claude: "anthropic-claude-v1", gemini: "google-gemini-v1" } as const
const PRICE = { input: 3, output: 15, cached: 0.3 } as const

const withSignature = (call: Keys, occasion: Occasion, index: number): Keys =>
  occasion.dialect.name === "gemini" && family(occasion.model).gemini3 && index === 0
    ? { ...call, extra_content: { google: { thought_signature: signatureOf(occasion.model, signedCall(call)) } } }
    : call

const idOf = ({ dialect, number }: Occasion, index: number): string => {
  switch (dialect.name) {
    case "mistral":
      return `c${String(number).padStart(5, "0")}${String(index).padStart(3, "0")}`
    case "openai":
      return `call_${index}`
    default:
      return `call_${number}_${index}`
  }
}

const callsOf = ({ calls = [] }: Answer, occasion: Occasion): ReadonlyArray<Keys> =>
  calls.map((call, index) =>
    withSignature(
      {
        id: call.id ?? idOf(occasion, index),
        type: "function",
        function: { name: call.name, arguments: argumentsOf(call) }
      },
      occasion,
      index
    )
  )

/** The text that a server shows as its model's reasoning, if it shows any. */
const thoughtOf = ({ calls = [], reasoning }: Answer, { body, dialect }: Occasion): string | undefined => {
  const isOff = isObject(body["thinking"]) && body["thinking"]["type"] === "disabled"
  switch (dialect.name) {
    case "kimi":
    case "deepseek":
      return isOff ? undefined : (reasoning ?? (calls.length > 0 ? THOUGHT : undefined))
    case "openrouter":
      return reasoning ?? (asksToThink(body) && calls.length > 0 ? THOUGHT : undefined)
    case "qwen-template":
    case "mistral":
      return reasoning
    default:
      return undefined
  }
}

const detailOf = (text: string, model: string): Keys => ({
  type: "reasoning.text",
  text,
  signature: signatureOf(model, text),
  format: family(model).gemini3 ? FORMATS.gemini : FORMATS.claude,
  index: 0
})

const reasoningKeys = (text: string | undefined, { dialect, model }: Occasion): Keys =>
  text === undefined || dialect.name === "mistral"
    ? {}
    : dialect.name === "openrouter"
      ? { reasoning: text, reasoning_details: [detailOf(text, model)] }
      : { reasoning_content: text }

/** Usage in the dialect's spelling. */
const usageOf = ({ dialect, tally }: Occasion): Keys => {
  const { cached, input, output, reasoning, written } = tally
  const base = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
  switch (dialect.name) {
    case "openrouter": {
      const cost = ((input - cached) * PRICE.input + cached * PRICE.cached + output * PRICE.output) / 1e6
      return {
        ...base,
        cost,
        is_byok: false,
        prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written, audio_tokens: 0 },
        cost_details: { upstream_inference_cost: null },
        completion_tokens_details: { reasoning_tokens: reasoning, image_tokens: 0 }
      }
    }
    case "kimi":
      return { ...base, cached_tokens: cached }
    case "deepseek":
      return {
        ...base,
        prompt_tokens_details: { cached_tokens: cached },
        completion_tokens_details: { reasoning_tokens: reasoning },
        prompt_cache_hit_tokens: cached,
        prompt_cache_miss_tokens: input - cached
      }
    case "gemini":
      // Thoughts are in the total only.
      return { ...base, completion_tokens: output - reasoning }
    case "mistral":
      return base
    default:
      return {
        ...base,
        prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
        completion_tokens_details: {
          reasoning_tokens: reasoning,
          audio_tokens: 0,
          accepted_prediction_tokens: 0,
          rejected_prediction_tokens: 0
        }
      }
  }
}

/** The answer of one choice. `overrides` replace keys of the completion. */
export const chatAnswer = (answer: Answer, occasion: Occasion, overrides: Keys = {}): Written => {
  const { created, dialect, model, number } = occasion
  const { refusal = null, text } = answer
  const calls = callsOf(answer, occasion)
  const thought = thoughtOf(answer, occasion)
  const finish = finishOf(answer)
  const reason = {
    finish_reason: FINISH[finish],
    ...(dialect.name === "openrouter" ? { native_finish_reason: ANTHROPIC_STOP[finish] } : {})
  }
  const base = {
    id: `chatcmpl-${number}`,
    created,
    model,
    ...(dialect.name === "openrouter" ? { provider: "Anthropic" } : {})
  }
  const content =
    dialect.name === "mistral" && thought !== undefined
      ? [
          { type: "thinking", thinking: [{ type: "text", text: thought }] },
          ...(text === undefined ? [] : [{ type: "text", text }])
        ]
      : (text ?? null)
  const usage = usageOf(occasion)
  const message = {
    role: "assistant",
    content,
    refusal,
    ...reasoningKeys(thought, occasion),
    ...(calls.length === 0 ? {} : { tool_calls: calls })
  }
  const chunk = (delta: Keys, tokens: number, more: Keys = {}): ServerEvent => ({
    data: JSON.stringify({
      ...base,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: null, ...more }]
    }),
    tokens
  })
  const last = overrides["usage"] ?? usage
  const isAsked = isObject(occasion.body["stream_options"]) && occasion.body["stream_options"]["include_usage"] === true
  const sendsUsage = isAsked || ["openrouter", "kimi", "deepseek", "mistral"].includes(dialect.name)
  return {
    whole: {
      ...base,
      object: "chat.completion",
      choices: [{ index: 0, message, logprobs: null, ...reason }],
      usage,
      ...overrides
    },
    events: () => [
      chunk({ role: "assistant", content: "" }, 0),
      ...piecesOf(thought ?? "").map((piece) => chunk(thoughtDelta(piece, occasion), 1)),
      ...(dialect.name === "openrouter" && thought !== undefined
        ? [chunk({ reasoning_details: [{ ...detailOf(thought, model), text: "" }] }, 0)]
        : []),
      ...piecesOf(refusal ?? "").map((piece) => chunk({ refusal: piece }, 1)),
      ...piecesOf(text ?? "").map((piece) => chunk({ content: piece }, 1)),
      ...calls.flatMap((call, index) => callEvents(call, index, dialect.name, chunk)),
      chunk({}, 0, reason),
      ...(sendsUsage
        ? [
            {
              data: JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [], usage: last }),
              tokens: 0
            }
          ]
        : []),
      { data: "[DONE]", tokens: 0 }
    ]
  }
}

const thoughtDelta = (piece: string, { dialect, model }: Occasion): Keys => {
  if (dialect.name === "openrouter") {
    const { signature: _, ...detail } = detailOf(piece, model)
    return { reasoning: piece, reasoning_details: [detail] }
  }
  return dialect.name === "mistral"
    ? { content: [{ type: "thinking", thinking: [{ type: "text", text: piece }] }] }
    : { reasoning_content: piece }
}

/** Some servers send a call in one event, the others its arguments in pieces behind its name. */
const callEvents = (
  call: Keys,
  index: number,
  dialect: string,
  chunk: (delta: Keys, tokens: number) => ServerEvent
): ReadonlyArray<ServerEvent> => {
  const target = isObject(call["function"]) ? call["function"] : {}
  const pieces = piecesOf(String(target["arguments"]))
  // Google gives no place: noho/dayu-agent#45.
  if (dialect === "gemini") return [chunk({ tool_calls: [call] }, pieces.length)]
  if (dialect === "mistral") return [chunk({ tool_calls: [{ ...call, index }] }, pieces.length)]
  const first = { ...call, index, function: { ...target, arguments: "" } }
  return [
    chunk({ tool_calls: [first] }, 1),
    ...pieces.map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] }, 1))
  ]
}
