/** What families of models refuse in a request, as far as it is known before one of them is asked (D47). */
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
