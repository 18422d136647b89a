/** The agent in whose place a trial runs: its bindings, its share of the configuration and its newest image. */
import { Effect } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { Config } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import type { ResourceBindings } from "#schema/ResourceBindings.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { agentConfig } from "#src/choird/config/agentShare.ts"
import { withOfflineAddress } from "#src/choird/config/offlineAddress.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type Image, Images } from "#src/choird/images/Images.ts"
import { defaultBindings } from "#src/choird/images/imageSecrets.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import type { TrialError } from "./TrialContainers.ts"
import { TrialRefused } from "./TrialRefused.ts"

export interface TrialAgent {
  readonly agent_id: AgentId
  readonly running: Config
  readonly bindings: Omit<ResourceBindings, "dm">
  readonly share: AgentConfig
  readonly image: Image
}

/** Finds agents: as it runs, or as its next start without flags would be. */
export const makeTrialAgent = Effect.gen(function* () {
  const config = yield* ConfigStore
  const lifecycle = yield* Lifecycle
  const images = yield* Images
  const runtime = yield* ContainerRuntime

  const imageOf = Effect.fnUntraced(function* (agent_id: AgentId) {
    const build = `choirctl agent build ${agent_id}`
    const refused = ({ message }: { readonly message: string }) =>
      new TrialRefused({ kind: "NO_IMAGE", reason: message, hint: build })
    const image = yield* Effect.mapError(images.current(agent_id), refused)
    yield* Effect.mapError(images.verify(image.path), refused)
    // An engine that is away says nothing about its images: the container itself waits for it.
    const isThere = yield* Effect.orElseSucceed(runtime.hasImage(agent_id, image.image_version), () => true)
    if (!isThere) return yield* refused({ message: `the Docker engine lost the image of ${agent_id}` })
    return image
  })

  return Effect.fnUntraced(function* (agent_id: AgentId): Effect.fn.Return<TrialAgent, TrialRefused> {
    const { config: running } = yield* config.current
    const view = yield* Effect.mapError(
      lifecycle.view(agent_id),
      ({ hint, reason }) => new TrialRefused({ kind: "UNKNOWN_AGENT", reason, hint })
    )
    const bindings = view.bindings ?? defaultBindings(running, agent_id)
    if (bindings === undefined)
      return yield* new TrialRefused({ kind: "UNKNOWN_AGENT", reason: `there is no agent ${agent_id}` })
    return {
      agent_id,
      running,
      bindings,
      share: yield* withOfflineAddress(agentConfig(running, bindings, agent_id)),
      image: yield* imageOf(agent_id)
    }
  })
})

/** A trial that could not be run, for its operator. */
export const trialFailed = (error: TrialError): TrialRefused => {
  const hint = error._tag === "ContainerError" ? error.fix : "choirctl logs choird"
  const reason = error._tag === "ContainerError" ? error.problem : error.message
  return new TrialRefused({ kind: "TRIAL_FAILED", reason, hint })
}
