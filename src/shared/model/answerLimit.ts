/**
 * The words by which providers refuse the limit of an answer, and the smaller limit that they take. A limit may be more than the model writes, or
 * more than its context leaves beside the prompt; a prompt that is too long by itself is another matter (`contextOverflow.ts`).
 */
import { Schema } from "effect"
import type { Model } from "#schema/Config.ts"
import { weakMemoize } from "#src/shared/weakMemoize.ts"
import { answerTokensOf } from "./quirks.ts"
import { LIMITS } from "./requestParameters.ts"

/** The least that a limit is lowered to where the provider does not name one: a short answer with its call. */
const LOWERED_ANSWER_TOKENS_MIN = 1024
/** The share of a context that is left to the answer when both do not fit, as in `answerTokensOf`. */
const ANSWER_SHARE = 1 / 4
/** The part of a refusal that is read: one that quotes the conversation does so behind its own words. */
const WORDS_CHARS_MAX = 2000

const OF_THE_LIMIT = /max[_ ]?(?:completion[_ ]?|output[_ ]?|new[_ ]?)?tokens|(?:completion|output|maximum) tokens/iu
const TOO_MUCH =
  /too (?:large|high|big|many)|at most|no more than|exceed|less than|less_than|<=|\brange\b|above maximum|maximum (?:allowed|value)|\d >=? ?\d/iu
/** The words about a prompt that name the limit beside it. `context_window` is not among them: Groq compares the limit with it. */
const OF_THE_CONTEXT =
  /context[ _](?:length|limit|size)|context window|prompt (?:is|token|contains)|input (?:is|token|length)/iu

const NAMED_MAX: ReadonlyArray<RegExp> = [
  /** OpenAI, Azure: supports at most 4096 completion tokens. */
  /(?:at most|no more than) (\d+)/iu,
  /** Anthropic: 8000 > 4096, which is the maximum. */
  /\d+ > (\d+)/u,
  /** DeepSeek, Qwen: the range is [1, 8192]. */
  /range\b.{0,40}\[\d+, ?(\d+)\]/iu,
  /** Mistral and other servers that check by a schema, Groq, Cohere, OpenAI's responses. */
  /(?:less than or equal to|<=|\ble\\?":) ?[`'"\\]*(\d+)/iu,
  /** Bedrock. */
  /(?:limit of|limit is|maximum (?:allowed )?(?:value )?(?:is|of)|exceeds?(?: the maximum)?(?: of)?) ?[`'"\\]*(\d+)/iu
]

/** The context and the prompt in tokens, of providers that say how both went together. */
const SIZES: ReadonlyArray<readonly [window: RegExp, prompt: RegExp]> = [
  /** vLLM, OpenAI, DeepSeek, OpenRouter. */
  [
    /maximum context length is (\d+)/iu,
    /(\d+) (?:in the messages|in your prompt|in the prompt|of text input|input tokens)/iu
  ],
  /** Anthropic. */
  [/context limit: \d+ \+ \d+ > (\d+)/iu, /context limit: (\d+) \+/iu],
  /** Together. */
  [/must be <= ?(\d+)/iu, /given: (\d+) \W?inputs/iu]
]

const numberIn = (words: RegExp, text: string): number | undefined => {
  const found = words.exec(text)?.[1]
  return found === undefined ? undefined : Number(found)
}

/** The limit with which prompt and answer fit, or `undefined` where the prompt is what takes the room: a shorter one helps then. */
const inContext = (window: number, prompt: number): number | undefined => {
  const share = Math.max(LOWERED_ANSWER_TOKENS_MIN, Math.floor(window * ANSWER_SHARE))
  return prompt + share <= window ? share : undefined
}

/** The limit that an answer of the provider asks for; `undefined` where it refuses something else. */
const wanted = (text: string, sent: number, isAgain: boolean): number | undefined => {
  for (const [ofWindow, ofPrompt] of SIZES) {
    const window = numberIn(ofWindow, text)
    const prompt = numberIn(ofPrompt, text)
    if (window !== undefined && prompt !== undefined) return inContext(window, prompt)
  }
  if (!OF_THE_LIMIT.test(text) || !TOO_MUCH.test(text) || OF_THE_CONTEXT.test(text)) return undefined
  const half = Math.max(LOWERED_ANSWER_TOKENS_MIN, Math.floor(sent / 2))
  const named = NAMED_MAX.map((words) => numberIn(words, text)).find(
    (most) => most !== undefined && most > 0 && most < sent
  )
  // A provider that named one limit and refuses it is not believed again, so that the questions end.
  return named === undefined || (isAgain && named > sent / 2) ? half : named
}

/**
 * The limit of an answer to send from now on, below the one that was sent, where a provider refuses that; `isAgain` after it was lowered before.
 */
export const lowerLimit = (said: string, sent: number, isAgain: boolean): number | undefined => {
  const limit = wanted(said.slice(0, WORDS_CHARS_MAX), sent, isAgain)
  return limit !== undefined && limit < sent ? limit : undefined
}

/** The model with no more than this for an answer, whichever key says so. */
export const withAnswerMax = weakMemoize((model: Model, most: number | undefined): Model =>
  most === undefined
    ? model
    : {
        ...model,
        max_tokens: Math.min(answerTokensOf(model), most),
        request_template: Object.fromEntries(
          Object.entries(model.request_template).map(([key, value]) => [
            key,
            LIMITS.has(key) && Schema.is(Schema.Natural)(value) ? Math.min(value, most) : value
          ])
        )
      }
)
