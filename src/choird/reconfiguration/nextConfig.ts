/** What of a configuration can run beside the agents that run, and whether everything that it needs is there. */
import { Effect, Result } from "effect"
import type { Config } from "#schema/Config.ts"
import { AgentId } from "#schema/Ids.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { AgentSchemas } from "#src/choird/database/AgentSchemas.ts"
import { hasValue } from "#src/shared/config/configFiles.ts"
import { problemsOf } from "#src/shared/config/configProblems.ts"
import { boundSecrets } from "#src/choird/config/agentShare.ts"
import { appliedConfig } from "./appliedConfig.ts"
import { ConfigStore, type RunningConfig, SecretMissing } from "#src/choird/config/ConfigStore.ts"
import { refuse } from "./ConfigurationRefused.ts"
import { type AgentUse, differences, usesOf } from "./resourcesInUse.ts"
import { changedSecrets } from "./secretChanges.ts"

export const makeNextConfig = Effect.gen(function* () {
  const lifecycle = yield* Lifecycle
  const schemas = yield* AgentSchemas
  const store = yield* ConfigStore

  /** Agents whose next refresh would find a secret without a value would never take the configuration over. */
  const checkSecrets = Effect.fnUntraced(function* (
    config: Config,
    uses: ReadonlyArray<AgentUse>,
    secrets: SecretsFile
  ) {
    for (const { agent_id, bindings } of uses) {
      const missing = [...boundSecrets(config, bindings)].find((name) => !hasValue(secrets, name))
      if (missing === undefined) continue
      const { hint, message } = new SecretMissing({ secret: missing })
      return yield* refuse("NOT_READY", `${agent_id} runs and could not take it over: ${message}`, hint)
    }
  })

  /**
   * Has the database ready for new agents as well. Undefined when it runs already, unless `always`. `secrets` are those of the target
   * where they are taken over with it.
   */
  return Effect.fnUntraced(function* (
    target: Config,
    always: boolean,
    { config: running }: RunningConfig,
    secrets?: SecretsFile
  ) {
    const held = yield* store.secrets
    const changed = secrets !== undefined && changedSecrets(held, secrets).length > 0 ? { secrets } : undefined
    const uses = usesOf(running, yield* lifecycle.list)
    const mixed = appliedConfig(running, target, uses)
    if (Result.isFailure(mixed))
      return yield* refuse(
        "NOT_READY",
        "what running agents hold on to does not go together with the staged configuration",
        `choirctl agent stop ${uses.map(({ agent_id }) => agent_id).join(" && choirctl agent stop ")} && choirctl config apply`,
        problemsOf([mixed.failure])
      )
    const config = mixed.success
    if (!always && differences(running, config).length === 0) return changed
    yield* checkSecrets(config, uses, secrets ?? held)
    for (const id of Object.keys(config.agents)) {
      if (!Object.hasOwn(running.agents, id)) yield* Effect.orDie(schemas.ensure(AgentId.make(id)))
    }
    return { config, ...changed }
  })
})
