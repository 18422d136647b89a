/** The real client of models, for an agent whose models are doubles behind a socket. */
import { NodeHttpClient } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { Llm } from "#src/agent/model/Llm.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"

/** Built once, so that a second agent of the same test shares what it has learned. */
export const modelClient = Effect.map(
  Layer.build(Llm.layer.pipe(Layer.provide([SecretStore.layer, NodeHttpClient.layerUndici]))),
  Layer.succeedContext
)
