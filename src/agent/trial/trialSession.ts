/** The session of a trial: it exists in this process alone, with the arbiter, prompts, models and tools of an agent; nothing of it is stored. */
import { Effect, Layer, type Redacted } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { ResourceName, type SecretName, type SessionId } from "#schema/Ids.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { LockManager } from "#src/agent/calls/LockManager.ts"
import { type ToolPrograms, ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { ToolRunner } from "#src/agent/calls/ToolRunner.ts"
import type { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import type { GitAccess } from "#src/agent/git/GitAccess.ts"
import { ImageTexts } from "#src/agent/image/ImageTexts.ts"
import type { ImageTools } from "#src/agent/image/ImageTools.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { Budget } from "#src/agent/model/Budget.ts"
import type { Llm } from "#src/agent/model/Llm.ts"
import type { Environment } from "#src/agent/model/prompt/Environment.ts"
import type { OutsideApi } from "#src/agent/outside/OutsideApi.ts"
import type { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { Mailbox } from "#src/agent/session/Mailbox.ts"
import { layerModels } from "#src/agent/session/sessionLayers.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import type { Pictures } from "#src/agent/workspace/Pictures.ts"
import type { Workspace } from "#src/agent/workspace/Workspace.ts"

/** A resource that no trial has. */
export const ANYTHING = ResourceName.make("trial")

export interface TrialSession extends ToolPrograms {
  readonly session_id: SessionId
  readonly config: AgentConfig
  readonly secrets: Readonly<Record<SecretName, Redacted.Redacted>>
  readonly skills: ReadonlyArray<SkillSpec>
}

/** The services that differ between trials: where tools act, or how they are kept from it. */
type Surroundings =
  | ControlPlane
  | Environment
  | GitAccess
  | ImageTools
  | OutsideApi
  | Pictures
  | ProcessRunner
  | Workspace

/** Everything that is committed counts as acknowledged: the log lives as long as the trial. */
const layerNoReplication = Layer.effect(
  Replication,
  Effect.map(EventLog, (log) =>
    Replication.of({
      acked: log.head,
      reached: () => Effect.void,
      room: Effect.void,
      flush: Effect.void,
      refresh: Effect.void,
      run: Effect.never
    })
  )
)

const settingsOf = ({ config, session_id }: TrialSession) => ({
  session_id,
  epoch: 1,
  resource_bindings: { workspace: ANYTHING, dm: ANYTHING, llm: config.llm, core_llm: config.core_llm },
  config_version: 1,
  config
})

/** The session itself, to which nobody has spoken. */
const layerOwnSession = (session: TrialSession) => {
  const values = new Map(Object.entries(session.secrets).map(([name, value]) => [name as SecretName, value]))
  const secrets = Layer.effectDiscard(Effect.flatMap(SecretStore, (store) => store.replaceAll(values))).pipe(
    Layer.provideMerge(SecretStore.layer)
  )
  return Layer.mergeAll(
    EventLog.layer(session.session_id),
    AgentSettings.layer(settingsOf(session)),
    secrets,
    LockManager.layer,
    Mailbox.layer,
    Layer.succeed(SkillRegistry, new Map(session.skills.map((spec) => [spec.name, spec]))),
    Layer.succeed(ImageTexts, { user: "", soul: "", soulCore: "" })
  )
}

type RegistryLayer = ReturnType<typeof ToolRegistry.layer>

/** A session with its runner of tools. `instead` changes what its tools do. */
export const layerTrial = <E, R>(
  session: TrialSession,
  surroundings: Layer.Layer<Surroundings, E, R>,
  model: Layer.Layer<Llm, never, SecretStore>,
  instead: (registry: RegistryLayer) => RegistryLayer
) => {
  const own = layerOwnSession(session)
  const grounds = Layer.provideMerge(surroundings, own)
  const authority = Layer.provideMerge(Layer.mergeAll(Arbiter.layer, layerNoReplication), grounds)
  const registry = instead(ToolRegistry.layer({ rg: session.rg, mailReader: session.mailReader }))
  return ToolRunner.layer.pipe(
    Layer.provideMerge(registry),
    Layer.provideMerge(layerModels(Layer.provideMerge(Layer.merge(Budget.layer, model), authority)))
  )
}
