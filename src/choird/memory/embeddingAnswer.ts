/** The answer of an embeddings API, which may be wrong in every way. Pure. */
import { Option, Schema } from "effect"
import { unitVector } from "./Embedder.ts"

// Vectors are checked by hand: there may be a hundred thousand numbers.
const Answer = Schema.Struct({
  data: Schema.Array(Schema.Struct({ index: Schema.optionalKey(Schema.Natural), embedding: Schema.Unknown })),
  usage: Schema.optionalKey(Schema.Unknown)
})
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Answer))

export interface EmbeddingAnswer {
  readonly vectors: ReadonlyArray<Float32Array>
  readonly usage: unknown
}

const numbersOf = (value: unknown): ReadonlyArray<number> | undefined =>
  Array.isArray(value) && value.every((one) => typeof one === "number") ? value : undefined

/** The vectors in the order of their texts, or the problem in words. `dimensions` is of another length than was asked for. */
export const readAnswer = (
  body: string,
  count: number,
  dimensions: number
): EmbeddingAnswer | { readonly problem: string; readonly dimensions?: number } => {
  const answer = Option.getOrUndefined(decode(body))
  if (answer === undefined) return { problem: "it answers something else than embeddings" }
  const { data } = answer
  if (data.length !== count) return { problem: `it answers ${data.length} vectors to ${count} texts` }
  const places = data.map(({ index }, place) => index ?? place)
  if (new Set(places).size !== count || Math.max(-1, ...places) >= count)
    return { problem: "it answers vectors that belong to no text" }
  const vectors: Array<Float32Array> = []
  for (const [place, { embedding }] of data.entries()) {
    const numbers = numbersOf(embedding)
    if (numbers === undefined) return { problem: "it answers vectors that are not numbers" }
    if (numbers.length !== dimensions)
      return {
        problem: `its vectors have ${numbers.length} dimensions, and ${dimensions} are configured`,
        dimensions: numbers.length
      }
    const unit = unitVector(numbers)
    if (unit === undefined) return { problem: "it answers vectors without a direction" }
    vectors[places[place] ?? 0] = unit
  }
  return { vectors, usage: answer.usage }
}
