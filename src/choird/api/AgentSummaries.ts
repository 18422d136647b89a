/** Rows of `agent list`, made from the lifecycle's views. */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { AgentSummary } from "#schema/OperatorApi.ts"
import type { AgentView } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"

/** Whether a running agent has not taken over what choird runs with: it asks with each heartbeat (R58). */
export const isBehind = ({ config_version, session_id, status }: AgentView, version: number): boolean =>
  status === "running" && session_id !== null && config_version !== version

export class AgentSummaries extends Context.Service<
  AgentSummaries,
  {
    /** An agent that does not run keeps its last session and image. */
    of(view: AgentView): Effect.Effect<AgentSummary>
  }
>()("choir/choird/AgentSummaries") {
  static readonly layer = Layer.effect(
    AgentSummaries,
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const config = yield* ConfigStore
      return AgentSummaries.of({
        of: Effect.fn("AgentSummaries.of")(function* (view) {
          const last =
            view.session_id === null ? Option.getOrUndefined(yield* sessions.latest(view.agent_id)) : undefined
          const { version } = yield* config.current
          const now_ms = yield* Clock.currentTimeMillis
          return {
            agent_id: view.agent_id,
            status: view.status,
            session_id: view.session_id ?? last?.session_id ?? null,
            image_version: view.image_version ?? last?.image_version ?? null,
            uptime_ms: view.status === "running" ? Math.max(0, now_ms - view.since_ms) : 0,
            config_version: view.config_version,
            ...(isBehind(view, version) ? { config_version_latest: version } : {})
          }
        })
      })
    })
  )
}
