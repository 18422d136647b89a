/** What agents may have choird do for them, over its stores. */
import { Effect, Layer } from "effect"
import { CallResults } from "./CallResults.ts"
import { HostTools } from "./HostTools.ts"
import { memoryQuery } from "./memoryQuery.ts"
import { layerRunEndings } from "./runEndings.ts"

export const layerHostTools = layerRunEndings.pipe(
  Layer.provideMerge(Layer.unwrap(Effect.map(memoryQuery, (query) => HostTools.layer([query])))),
  Layer.provide(CallResults.layer)
)
