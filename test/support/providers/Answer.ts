/** A model's answer, described once; each dialect writes it in its own words, whole or as a stream of events. */
import { isObject, type Keys } from "#demo/dialects/jsonKeys.ts"
import type { Dialect } from "#demo/dialects/Dialect.ts"
import type { Tally } from "./Meter.ts"

/** A tool call of an answer. A string as `input` is sent as it is, valid JSON or not. */
export interface ScriptedCall {
  readonly name: string
  readonly input: unknown
  readonly id?: string
}

export interface Answer {
  readonly text?: string
  readonly calls?: ReadonlyArray<ScriptedCall>
  /** Where a dialect hides a model's reasoning, only its tokens show. */
  readonly reasoning?: string
  /** A model's refusal, in its words. */
  readonly refusal?: string
  /** `stop`, or `calls` where there are some. */
  readonly finish?: "stop" | "calls" | "length" | "filter"
  /** In place of what is counted. */
  readonly usage?: Partial<Tally>
}

/** The request that an answer is for. */
export interface Occasion {
  readonly dialect: Dialect
  readonly body: Keys
  readonly model: string
  /** The number of the request, for ids. */
  readonly number: number
  /** Seconds since 1970. */
  readonly created: number
  readonly tally: Tally
}

/** An event of a stream. */
export interface ServerEvent {
  readonly name?: string
  readonly data: string
  /** Tokens that the model wrote for it, by which a slow model is late. */
  readonly tokens: number
}

/** An answer as it is sent: in one piece, or as events. */
export interface Written {
  readonly whole: Keys
  /** Made when a stream is asked for. */
  readonly events: () => ReadonlyArray<ServerEvent>
}

/** How Anthropic's models end, in their own words. */
export const ANTHROPIC_STOP = {
  stop: "end_turn",
  calls: "tool_use",
  length: "max_tokens",
  filter: "refusal"
} as const

/** What a model thinks where its script does not say it and its dialect wants some reasoning back. */
export const THOUGHT = "The user needs a tool for this."

/** A text in pieces of about a token each; joined, they are the text. */
export const piecesOf = (text: string): ReadonlyArray<string> => text.match(/\s*\S{1,6}|\s+/gu) ?? []

export const argumentsOf = ({ input }: ScriptedCall): string =>
  typeof input === "string" ? input : JSON.stringify(input)

export const finishOf = ({ calls = [], finish }: Answer): NonNullable<Answer["finish"]> =>
  finish ?? (calls.length > 0 ? "calls" : "stop")

/** Whether a request turned thinking on, in the spelling of Anthropic or of OpenRouter. */
export const asksToThink = ({ reasoning, thinking }: Keys): boolean =>
  (isObject(thinking) && thinking["type"] !== "disabled") ||
  (isObject(reasoning) && (reasoning["enabled"] === true || (reasoning["effort"] ?? "none") !== "none"))
