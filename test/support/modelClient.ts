/** The real client of models, for an agent whose models are doubles behind a socket. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Layer } from "effect"
import { Llm } from "#src/agent/model/Llm.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { makeMemoryControlPlane } from "./testing/MemoryControlPlane.ts"
import { inOrder } from "./testing/ScriptedModel.ts"
import { type AgentOptions, runAgent } from "./testing/TestAgent.ts"

/** Built once, so that a second agent of the same test shares what it has learned. */
export const modelClient = Effect.map(
  Layer.build(Llm.layer.pipe(Layer.provide([SecretStore.layer, NodeHttpClient.layerUndici]))),
  Layer.succeedContext
)

/** An agent that runs until the test ends, with the models of its config: the control plane that holds its session. */
export const agentWithModels = Effect.fnUntraced(function* (options: Pick<AgentOptions, "config" | "tools">) {
  const plane = yield* makeMemoryControlPlane
  yield* Effect.forkScoped(runAgent({ plane, script: inOrder(), llm: yield* modelClient, ...options }))
  return plane
})
