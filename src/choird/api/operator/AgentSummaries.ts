/** Rows of `agent list`, made from the lifecycle's views. */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { Config } from "#schema/Config.ts"
import type { ResourceName } from "#schema/Ids.ts"
import type { AgentHealth, AgentSummary } from "#schema/AgentSummary.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { unpricedModels } from "#src/shared/config/unpricedModels.ts"
import { BREAKER_CRASHES_MAX } from "#src/choird/agents/Breaker.ts"

/** True if a running agent does not use choird's configuration yet; it asks for it with each heartbeat (R58). */
export const isBehind = ({ config_version, session_id, status }: AgentView, version: number): boolean =>
  status === "running" && session_id !== null && config_version !== version

/** The models without a price that an agent uses, or would use at its next start. */
export const unpricedOf = (config: Config, { agent_id, bindings }: AgentView): ReadonlyArray<ResourceName> => {
  const names = bindings ?? config.agents[agent_id]?.defaults
  return names === undefined ? [] : unpricedModels(config, [names.llm, names.core_llm ?? names.llm])
}

export class AgentSummaries extends Context.Service<
  AgentSummaries,
  {
    /** An agent that does not run keeps its last session and image. */
    of(view: AgentView): Effect.Effect<AgentSummary>
    /** The summary without the database. */
    known(view: AgentView): Effect.Effect<AgentSummary>
  }
>()("choir/choird/AgentSummaries") {
  static readonly layer = Layer.effect(
    AgentSummaries,
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const config = yield* ConfigStore
      const events = yield* EventStore
      const lifecycle = yield* Lifecycle

      /** The parts of a running agent that may need attention. */
      const healthOf = Effect.fnUntraced(function* (view: AgentView) {
        const { agent_id, epoch, session_id } = view
        const running = (yield* config.current).config
        const { budgets } = running
        const unpriced = unpricedOf(running, view)
        const { age_ms, crashes, head_rev } = yield* lifecycle.lastHeartbeat(agent_id)
        const state =
          session_id === null
            ? undefined
            : Option.getOrUndefined(yield* Effect.option(databaseDefect(events.state(session_id))))
        return {
          epoch,
          lag_revs: head_rev === null || state === undefined ? null : Math.max(0, head_rev - state.rev),
          heartbeat_age_ms: age_ms,
          crashes,
          crashes_max: BREAKER_CRASHES_MAX,
          tokens: { used: state?.spent.tokens ?? 0, limit: budgets.total_session_tokens },
          cost_usd: {
            used: state?.spent.cost_usd ?? 0,
            limit: budgets.max_cost_usd,
            ...(unpriced.length === 0 ? {} : { unpriced })
          }
        } satisfies AgentHealth
      })

      const known = Effect.fn("AgentSummaries.known")(function* (view: AgentView) {
        const { version } = yield* config.current
        const now_ms = yield* Clock.currentTimeMillis
        return {
          agent_id: view.agent_id,
          status: view.status,
          session_id: view.session_id,
          image_version: view.image_version,
          uptime_ms: view.status === "running" ? Math.max(0, now_ms - view.since_ms) : 0,
          config_version: view.config_version,
          ...(isBehind(view, version) ? { config_version_latest: version } : {})
        } satisfies AgentSummary
      })

      return AgentSummaries.of({
        known,
        of: Effect.fn("AgentSummaries.of")(function* (view) {
          const last =
            view.session_id === null
              ? Option.getOrUndefined(yield* databaseDefect(sessions.latest(view.agent_id)))
              : undefined
          const summary = yield* known(view)
          return {
            ...summary,
            session_id: summary.session_id ?? last?.session_id ?? null,
            image_version: summary.image_version ?? last?.image_version ?? null,
            ...(view.status === "running" ? { health: yield* healthOf(view) } : {})
          }
        })
      })
    })
  )
}
