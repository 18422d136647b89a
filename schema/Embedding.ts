/** The model whose vectors searches of memory compare, as config.json names it. */
import { Schema } from "effect"
import { SecretName } from "./Ids.ts"
import { EMBEDDING_MODEL, knownEmbedding } from "./knownEmbeddings.ts"
import { Url } from "./Url.ts"

/**
 * The model whose vectors searches of memory compare. Absent: the local one beside an embedded database, none beside a server. `model` and
 * `dimensions` have the defaults of their provider (knownEmbeddings.ts).
 */
export const Embedding = Schema.Struct({
  provider: Schema.Literals(["off", "local", "openai", "openrouter"]),
  model: Schema.optionalKey(Schema.String.check(Schema.isMinLength(1, { message: "must not be empty" }))),
  dimensions: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0))),
  endpoint: Schema.optionalKey(Url),
  secret: Schema.optionalKey(SecretName)
})
export type Embedding = typeof Embedding.Type

/** Dimensions of vectors that an index takes: of `vector` up to the first number, of `halfvec` up to the second. */
export const VECTOR_DIMENSIONS_MAX = 2000
export const HALFVEC_DIMENSIONS_MAX = 4000
/** The one model inside Choir, and what its vectors have. */
export const LOCAL_EMBEDDING = { model: "universal-sentence-encoder", dimensions: 512 } as const

/** At the path of the key in config.json. */
interface EmbeddingProblem {
  readonly path: ReadonlyArray<string>
  readonly issue: string
}

const localProblems = ({ dimensions, endpoint, model, secret }: Embedding): ReadonlyArray<EmbeddingProblem> => [
  ...(model !== undefined && model !== LOCAL_EMBEDDING.model
    ? [{ path: ["embedding", "model"], issue: `the local provider has one model: ${LOCAL_EMBEDDING.model}` }]
    : []),
  ...(dimensions !== undefined && dimensions !== LOCAL_EMBEDDING.dimensions
    ? [{ path: ["embedding", "dimensions"], issue: `the local model has ${LOCAL_EMBEDDING.dimensions} dimensions` }]
    : []),
  ...Object.entries({ endpoint, secret }).flatMap(([key, value]) =>
    value === undefined
      ? []
      : [{ path: ["embedding", key], issue: "the local provider runs on this host: leave it out" }]
  )
]

/** The problems that the shape alone cannot have: a model with dimensions that it does not give. */
export const embeddingProblems = (embedding: Embedding | undefined): ReadonlyArray<EmbeddingProblem> => {
  if (embedding === undefined || embedding.provider === "off") return []
  if (embedding.provider === "local") return localProblems(embedding)
  const at = ["embedding", "dimensions"]
  const { dimensions, model = EMBEDDING_MODEL } = embedding
  const known = knownEmbedding(model)
  if (known === undefined)
    return dimensions === undefined
      ? [{ path: at, issue: `must be given, since the dimensions of "${model}" are not known` }]
      : dimensions > HALFVEC_DIMENSIONS_MAX
        ? [{ path: at, issue: `must be at most ${HALFVEC_DIMENSIONS_MAX}, the most that an index of vectors takes` }]
        : []
  if (dimensions === undefined || dimensions === known.dimensions) return []
  if (!known.shortens) return [{ path: at, issue: `"${model}" has ${known.dimensions} dimensions and no others` }]
  return dimensions < known.dimensions
    ? []
    : [{ path: at, issue: `"${model}" has at most ${known.dimensions} dimensions` }]
}
