/** The keys of a model's requests beside messages and tools, as agents send them and `choirctl model test` tries them. */
import type { Schema } from "effect"
import type { Model } from "#schema/Config.ts"
import { limitKey, takesTemperature } from "./modelQuirks.ts"

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
