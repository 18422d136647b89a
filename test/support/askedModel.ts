/** The client of models with one provider on a real socket. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Deferred, Duration, Effect, Layer, Redacted, Schema } from "effect"
import { type AgentConfig } from "#schema/AgentConfig.ts"
import { Config } from "#schema/Config.ts"
import { SecretName } from "#schema/Ids.ts"
import type { Tool } from "#src/shared/model/Conversation.ts"
import { Llm, type Spoken, type Unanswered } from "#src/agent/model/Llm.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { agentConfig } from "./testing/TestAgent.ts"
import * as double from "./testing/Provider.ts"

/** The key of the bound model. */
export const KEY = "sk-canary-0123456789"
export const MESSAGES = [
  { role: "system", content: "You are an agent." },
  { role: "user", content: "hi" }
] as const

const decodeConfig = Schema.decodeUnknownSync(Config)
/** An agent's configuration with these models of config.json. */
export const configOf = (models: object, more: Partial<AgentConfig> = {}): AgentConfig => ({
  ...agentConfig(),
  models: decodeConfig({ global_repo: { url: "/g" }, models }).models,
  ...more
})

/** One provider, bound as `small` with its key. `more` are further keys of the model, or further models. */
export const asking = Effect.fnUntraced(function* (
  provider: double.Provider,
  more: object = {},
  models: object = {},
  tools: ReadonlyArray<Tool> = [],
  announced: Deferred.Deferred<void> = Deferred.makeUnsafe(),
  interrupted?: (cost: Unanswered) => Effect.Effect<unknown>,
  heard?: (step: Spoken) => unknown
) {
  const small = { provider: "p", model: "m", endpoint: provider.endpoint, secret: "key", max_tokens: 4096, ...more }
  const waits: Array<number> = []
  const secrets = Layer.effectDiscard(
    Effect.flatMap(SecretStore, (store) => store.replaceAll(new Map([[SecretName.make("key"), Redacted.make(KEY)]])))
  ).pipe(Layer.provideMerge(SecretStore.layer))
  const layer = Llm.layer.pipe(Layer.provide([secrets, NodeHttpClient.layerUndici]))
  const completion = yield* Effect.flatMap(Llm, (llm) =>
    llm.complete("small", MESSAGES, tools, configOf({ small, ...models }), {
      announce: (wait) =>
        Effect.suspend(() => {
          waits.push(Duration.toMillis(wait))
          return Effect.asVoid(Deferred.succeed(announced, undefined))
        }),
      interrupted: (cost) => Effect.asVoid(interrupted?.(cost) ?? Effect.void),
      heard: (step) => Effect.sync(() => void heard?.(step))
    })
  ).pipe(Effect.provide(layer))
  return { completion, waits }
})

/** What is made of a provider's answer, which is the same a second time. */
export const answering = Effect.fnUntraced(function* (reply: double.Reply) {
  const provider = yield* double.makeProvider
  yield* provider.script(reply, reply)
  return (yield* asking(provider)).completion
})
