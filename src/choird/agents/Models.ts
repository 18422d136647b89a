/**
 * The models of an agent, and the switch to others while it runs. A switch is transient: it survives crashes, but not another
 * start, and is never written to config.json.
 */
import { Context, Effect, Layer, Result } from "effect"
import type { AgentModels } from "#schema/AgentsApi.ts"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { ConfigVersions } from "#src/choird/config/ConfigVersions.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { unknownBinding } from "./bindings.ts"
import { AgentRefused } from "./AgentRefused.ts"
import type { AgentView } from "./AgentViews.ts"
import { Lifecycle } from "./Lifecycle.ts"

/** The models to switch to; an absent one stays, and a core model that was edge's switches with it (E14). */
export interface ModelChoice {
  readonly llm?: ResourceName
  readonly core_llm?: ResourceName
  readonly voice_profile?: ResourceName
}

/** Reports and switches agents' models. */
export class Models extends Context.Service<
  Models,
  {
    /** The models that an agent uses, or would use after its next start. */
    get(agent_id: AgentId): Effect.Effect<AgentModels, AgentRefused>
    /** Takes effect at the agent's next model call. Refused unless the agent runs and the models and their secrets are there. */
    set(agent_id: AgentId, who: string, choice: ModelChoice): Effect.Effect<AgentModels, AgentRefused>
  }
>()("choir/choird/Models") {
  static readonly layer = Layer.effect(
    Models,
    Effect.suspend(() => make())
  )
}

const make = Effect.fnUntraced(function* () {
  const audit = yield* Audit
  const config = yield* ConfigStore
  const lifecycle = yield* Lifecycle
  const versions = yield* ConfigVersions

  const modelsOf = Effect.fnUntraced(function* (view: AgentView) {
    const { config: running, version } = yield* config.current
    const defaults = running.agents[view.agent_id]?.defaults
    if (defaults === undefined) return yield* Effect.die(new Error(`${view.agent_id} is not in the configuration`))
    const start = { llm: defaults.llm, core_llm: defaults.core_llm ?? defaults.llm }
    return {
      agent_id: view.agent_id,
      llm: view.bindings?.llm ?? start.llm,
      core_llm: view.bindings?.core_llm ?? start.core_llm,
      default_llm: start.llm,
      default_core_llm: start.core_llm,
      voice_profile: (view.bindings ?? defaults).voice_profile ?? null,
      in_use: view.status === "running" && view.config_version === version
    } satisfies AgentModels
  })

  const checked = Effect.fnUntraced(function* (agent_id: AgentId, choice: ModelChoice) {
    const refuse = (kind: AgentRefused["kind"], reason: string, hint: string) =>
      new AgentRefused({ kind, agent_id, reason, hint })
    const { bindings, status } = yield* lifecycle.view(agent_id)
    if (bindings === null || status !== "running")
      return yield* refuse(
        "NOT_RUNNING",
        `${agent_id} is ${status}; only a running agent can be switched to another model`,
        `choirctl agent start ${agent_id} --llm <name>, or change its defaults in config.json`
      )
    const llm = choice.llm ?? bindings.llm
    const core_llm = choice.core_llm ?? (bindings.core_llm === bindings.llm ? llm : bindings.core_llm)
    const voice = choice.voice_profile === undefined ? {} : { voice_profile: choice.voice_profile }
    const wanted = { ...bindings, llm, core_llm, ...voice }
    const unknown = unknownBinding((yield* config.current).config, wanted)
    if (unknown !== undefined) return yield* refuse("NOT_READY", unknown.reason, unknown.hint)
    for (const name of yield* config.secretsOf(wanted)) {
      const value = yield* Effect.result(config.secret(name))
      if (Result.isFailure(value)) return yield* refuse("NOT_READY", value.failure.message, value.failure.hint)
    }
    return { llm, core_llm, ...voice }
  })

  /** The bindings change before the version does, so that a reader of the new number finds the new models. */
  const apply = Effect.fnUntraced(function* (agent_id: AgentId, who: string, choice: ModelChoice) {
    yield* versions.commit({ action: "model set", who }, () =>
      Effect.map(checked(agent_id, choice), (models) => ({ before: Effect.ignore(lifecycle.rebind(agent_id, models)) }))
    )
    return yield* modelsOf(yield* lifecycle.view(agent_id))
  })

  return Models.of({
    get: (agent_id) => Effect.flatMap(lifecycle.view(agent_id), modelsOf),
    set: Effect.fn("Models.set")(function* (agent_id, who, choice) {
      const entry = { who, action: "model.set", agent_id }
      const models = yield* Effect.tapErrorTag(apply(agent_id, who, choice), "AgentRefused", ({ kind }) =>
        audit.record({ ...entry, detail: { ...choice, refused: kind } })
      )
      yield* audit.record({ ...entry, detail: { ...choice, llm: models.llm, core_llm: models.core_llm } })
      return models
    })
  })
})
