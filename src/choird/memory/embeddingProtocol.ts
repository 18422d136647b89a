/** The messages between choird and the process of the local embedding model: orders as lines on its standard input, reports as lines on its standard output. */
import { Schema } from "effect"
import { LOCAL_EMBEDDING } from "#schema/Embedding.ts"

/** Characters of a text that the process gets, which is more than the model reads of any. */
export const EMBEDDING_TEXT_CHARS_MAX = 65_536
/** An order; a character has at most six bytes. */
export const EMBEDDING_ORDER_BYTES_MAX = 8 * EMBEDDING_TEXT_CHARS_MAX
/** A report; a number has at most 25 bytes. */
export const EMBEDDING_REPORT_BYTES_MAX = 64 * LOCAL_EMBEDDING.dimensions
/** Characters of a problem, which operators read. */
export const EMBEDDING_PROBLEM_CHARS_MAX = 500

/** A text to embed. One at a time: the next one is sent after the answer. */
export interface EmbeddingOrder {
  readonly text: string
}

const { dimensions } = LOCAL_EMBEDDING
const Values = Schema.Array(Schema.Finite).check(Schema.isMinLength(dimensions), Schema.isMaxLength(dimensions))
const Problem = Schema.String.check(Schema.isMaxLength(EMBEDDING_PROBLEM_CHARS_MAX))

export const EmbeddingReport = Schema.Union([
  /** The model is loaded: the process waits for orders. */
  Schema.TaggedStruct("Ready", {}),
  Schema.TaggedStruct("Vector", { values: Values }),
  /** The text cannot be embedded; the process waits for the next one. */
  Schema.TaggedStruct("Refused", { problem: Problem }),
  /** The model cannot be loaded; the process ends. */
  Schema.TaggedStruct("Unusable", { problem: Problem })
])
export type EmbeddingReport = typeof EmbeddingReport.Type
