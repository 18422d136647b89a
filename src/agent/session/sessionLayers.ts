/** What a session is made of, the same for the agent's program, the simulation and tests; the parts around it differ. */
import { Effect, Layer, type Redacted } from "effect"
import type { InitHello, InitHelloReply } from "#schema/AgentApi.ts"
import type { SecretName } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { Compactor } from "#src/agent/memory/Compactor.ts"
import { Confirmations } from "#src/agent/calls/Confirmations.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { LockManager } from "#src/agent/calls/LockManager.ts"
import { Mailbox } from "./Mailbox.ts"
import { ModelCalls } from "#src/agent/model/ModelCalls.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { takeOver } from "./takeOver.ts"
import { TurnStops } from "./TurnStops.ts"

/** A session as choird has it by its answer to `introduced`: the log, the settings, the secrets, and what orders its calls. */
export const layerRecovered = <E, R>(
  introduced: InitHello,
  first: InitHelloReply,
  values: ReadonlyMap<SecretName, Redacted.Redacted>,
  skills: Layer.Layer<never, E, R>
) => {
  const { session_id } = introduced
  const { config, config_version, epoch, resource_bindings } = first
  const settings = AgentSettings.layer({ session_id, epoch, resource_bindings, config_version, config })
  const secrets = Layer.effectDiscard(Effect.flatMap(SecretStore, (store) => store.replaceAll(values))).pipe(
    Layer.provideMerge(SecretStore.layer)
  )
  return Layer.effectDiscard(takeOver(introduced, first)).pipe(
    Layer.provideMerge(Arbiter.layer),
    Layer.provideMerge(
      Layer.mergeAll(EventLog.layer(session_id), settings, secrets, LockManager.layer, Mailbox.layer, skills)
    )
  )
}

/** The model calls of its lanes, with what they ask people, over a session and the guards of its calls. */
export const layerModels = <A, E, R>(guards: Layer.Layer<A, E, R>) =>
  Compactor.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(Confirmations.layer, ModelCalls.layer, TurnStops.layer)),
    Layer.provideMerge(guards)
  )
