/**
 * A recording model that counts tokens with o200k_base and the cached part of each prompt as OpenAI does: the longest beginning that one of the
 * last requests had too, from 1,024 tokens in steps of 128.
 */
import { Effect, Layer } from "effect"
import { encode } from "gpt-tokenizer/encoding/o200k_base"
import { weakMemoize } from "#src/shared/weakMemoize.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"
import { type Completion, Llm } from "#src/agent/model/Llm.ts"
import { isCompaction, type Script } from "./ScriptedModel.ts"

const REMEMBERED_REQUESTS = 60
const CACHED_MIN = 1024
/** Tokens in which a cache counts. */
export const CACHED_STEP = 128
/** Tokens of a message beside its texts. */
const MESSAGE_TOKENS = 4

/** One request, in tokens. */
export interface Counted {
  readonly lane: "edge" | "core"
  readonly isCompaction: boolean
  readonly input: number
  readonly cached: number
  readonly output: number
}

const jsonOf = weakMemoize((message: Message) => JSON.stringify(message))

const counts = new Map<string, number>()
const tokensOf = (text: string): number => {
  const known = counts.get(text)
  if (known !== undefined) return known
  const counted = encode(text, { disallowedSpecial: new Set() }).length + MESSAGE_TOKENS
  counts.set(text, counted)
  return counted
}

/** Answers by the script; `counted` grows with each request. */
export const layerCachingModel = (script: Script, counted: Array<Counted>): Layer.Layer<Llm> => {
  const before: Array<ReadonlyArray<string>> = []
  const record = (messages: ReadonlyArray<Message>, tools: ReadonlyArray<Tool>, said: Partial<Completion>): number => {
    const parts = [JSON.stringify(tools), ...messages.map(jsonOf)]
    const shared = before.map((other) => {
      const end = parts.findIndex((part, index) => part !== other[index])
      return parts.slice(0, end < 0 ? parts.length : end).reduce((sum, part) => sum + tokensOf(part), 0)
    })
    const most = Math.max(0, ...shared)
    const input = parts.reduce((sum, part) => sum + tokensOf(part), 0)
    before.push(parts)
    if (before.length > REMEMBERED_REQUESTS) before.shift()
    counted.push({
      lane: messages.some(({ content, role }) => role === "user" && content.includes("\nTask:\n")) ? "core" : "edge",
      isCompaction: isCompaction(messages),
      input,
      cached: most < CACHED_MIN ? 0 : most - (most % CACHED_STEP),
      output: tokensOf(JSON.stringify([said.text ?? "", said.tool_calls ?? []]))
    })
    return input
  }
  return Layer.succeed(
    Llm,
    Llm.of({
      complete: (model, messages, tools) =>
        Effect.map(script(messages, tools), (said) => {
          const prompt_tokens = record(messages, tools, said)
          return {
            model,
            tool_calls: [],
            finish_reason: "stop",
            usage: { input_tokens: prompt_tokens, output_tokens: 20 },
            prompt_tokens,
            latency_ms: 0,
            ...said
          }
        })
    })
  )
}
