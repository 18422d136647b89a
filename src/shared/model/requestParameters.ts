/**
 * The keys of a model's requests beside messages and tools, as agents send them and `choirctl model test` tries them, and their change when a
 * provider answers 400 and names one of them (D47).
 */
import { Predicate, Schema } from "effect"
import type { Model } from "#schema/Config.ts"
import type { ModelApi } from "#schema/Continuation.ts"
import type { Asked } from "./Asked.ts"
import { answerTokensOf, type Quirks } from "./quirks.ts"
import type { ParameterChanges } from "./Asked.ts"

const NO_CHANGES: ParameterChanges = new Map()

/** The keys under which the APIs limit an answer's tokens. */
export const LIMITS: ReadonlySet<string> = new Set(["max_tokens", "max_completion_tokens", "max_output_tokens"])

/** The conversation's own keys in each API, which no template replaces. */
const OF_CONVERSATION: ReadonlySet<string> = new Set(["messages", "tools", "system", "input", "instructions"])

/**
 * The keys of a request beside its conversation and tools: `own` of them are Choir's, and what is undefined is not sent. The model's template
 * has the last word on every key that the schema lets it set; null leaves one out.
 */
export const requestParameters = (
  { request_template }: Pick<Model, "request_template">,
  own: Readonly<Record<string, Schema.Json | undefined>>,
  changes: ParameterChanges = NO_CHANGES
): ReadonlyArray<readonly [key: string, value: Schema.Json]> => {
  const isLimited = Object.keys(request_template).some((key) => LIMITS.has(key))
  const kept = Object.entries(own).filter(([key]) => !(isLimited && LIMITS.has(key)))
  const added = Object.entries(request_template).filter(([key]) => !OF_CONVERSATION.has(key))
  return Object.entries(Object.fromEntries([...kept, ...added])).flatMap(([key, value]) => {
    const sent = changes.has(key) ? changes.get(key) : key
    return value === null || value === undefined || sent === undefined ? [] : [[sent, value] as const]
  })
}

/** The keys that both of OpenAI's APIs spell alike; what the provider or the model does not take is undefined. */
export const openAiKeys = ({ cache_key, model }: Asked, quirks: Quirks) => ({
  model: model.model,
  temperature: quirks.temperature ? model.temperature : undefined,
  stream: true,
  prompt_cache_key: quirks.cache === "key" && model.cache === "auto" ? cache_key : undefined
})

/** Tokens that a provider may report for one call, or an answer may have; a higher count is taken for this one, so that sums stay exact. */
export const MODEL_USAGE_TOKENS_MAX = 1_000_000_000

/** The most tokens that an answer may have, for room and budget: what is sent, whichever key says so. */
export const outputTokensMax = (model: Model): number => {
  const replaced = Object.entries(model.request_template).flatMap(([key, value]) =>
    LIMITS.has(key) && Schema.is(Schema.Natural)(value) ? [value] : []
  )
  return replaced.length === 0 ? answerTokensOf(model) : Math.min(Math.max(...replaced), MODEL_USAGE_TOKENS_MAX)
}

/** Without these there is no request. */
const NEEDED: ReadonlySet<string> = new Set(["model"])

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** The place in a request that a list of problems names, as servers that check requests by a schema answer. */
const placeIn = (detail: unknown): unknown => {
  const first: unknown = Array.isArray(detail) ? detail[0] : undefined
  const loc = Predicate.hasProperty(first, "loc") ? first.loc : undefined
  return Array.isArray(loc) ? loc.at(-1) : undefined
}

const wordsOf = (body: unknown): { readonly message: string; readonly param: unknown } => {
  if (Predicate.hasProperty(body, "detail")) return { message: "", param: placeIn(body.detail) }
  const error = Predicate.hasProperty(body, "error") ? body.error : body
  const message = Predicate.hasProperty(error, "message") ? error.message : error
  return {
    message: typeof message === "string" ? message : "",
    param: Predicate.hasProperty(error, "param") ? error.param : undefined
  }
}

/** A problem of the conversation, which may be described by the names of parameters. */
const OF_A_MESSAGE = /^messages?[.[]/u

/** The parameter of the request that an answer names: by itself, or as the only one in its words. */
const named = (said: string, sent: ReadonlyArray<string>): string | undefined => {
  const { message, param } = wordsOf(parse(said))
  const keys = sent.filter((key) => !NEEDED.has(key))
  // A parameter may be an object, of which one key is refused.
  if (typeof param === "string" && param !== "") return keys.find((key) => /^[^.[]*/u.exec(param)?.[0] === key)
  if (OF_A_MESSAGE.test(message)) return undefined
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
  changes: ParameterChanges,
  api: ModelApi = "chat"
): { readonly parameter: string; readonly changes: ParameterChanges } | undefined => {
  const parameter = named(said, sent)
  if (parameter === undefined) return undefined
  // A limit may get its other name and is never left out: what a call reserves of a budget counts on it.
  if (!LIMITS.has(parameter)) return { parameter, changes: new Map(changes).set(parameter, undefined) }
  const isRenamed = [...changes.values()].includes(parameter)
  if (api !== "chat" || parameter !== "max_tokens" || isRenamed || sent.includes("max_completion_tokens"))
    return undefined
  return { parameter, changes: new Map(changes).set(parameter, "max_completion_tokens") }
}
