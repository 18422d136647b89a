/** What agents may have choird do for them, over its stores. */
import { Effect, Layer } from "effect"
import { CallResults } from "./CallResults.ts"
import { HostTools } from "./HostTools.ts"
import { memoryQuery } from "./memoryQuery.ts"

export const layerHostTools = Layer.unwrap(Effect.map(memoryQuery, (query) => HostTools.layer([query]))).pipe(
  Layer.provide(CallResults.layer)
)
