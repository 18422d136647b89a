/** The keys of a model's requests beside messages and tools, as agents send them and `choirctl model test` tries them. */
import type { Schema } from "effect"
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

/** What a model's provider refused: the keys that are left out, or sent under another name. */
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
