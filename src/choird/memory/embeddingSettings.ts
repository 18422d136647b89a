/** The embedding model that config.json chooses, with the defaults of its provider. Pure. */
import { Schema } from "effect"
import type { Config } from "#schema/Config.ts"
import { SecretName } from "#schema/Ids.ts"
import { EMBEDDING_MODEL, knownEmbedding } from "#schema/knownEmbeddings.ts"
import { LOCAL_MODEL } from "./localEmbedder.ts"

/** A model behind an API, as it is asked; kept for as long as vectors of it serve searches. */
export const RemoteModel = Schema.Struct({
  provider: Schema.Literals(["openai", "openrouter"]),
  model: Schema.String,
  dimensions: Schema.Int,
  endpoint: Schema.String,
  secret: Schema.optionalKey(SecretName)
})
export type RemoteModel = typeof RemoteModel.Type

export const EmbeddingModel = Schema.Union([Schema.Struct({ provider: Schema.Literal("local") }), RemoteModel])
export type EmbeddingModel = typeof EmbeddingModel.Type

const ENDPOINTS: Readonly<Record<RemoteModel["provider"], string>> = {
  openai: "https://api.openai.com/v1",
  openrouter: "https://openrouter.ai/api/v1"
}

/** Undefined where searches go by words alone: by choice, or beside a server without a model of its own. */
export const embeddingModel = ({ embedding, postgres }: Config): EmbeddingModel | undefined => {
  if (embedding === undefined) return "embedded" in postgres ? { provider: "local" } : undefined
  const { dimensions, endpoint, model = EMBEDDING_MODEL, provider, secret } = embedding
  if (provider === "off") return undefined
  if (provider === "local") return { provider }
  return {
    provider,
    model,
    // Of a model that is not known config.json names them.
    dimensions: dimensions ?? knownEmbedding(model)?.dimensions ?? 0,
    endpoint: endpoint ?? ENDPOINTS[provider],
    ...(secret === undefined ? {} : { secret })
  }
}

/** The name that the vectors of a model have: another one for other vectors, wherever they are made. */
export const modelName = (model: EmbeddingModel): string =>
  model.provider === "local" ? LOCAL_MODEL : `${model.provider}:${model.model}:${model.dimensions}`
