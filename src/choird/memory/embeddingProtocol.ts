/** The messages between choird and the thread of the local embedding model. */

/** A text to embed. One at a time: the next one is sent after the answer. */
export interface EmbeddingOrder {
  readonly text: string
}

export type EmbeddingReport =
  | { readonly _tag: "Vector"; readonly values: Float32Array }
  /** The text cannot be embedded; the thread continues. */
  | { readonly _tag: "Refused"; readonly problem: string }
  /** The model cannot be loaded; the thread ends. */
  | { readonly _tag: "Unusable"; readonly problem: string }
