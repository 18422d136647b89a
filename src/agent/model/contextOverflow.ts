/**
 * The words by which providers say that a prompt is longer than their model's context, and the prompt without the old results that it can do
 * without. There is no common code for it: most answer 400, some 413, and only the text tells it from other refusals.
 */
import type { ModelError } from "#schema/Event.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { MEMORY_QUERY, type Offered } from "./offeredTools.ts"
import { isPictured } from "#src/shared/model/pictures.ts"

const OVERFLOWS: ReadonlyArray<readonly [provider: string, words: RegExp]> = [
  [
    "OpenAI, Azure, OpenRouter, vLLM",
    /context[_ ]length[_ ]exceeded|maximum context length|exceeds the context window/iu
  ],
  ["Groq, Cerebras", /reduce the length of the (?:messages|prompt|input)|request too large for model/iu],
  ["xAI", /maximum prompt length is \d+/iu],
  ["Bedrock", /input is too long for requested model|too many input tokens/iu],
  ["MiniMax", /context window exceeds limit/iu],
  ["Together", /longer than the model's context length|inputs\W? tokens .{0,60}must be <= ?\d+/iu],
  ["LM Studio", /context length of only \d+|greater than the context length/iu],
  ["GitHub", /prompt token count of \d+ exceeds the limit/iu],
  ["Anthropic", /prompt is too long|input length and .?max_tokens.? exceed context limit/iu],
  ["Google", /input token count .{0,80}exceeds the maximum number of tokens/iu],
  ["Mistral", /prompt contains \d+ tokens .{0,80}too large for model/iu],
  ["Moonshot, DeepSeek", /exceeded model token limit|maximum context length is \d+/iu],
  [
    "llama.cpp, Ollama",
    /exceeds? the available context size|input length exceeds (?:the )?(?:maximum )?context length/iu
  ]
]

/** Whether a call failed because its prompt was too long. */
export const isOverflow = (error: ModelError | undefined): boolean =>
  error !== undefined &&
  (error.kind === "http" || error.kind === "too_large") &&
  OVERFLOWS.some(([, words]) => words.test(error.message))

/** The newest results that keep their text and their images when a prompt has to become shorter at once. */
const WHOLE_RESULTS_MIN = 10
/** The length from which a result is worth a stub. */
const STUBBED_CHARS_MIN = 300

const stub = (offered: Offered): string =>
  `[an old result, left out because the context is full${offered.has(MEMORY_QUERY) ? "; choir-memory-query finds it" : ""}]`

/** The messages without the texts of old results, or `undefined` where that makes nothing shorter. */
export const withoutOldResults = (
  messages: ReadonlyArray<Message>,
  offered: Offered
): ReadonlyArray<Message> | undefined => {
  const results = messages.filter((message) => message.role === "tool")
  const old = new Set<Message>(
    results
      .slice(0, -WHOLE_RESULTS_MIN)
      .filter((message) => message.content.length >= STUBBED_CHARS_MIN || isPictured(message))
  )
  if (old.size === 0) return undefined
  return messages.map((message) => {
    if (message.role !== "tool" || !old.has(message)) return message
    const { pictures: _, ...kept } = message
    return { ...kept, content: stub(offered) }
  })
}
