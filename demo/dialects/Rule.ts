/**
 * A check that a provider makes of a request before a model sees it, and what it answers to one that fails it. Rules are pure: a request and
 * the traits of a model in, a problem out.
 */
import type { Keys } from "./jsonKeys.ts"

/** A request as it arrived. */
export interface Asked {
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** With method, such as `POST /v1/messages`; any will do where absent. */
  readonly place?: string
  /** Size of the body. */
  readonly bytes: number
  readonly body: unknown
}

/** Differences between the models and accounts of one provider. */
export interface Traits {
  /** Tokens of the prompt and the longest answer together. */
  readonly context_window: number
  /** Tokens of the longest answer that may be asked for; any where absent. */
  readonly answer_tokens_max?: number
  /** Parameters that the model refuses beside those that its name tells: `temperature` other than 1, and others altogether. */
  readonly refuses: ReadonlyArray<string>
  /** Parameters that are known beside the dialect's own. */
  readonly extensions: ReadonlyArray<string>
  /** Whether the model takes images; by its name where absent. */
  readonly vision?: boolean
  /** The only key that is accepted; without one, every request is, as by a server on one's own machine. */
  readonly key?: string
  /** Tokens of a text. */
  count(text: string): number
}

/** A failed check in a provider's own words. */
export interface Problem {
  readonly message: string
  /** 400 where absent. */
  readonly status?: number
  readonly param?: string | undefined
  readonly code?: string | undefined
  /** The provider's name for this kind of error, where its status does not tell it. */
  readonly type?: string
  /** Further keys of the error. */
  readonly more?: Keys
}

export interface Rule {
  /** A sentence about what is asked for, which names the rule in refusals. */
  readonly name: string
  readonly find: (body: Keys, traits: Traits) => Problem | undefined
}

/** A refusal as it is sent. */
export interface Refusal {
  /** The name of the rule that was broken. */
  readonly rule: string
  readonly status: number
  readonly message: string
  readonly param: string | null
  readonly code: string | null
  /** The body of the response. */
  readonly body: unknown
}

/** The first problem of a list of checks. */
export const firstOf = <A>(
  values: ReadonlyArray<A>,
  check: (value: A, index: number) => Problem | undefined
): Problem | undefined => {
  for (const [index, value] of values.entries()) {
    const problem = check(value, index)
    if (problem !== undefined) return problem
  }
  return undefined
}

export const unknownKey = (value: Keys, known: ReadonlySet<string>): string | undefined =>
  Object.keys(value).find((key) => !known.has(key))

/** Words in a text, for lists of keys. */
export const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/u))

/** The first value that a list has twice. */
export const repeatedOf = (values: ReadonlyArray<unknown>): unknown =>
  values.find((value, index) => values.indexOf(value) !== index)

/** Families of models whose parameters differ, by the names that providers and routers give them. */
export const family = (model: unknown) => {
  const name = typeof model === "string" ? model : ""
  return {
    /** GPT-5 and the o-series: no sampling, and the limit of the answer under its newer name only. */
    thinksAlways: /(?:^|\/)(?:gpt-5(?!.*chat)|o[134](?:-|$))/u.test(name),
    /** From GPT-5.4 on: no effort beside tools on chat completions; from 5.6 on not even the model's own. */
    refusesEffort: /(?:^|\/)gpt-5\.[4-9]/u.test(name),
    thinksByDefault: /(?:^|\/)gpt-5\.[6-9]/u.test(name),
    /** Claude Opus from 4.7 on, and every Claude 5: no sampling, and thinking that is adaptive only (onyx-dot-app/onyx#12735). */
    adaptive: /(?:^|\/)claude-(?:opus-4[.-](?:[7-9]|\d\d)(?!\d)|[a-z]+-[5-9]|mythos)/u.test(name),
    /** Claude from 4.6 on: an effort is adaptive thinking, which need not be at the beginning of each message. */
    adapts: /(?:^|\/)claude-(?:[a-z]+-(?:4[.-](?:[6-9]|\d\d)(?!\d)|[5-9])|mythos)/u.test(name),
    claude: /(?:^|\/)claude-/u.test(name),
    gemini3: /(?:^|\/)gemini-(?:[3-9]|\d\d)/u.test(name),
    /** Kimi from K2.5 on: temperature is 1. */
    kimiThinks: /(?:^|\/)kimi-k2(?:\.[5-9]|-thinking)/u.test(name),
    /** These take images. */
    sees: /(?:^|\/)(?:gpt-(?:4o|4\.1|5)|claude-|gemini-|kimi-k2\.[5-9]|qwen3\.[5-9]|pixtral|mistral-(?:medium-3|large-latest))/u.test(
      name
    )
  }
}
