/** The real client of models, for an agent whose models are doubles behind a socket. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Layer } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { Model } from "#schema/Config.ts"
import { Llm } from "#src/agent/model/Llm.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { makeMemoryControlPlane } from "./testing/MemoryControlPlane.ts"
import { inOrder } from "./testing/ScriptedModel.ts"
import { agentConfig, type AgentOptions, runAgent } from "./testing/TestAgent.ts"

/** Built once, so that a second agent of the same test shares what it has learned. */
export const modelClient = Effect.map(
  Layer.build(Llm.layer.pipe(Layer.provide([SecretStore.layer, NodeHttpClient.layerUndici]))),
  Layer.succeedContext
)

/** The usual configuration, with all of its models like this. */
export const configWith = (entry: Partial<Model>, more: Partial<AgentConfig> = {}): AgentConfig => {
  const base = agentConfig()
  const models = Object.fromEntries(Object.entries(base.models).map(([name, model]) => [name, { ...model, ...entry }]))
  return { ...base, models, ...more }
}

/** An agent that runs until the test ends, with the models of its config: the control plane that holds its session. */
export const agentWithModels = Effect.fnUntraced(function* (options: Pick<AgentOptions, "config" | "tools">) {
  const plane = yield* makeMemoryControlPlane
  yield* Effect.forkScoped(runAgent({ plane, script: inOrder(), llm: yield* modelClient, ...options }))
  return plane
})
