/** The configuration that runs after an apply: the staged one without what only a restart can change, if it has everything it needs. */
import { Effect, Result, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { AgentId } from "#schema/Ids.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { AgentSchemas } from "#src/choird/database/AgentSchemas.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { hasValue } from "#src/shared/config/configFiles.ts"
import { problemsOf } from "#src/shared/config/configProblems.ts"
import { boundSecrets } from "#src/choird/config/agentShare.ts"
import { ConfigStore, type RunningConfig, SecretMissing } from "#src/choird/config/ConfigStore.ts"
import { refuse } from "./ConfigurationRefused.ts"
import { STARTED_WITH } from "./reloadClasses.ts"
import { type AgentUse, differences, resourcesOf, SECTIONS, usesOf } from "./resourcesInUse.ts"
import { changedSecrets } from "./secretChanges.ts"

type Table = Readonly<Record<string, unknown>>

/** The wanted entries of `running` that `target` lacks, then all of `target`. */
const keeping = (running: Table, target: Table, wanted: (name: string) => boolean): Table => ({
  ...Object.fromEntries(Object.entries(running).filter(([name]) => wanted(name) && !Object.hasOwn(target, name))),
  ...target
})

const decode = Schema.decodeUnknownResult(Config, { errors: "all", onExcessProperty: "error" })

/**
 * The configuration that can run beside the agents that run: what choird reads at its start stays, as do the agents that run and
 * the resources that they are bound to, where `target` no longer has them. Fails with the problems of a mixture that is not a valid
 * configuration, such as a folder that would have two names.
 */
export const appliedConfig = (
  running: Config,
  target: Config,
  uses: ReadonlyArray<AgentUse>
): Result.Result<Config, string> => {
  const users = new Set<string>(uses.map(({ agent_id }) => agent_id))
  const orphans = uses.flatMap(({ agent_id }) =>
    Object.hasOwn(target.agents, agent_id) ? [] : [running.agents[agent_id]?.defaults ?? {}]
  )
  const held = new Set([
    ...uses.flatMap(({ bindings }) => [...resourcesOf(running, bindings)]),
    ...orphans.flatMap((defaults) => [...resourcesOf(running, defaults)])
  ])
  const tables = SECTIONS.map((section) => [
    section,
    keeping(running[section], target[section], (name) => held.has(`${section}.${name}`))
  ])
  const fixed = STARTED_WITH.flatMap((key) => (running[key] === undefined ? [] : [[key, running[key]]]))
  const { embedding: _, ...rest } = target
  const mixed = {
    ...rest,
    ...Object.fromEntries(tables),
    ...Object.fromEntries(fixed),
    agents: keeping(running.agents, target.agents, (id) => users.has(id))
  }
  return Result.mapError(decode(mixed), ({ message }) => message)
}

export const makeNextConfig = Effect.gen(function* () {
  const lifecycle = yield* Lifecycle
  const schemas = yield* AgentSchemas
  const store = yield* ConfigStore

  /** An agent whose next refresh finds a secret without a value would never adopt the configuration. */
  const checkSecrets = Effect.fnUntraced(function* (
    config: Config,
    uses: ReadonlyArray<AgentUse>,
    secrets: SecretsFile
  ) {
    for (const { agent_id, bindings } of uses) {
      const missing = [...boundSecrets(config, bindings)].find((name) => !hasValue(secrets, name))
      if (missing === undefined) continue
      const { hint, message } = new SecretMissing({ secret: missing })
      return yield* refuse(
        "NOT_READY",
        `${agent_id} is running and could not adopt this configuration: ${message}`,
        hint
      )
    }
  })

  /**
   * Prepares the database for new agents, too. Undefined if it runs already, unless `always`. `secrets` are those of the target if it
   * brings its own.
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
        "what running agents use does not fit the staged configuration",
        `choirctl agent stop ${uses.map(({ agent_id }) => agent_id).join(" && choirctl agent stop ")} && choirctl config apply`,
        problemsOf([mixed.failure])
      )
    const config = mixed.success
    if (!always && differences(running, config).length === 0) return changed
    yield* checkSecrets(config, uses, secrets ?? held)
    for (const id of Object.keys(config.agents)) {
      if (!Object.hasOwn(running.agents, id)) yield* databaseDefect(schemas.ensure(AgentId.make(id)))
    }
    return { config, ...changed }
  })
})
