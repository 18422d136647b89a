/** Texts as vectors, so that what means the same lies near. */
import { Context, Effect, Schema } from "effect"

/** Texts of one request to an embedding model. */
export const EMBEDDING_BATCH_MAX = 32

/**
 * No vectors came. `scope` is `texts` if the model refused these texts, so that others may succeed, and `provider` if no text would have
 * succeeded.
 */
export class EmbeddingFailed extends Schema.TaggedError<EmbeddingFailed>()("EmbeddingFailed", {
  model: Schema.String,
  /** For operators; no text that was to be embedded and no secret. */
  problem: Schema.String,
  scope: Schema.Literals(["provider", "texts"]),
  /** Whether the same request may succeed in a moment. */
  passing: Schema.Boolean,
  /** The wait that the provider asks for. */
  retry_after_ms: Schema.optionalKey(Schema.Finite)
}) {
  override get message() {
    return `${this.model}: ${this.problem}`
  }
}

/** The work of one request. `cost_usd` is 0 where no price is known. */
export interface EmbeddingUse {
  readonly texts: number
  readonly tokens: number
  readonly cost_usd: number
}

/** Receives the use that each request makes. */
export const EmbeddingMeter = Context.Reference<(use: EmbeddingUse) => Effect.Effect<void>>(
  "choir/choird/EmbeddingMeter",
  { defaultValue: () => () => Effect.void }
)

/** A model that makes vectors of texts, from `Embeddings`. */
export class Embedder extends Context.Service<
  Embedder,
  {
    /** Names provider, model and dimensions: vectors with the same name are comparable. Stored beside each vector. */
    readonly model: string
    readonly dimensions: number
    /**
     * One vector of length 1 for each text, in order. One try, so that a caller who is waited for can do without; at most
     * EMBEDDING_BATCH_MAX texts go into a request. The end of a text beyond the model's limit does not count.
     */
    embed(texts: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Float32Array>, EmbeddingFailed>
  }
>()("choir/choird/Embedder") {}

/** The vector with the length 1, or nothing for one that has no direction. Keeps within the range of half precision, too. */
export const unitVector = (values: ArrayLike<number>): Float32Array | undefined => {
  let squares = 0
  for (let index = 0; index < values.length; index += 1) squares += (values[index] ?? 0) ** 2
  const length = Math.sqrt(squares)
  if (!Number.isFinite(length) || length === 0) return undefined
  return Float32Array.from(values, (value) => value / length)
}
