/** Models of embeddings that config.json names by their name alone, as their providers published them in June 2026. */

/** Facts of a model. */
export interface KnownEmbedding {
  /** The dimensions of its vectors, unless fewer are asked for. */
  readonly dimensions: number
  /** Whether it takes the parameter `dimensions`; a model that does not refuses requests that have it. */
  readonly shortens: boolean
  /** USD per million tokens. */
  readonly price: number
}

/** The model of a provider that config.json names without one. */
export const EMBEDDING_MODEL = "text-embedding-3-small"

/** https://openai.com/api/pricing */
const KNOWN: Readonly<Record<string, KnownEmbedding>> = {
  [EMBEDDING_MODEL]: { dimensions: 1536, shortens: true, price: 0.02 },
  "text-embedding-3-large": { dimensions: 3072, shortens: true, price: 0.13 },
  "text-embedding-ada-002": { dimensions: 1536, shortens: false, price: 0.1 }
}

const ROUTED = "openai/"

/** The facts of a model, also under the name that a router gives it. */
export const knownEmbedding = (model: string): KnownEmbedding | undefined => {
  const name = model.startsWith(ROUTED) ? model.slice(ROUTED.length) : model
  return Object.hasOwn(KNOWN, name) ? KNOWN[name] : undefined
}

/** The name by which a router of several providers knows a model that config.json names without its maker. */
export const routedEmbedding = (model: string): string => (Object.hasOwn(KNOWN, model) ? `${ROUTED}${model}` : model)
