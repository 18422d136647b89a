/** The embedding model that Choir brings. */
import { Effect } from "effect"
import { LOCAL_EMBEDDING } from "#schema/Embedding.ts"
import { Embedder, EmbeddingFailed, EmbeddingMeter, unitVector } from "./Embedder.ts"
import { EmbeddingProcess } from "./EmbeddingProcess.ts"

const { dimensions, model: name } = LOCAL_EMBEDDING

/** The local model by the name that its vectors have. */
export const LOCAL_MODEL = `local:${name}:${dimensions}`

const failed = (problem: string, scope: EmbeddingFailed["scope"]) =>
  new EmbeddingFailed({ model: LOCAL_MODEL, problem, scope, passing: false })

/** An embedder over a process, which ends with the scope. Nothing is loaded before the first text. */
export const makeLocalEmbedder = Effect.fnUntraced(function* (own: EmbeddingProcess = new EmbeddingProcess()) {
  yield* Effect.addFinalizer(() => Effect.promise(() => own.close()))
  return Embedder.of({
    model: LOCAL_MODEL,
    dimensions,
    embed: Effect.fn("Embedder.local")(function* (texts) {
      const vectors = yield* Effect.callback<ReadonlyArray<Float32Array>, EmbeddingFailed>((resume) => {
        const cancel = own.embed(texts, (result) =>
          resume("scope" in result ? failed(result.problem, result.scope) : Effect.succeed(result))
        )
        return Effect.sync(cancel)
      })
      const units = vectors.map(unitVector)
      const whole = units.flatMap((unit) => (unit === undefined || unit.length !== dimensions ? [] : [unit]))
      if (whole.length !== texts.length) return yield* failed("it made no vector of a text", "texts")
      yield* (yield* EmbeddingMeter)({ texts: texts.length, tokens: 0, cost_usd: 0 })
      return whole
    })
  })
})
