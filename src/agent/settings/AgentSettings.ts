/** The settings that the agent gets at INIT_HELLO and again when the configuration changes. */
import { Context, Effect, Layer } from "effect"
import { type Capability, GRANTS_DEFAULT } from "#schema/Capability.ts"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { Budgets, JobsConfig, Model } from "#schema/Config.ts"
import type { ProfileHistories } from "#schema/JobProfile.ts"
import type { ResourceBindings } from "#schema/ResourceBindings.ts"
import type { SessionId } from "#schema/Ids.ts"
import type { WorkspaceLabel } from "#schema/WorkspaceLabel.ts"
import { lackingTools } from "#src/shared/image/toolNeeds.ts"
import { ReceivedMark } from "./ReceivedMark.ts"

export interface Settings {
  readonly session_id: SessionId
  readonly epoch: number
  readonly resource_bindings: ResourceBindings
  readonly config_version: number
  readonly config: AgentConfig
}

/** The facts that decisions use besides the state, the skills and the log. */
export interface Standing {
  readonly session_id: SessionId
  readonly epoch: number
  readonly budgets: Budgets
  readonly confirm_external: "never" | "tainted" | "always"
  /** The effects that the agent's skills may have. */
  readonly grants: ReadonlyArray<Capability>
  /** Built-in tools that the agent lacks because of its configuration, with the reasons. */
  readonly unbound: ReadonlyMap<string, string>
  /** The capacities of the pools of jobs. */
  readonly pools: JobsConfig["pools"]
  /** The origin of the workspace's files, as known from before this run. */
  readonly workspace_label: WorkspaceLabel
  /** How jobs of each type ended of late. */
  readonly histories: ProfileHistories
}

/** A model of a configuration by its name there, if it is one of those that the agent is bound to. */
export const boundModel = ({ models }: AgentConfig, name: string): Model | undefined =>
  Object.hasOwn(models, name) ? (models as Readonly<Record<string, Model>>)[name] : undefined

/** Holds one snapshot, replaced whole: a call that takes it once at its start never sees half a change (R58). */
export class AgentSettings extends Context.Service<
  AgentSettings,
  {
    current(): Settings
    situation(): Standing
    /** A bound model by the name of config.json. */
    model(name: string): Model | undefined
    replace(config_version: number, config: AgentConfig): Effect.Effect<void>
  }
>()("choir/agent/AgentSettings") {
  static readonly layer = (initial: Settings) =>
    Layer.effect(
      AgentSettings,
      Effect.map(ReceivedMark, (isReceived) => {
        let settings = initial
        let received = false
        const workspaceLabel = (): WorkspaceLabel => {
          const label = settings.config.workspace_label ?? {}
          received ||= isReceived()
          return received ? { ...label, received } : label
        }
        let unbound = lackingTools(initial.config)
        return AgentSettings.of({
          current: () => settings,
          situation: () => ({
            session_id: settings.session_id,
            epoch: settings.epoch,
            budgets: settings.config.budgets,
            confirm_external: settings.config.approvals.confirm_external,
            grants: settings.config.grants ?? GRANTS_DEFAULT,
            unbound,
            // Few decisions ask, and the answer is a look at the file system.
            get workspace_label() {
              return workspaceLabel()
            },
            pools: settings.config.jobs.pools,
            histories: settings.config.profiles ?? {}
          }),
          model: (name) => boundModel(settings.config, name),
          replace: (config_version, config) =>
            Effect.sync(() => {
              settings = { ...settings, config_version, config }
              unbound = lackingTools(config)
            })
        })
      })
    )
}
