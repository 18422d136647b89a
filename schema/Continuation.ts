/** The opaque part of a model's answer that its provider wants back with the next request, and the APIs that have one. */
import { Schema } from "effect"

/** The API that a model is asked through (D46). */
export const ModelApi = Schema.Literals(["chat", "responses", "messages"])
export type ModelApi = typeof ModelApi.Type

/** The largest continuation of an answer in bytes of JSON; a longer one is dropped, and the model reasons again from the start. */
export const CONTINUATION_BYTES_MAX = 256 * 1024

/**
 * Reasoning, signatures and encrypted items of one answer, sent back byte for byte to the model that wrote them. No other lane, no person and
 * no log reads them (invariant 6).
 */
export const Continuation = Schema.Struct({
  /** The API whose codec made it. */
  api: ModelApi,
  /** The host and the provider's name of the model, so that aliases of one model share it. */
  model: Schema.String,
  data: Schema.Json
})
export type Continuation = typeof Continuation.Type
