/**
 * The keys of a model's requests beside messages and tools, as agents send them and `choirctl model test` tries them, and their change when a
 * provider answers 400 and names one of them (D47).
 */
import { Predicate, type Schema } from "effect"
import type { Model } from "#schema/Config.ts"

/** OpenAI's own endpoints want the newer name of the limit; the models behind them with thinking refuse the older one. */
const RENAMES_LIMIT = /^https?:\/\/(?:api\.openai\.com|[^/]+\.openai\.azure\.com)(?:[:/]|$)/iu

/** GPT-5 and the o-series, and Claude Opus from 4.7 on, under their own names and those of routers. */
const REFUSES_TEMPERATURE =
  /(?:^|\/)(?:gpt-5(?!.*chat)|o[134](?:-|$)|claude-opus-(?:4[.-](?:[7-9]|\d\d)(?!\d)|[5-9]))/iu

/** The key that limits the answer's tokens. */
export const limitKey = ({ endpoint }: Pick<Model, "endpoint">): "max_tokens" | "max_completion_tokens" =>
  RENAMES_LIMIT.test(endpoint) ? "max_completion_tokens" : "max_tokens"

export const takesTemperature = ({ model }: Pick<Model, "model">): boolean => !REFUSES_TEMPERATURE.test(model)

/** The parameters that a model's provider refused: the keys that are left out, or sent under another name. */
export type ParameterChanges = ReadonlyMap<string, string | undefined>

const NO_CHANGES: ParameterChanges = new Map()

/**
 * The keys of a request beside its messages and tools. The model's template has the last word on every key that the schema lets it set; null
 * leaves one out.
 */
export const requestParameters = (
  config: Model,
  changes: ParameterChanges = NO_CHANGES
): ReadonlyArray<readonly [key: string, value: Schema.Json]> => {
  const { max_tokens, model, reasoning_effort, request_template, temperature } = config
  const limits =
    Object.hasOwn(request_template, "max_tokens") || Object.hasOwn(request_template, "max_completion_tokens")
  const own: Readonly<Record<string, Schema.Json>> = {
    model,
    ...(limits ? {} : { [limitKey(config)]: max_tokens }),
    ...(takesTemperature(config) ? { temperature } : {}),
    reasoning_effort,
    ...request_template
  }
  return Object.entries(own).flatMap(([key, value]) => {
    const sent = changes.has(key) ? changes.get(key) : key
    return value === null || sent === undefined ? [] : [[sent, value] as const]
  })
}

/** Without these there is no request. */
const NEEDED: ReadonlySet<string> = new Set(["model", "messages", "tools"])

/** A limit of the answer may get its other name and is never left out: what a call reserves of a budget counts on it. */
const LIMITS: ReadonlySet<string> = new Set(["max_tokens", "max_completion_tokens"])

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

const wordsOf = (body: unknown): { readonly message: string; readonly param: unknown } => {
  const error = Predicate.hasProperty(body, "error") ? body.error : body
  const message = Predicate.hasProperty(error, "message") ? error.message : error
  return {
    message: typeof message === "string" ? message : "",
    param: Predicate.hasProperty(error, "param") ? error.param : undefined
  }
}

/** The parameter of the request that an answer names: by itself, or as the only one in its words. */
const named = (said: string, sent: ReadonlyArray<string>): string | undefined => {
  const { message, param } = wordsOf(parse(said))
  const keys = sent.filter((key) => !NEEDED.has(key))
  if (typeof param === "string" && param !== "") return keys.find((key) => key === param)
  const found = keys.filter((key) => new RegExp(`(?<![a-z_])${key}(?![a-z_])`, "u").test(message))
  return found.length === 1 ? found[0] : undefined
}

/**
 * The changes with one more, or `undefined` where the answer names none that can be made. `sent` are the keys of the refused request. Each
 * key changes once, so that the questions end.
 */
export const withoutRefused = (
  said: string,
  sent: ReadonlyArray<string>,
  changes: ParameterChanges
): { readonly parameter: string; readonly changes: ParameterChanges } | undefined => {
  const parameter = named(said, sent)
  if (parameter === undefined) return undefined
  if (!LIMITS.has(parameter)) return { parameter, changes: new Map(changes).set(parameter, undefined) }
  const isRenamed = [...changes.values()].includes(parameter)
  if (parameter !== "max_tokens" || isRenamed || sent.includes("max_completion_tokens")) return undefined
  return { parameter, changes: new Map(changes).set(parameter, "max_completion_tokens") }
}
