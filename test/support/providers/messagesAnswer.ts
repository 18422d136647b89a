/** Answers of Anthropic's Messages API: https://docs.claude.com/en/api/messages, https://docs.claude.com/en/docs/build-with-claude/streaming */
import { isObject, type Keys } from "#demo/dialects/jsonKeys.ts"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { signatureOf } from "#demo/dialects/signatures.ts"
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

/** A block with its deltas. */
interface Block {
  readonly whole: Keys
  readonly start: Keys
  readonly deltas: () => ReadonlyArray<Keys>
}

const thinkingBlock = (thinking: string, model: string): Block => {
  const signature = signatureOf(model, thinking)
  return {
    whole: { type: "thinking", thinking, signature },
    start: { type: "thinking", thinking: "", signature: "" },
    deltas: () => [
      ...piecesOf(thinking).map((piece) => ({ type: "thinking_delta", thinking: piece })),
      { type: "signature_delta", signature }
    ]
  }
}

const textBlock = (text: string): Block => ({
  whole: { type: "text", text },
  start: { type: "text", text: "" },
  deltas: () => piecesOf(text).map((piece) => ({ type: "text_delta", text: piece }))
})

const callBlock = (id: string, name: string, json: string): Block => {
  const parsed = parseJson(json)
  return {
    whole: { type: "tool_use", id, name, input: isObject(parsed) ? parsed : {} },
    start: { type: "tool_use", id, name, input: {} },
    deltas: () => ["", ...piecesOf(json)].map((partial_json) => ({ type: "input_json_delta", partial_json }))
  }
}

const blocksOf = (answer: Answer, { body, model, number }: Occasion): ReadonlyArray<Block> => {
  const { calls = [], reasoning, refusal, text } = answer
  const thought = asksToThink(body) ? (reasoning ?? (calls.length > 0 ? THOUGHT : undefined)) : undefined
  const said = refusal ?? text
  return [
    ...(thought === undefined ? [] : [thinkingBlock(thought, model)]),
    ...(said === undefined || said === "" ? [] : [textBlock(said)]),
    ...calls.map((call, index) => callBlock(call.id ?? `toolu_${number}_${index}`, call.name, argumentsOf(call)))
  ]
}

export const messagesAnswer = (answer: Answer, occasion: Occasion): Written => {
  const { model, number, tally } = occasion
  const blocks = blocksOf(answer, occasion)
  const stop_reason = answer.refusal === undefined ? ANTHROPIC_STOP[finishOf(answer)] : "refusal"
  const input = {
    input_tokens: tally.input - tally.cached - tally.written,
    cache_creation_input_tokens: tally.written,
    cache_read_input_tokens: tally.cached,
    cache_creation: { ephemeral_5m_input_tokens: tally.written, ephemeral_1h_input_tokens: 0 }
  }
  const message = { id: `msg_${number}`, type: "message", role: "assistant", model }
  const event = (name: string, data: Keys, tokens = 0): ServerEvent => ({
    name,
    data: JSON.stringify({ type: name, ...data }),
    tokens
  })
  const usage = { ...input, output_tokens: tally.output, service_tier: "standard" }
  return {
    whole: { ...message, content: blocks.map(({ whole }) => whole), stop_reason, stop_sequence: null, usage },
    events: () => [
      event("message_start", {
        message: {
          ...message,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { ...input, output_tokens: 1, service_tier: "standard" }
        }
      }),
      event("ping", {}),
      ...blocks.flatMap(({ deltas, start }, index) => [
        event("content_block_start", { index, content_block: start }),
        ...deltas().map((delta) => event("content_block_delta", { index, delta }, 1)),
        event("content_block_stop", { index })
      ]),
      event("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: tally.output } }),
      event("message_stop", {})
    ]
  }
}
