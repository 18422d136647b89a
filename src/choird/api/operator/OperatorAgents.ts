/** The operator's endpoints about one agent. */
import { Effect, Exit, Option, Result } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { Budgets } from "#schema/Config.ts"
import { type AgentId, EDGE, type ResourceName } from "#schema/Ids.ts"
import type { AgentDetail, UpdateOutcome, UpdateProgress } from "#schema/AgentsApi.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { Images } from "#src/choird/images/Images.ts"
import { makeImageSources } from "#src/choird/agents/imageSources.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { keptOf } from "#src/choird/agents/bindings.ts"
import type { AgentRefused } from "#src/choird/agents/AgentRefused.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { mounted, type Updated, Updates } from "#src/choird/agents/Updates.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { AgentSummaries, unpricedOf } from "./AgentSummaries.ts"
import { fromAgentRefused, refusedBuild } from "#src/choird/api/refusals.ts"
import { progressStream } from "./progressStream.ts"

const outcomeOf = ({ error, ...updated }: Updated): UpdateOutcome => {
  if (error === undefined) return updated
  if (error._tag !== "AgentRefused") return { ...updated, error: refusedBuild(error) }
  return { ...updated, error: { type: error.kind, message: error.reason, hint: error.hint } }
}

/** An update whose client has left is stopped between two agents, or within a build. */
const steps = <E>(
  work: (progress: (line: string) => Effect.Effect<void>) => Effect.Effect<ReadonlyArray<Updated>, E>,
  refusal: (error: E) => Extract<UpdateProgress, { type: "failed" }>["error"]
) =>
  progressStream((step) =>
    Effect.match(work(step), {
      onSuccess: (rows) => ({ type: "done" as const, result: rows.map(outcomeOf) }),
      onFailure: (error) => ({ type: "failed" as const, error: refusal(error) })
    })
  )

export const layerOperatorUpdates = HttpApiBuilder.group(
  OperatorApi,
  "updates",
  Effect.fnUntraced(function* (handlers) {
    const updates = yield* Updates
    const lifecycle = yield* Lifecycle
    return handlers.handleAll({
      one: ({ params }) =>
        Effect.mapError(lifecycle.view(params.id), fromAgentRefused).pipe(
          Effect.as(
            steps(
              (progress) => Effect.map(updates.one(params.id, progress), (row) => [row]),
              ({ hint, kind, reason }) => ({ type: kind, message: reason, hint })
            )
          )
        ),
      all: () =>
        Effect.succeed(
          steps(
            (progress) => updates.all(progress),
            (never: never) => never
          )
        )
    })
  })
)

type Lanes = AgentDetail["lanes"]

/** Edge first, then the running jobs, as far as they are acknowledged. */
const laneRows = ({ cores, edge }: SessionState): Lanes =>
  [{ ...edge, lane: EDGE }, ...cores.values()].map(({ lane, skill, state, step }) => ({
    lane,
    state,
    skill: skill?.name ?? null,
    skill_state: skill?.state ?? null,
    step
  }))

/** The session's use of its budgets. */
const budgetRows = (
  state: SessionState | undefined,
  limits: Budgets,
  unpriced: ReadonlyArray<ResourceName>
): AgentDetail["budgets"] => ({
  tokens: { used: state?.spent.tokens ?? 0, limit: limits.total_session_tokens },
  tool_calls: { used: state?.spent.tool_calls ?? 0, limit: limits.max_tool_calls_per_session },
  cost_usd: {
    used: state?.spent.cost_usd ?? 0,
    limit: limits.max_cost_usd,
    ...(unpriced.length === 0 ? {} : { unpriced })
  },
  core_jobs: { used: state?.cores.size ?? 0, limit: limits.max_core_jobs }
})

const makeDetail = Effect.gen(function* () {
  const approvals = yield* Approvals
  const config = yield* ConfigStore
  const events = yield* EventStore
  const leases = yield* Leases
  const lifecycle = yield* Lifecycle
  const sessions = yield* SessionStore
  const summaries = yield* AgentSummaries
  return Effect.fn("OperatorApi.agent")(function* (agent_id: AgentId) {
    const view = yield* Effect.mapError(lifecycle.view(agent_id), fromAgentRefused)
    const { image_version: _, ...summary } = yield* summaries.of(view)
    const running = yield* config.current
    const { session_id } = summary
    const found = session_id === null ? undefined : yield* Effect.result(databaseDefect(events.state(session_id)))
    const state = found === undefined ? undefined : Result.getOrUndefined(found)
    const unreadable = found !== undefined && Result.isFailure(found) ? found.failure.message : null
    const row = session_id === null ? undefined : Option.getOrUndefined(yield* databaseDefect(sessions.get(session_id)))
    return {
      ...summary,
      lanes: state === undefined || view.status === "stopped" ? [] : laneRows(state),
      budgets: budgetRows(state, running.config.budgets, unpricedOf(running.config, view)),
      leases: (yield* databaseDefect(leases.all)).flatMap(({ agent_id: holder, kind, name }) =>
        holder === agent_id ? [{ kind, name }] : []
      ),
      resource_bindings: view.bindings ?? row?.resource_bindings ?? null,
      last_rev: row?.last_rev ?? 0,
      acked_rev: state?.rev ?? 0,
      approvals_pending: (yield* approvals.pending).get(agent_id) ?? 0,
      reason: view.reason ?? row?.frozen_reason ?? unreadable
    }
  })
})

/** The steps of a build. */
const makeBuild = Effect.gen(function* () {
  const images = yield* Images
  const imageSources = yield* makeImageSources
  const lifecycle = yield* Lifecycle
  return Effect.fn("OperatorApi.build")(function* (agent_id: AgentId, force: boolean) {
    const view = yield* Effect.mapError(lifecycle.view(agent_id), fromAgentRefused)
    const sources = yield* imageSources(agent_id, view)
    return progressStream((progress) =>
      Effect.match(images.build(agent_id, sources, { force, in_use: mounted(view), progress }), {
        onSuccess: (built) => ({ type: "done" as const, result: { agent_id, ...built } }),
        onFailure: (error) => ({ type: "failed" as const, error: refusedBuild(error) })
      })
    )
  })
})

type AgentAction = "agent.start" | "agent.stop" | "agent.restart"

/** Makes what audits an operator's order to an agent, whatever comes of it. */
const makeAudited = Effect.map(
  Audit,
  (audit) =>
    <A>(action: AgentAction, agent_id: AgentId, work: Effect.Effect<A, AgentRefused>) =>
      Effect.onExit(work, (exit) => {
        const failure = Option.getOrUndefined(Exit.findErrorOption(exit))
        const detail = failure === undefined ? {} : { refused: failure.kind }
        return audit.record({ who: "operator", action, agent_id, detail })
      })
)

export const layerOperatorAgents = HttpApiBuilder.group(
  OperatorApi,
  "agents",
  Effect.fnUntraced(function* (handlers) {
    const config = yield* ConfigStore
    const lifecycle = yield* Lifecycle
    const models = yield* Models
    const summaries = yield* AgentSummaries
    const detail = yield* makeDetail
    const build = yield* makeBuild
    const audited = yield* makeAudited
    const changed = (action: AgentAction, agent_id: AgentId, change: Effect.Effect<AgentView, AgentRefused>) =>
      Effect.flatMap(Effect.mapError(audited(action, agent_id, change), fromAgentRefused), summaries.of)
    return handlers.handleAll({
      list: () => Effect.flatMap(lifecycle.list, (views) => Effect.forEach(views, summaries.of)),
      status: ({ params }) => detail(params.id),
      build: ({ params, payload }) => build(params.id, payload.force ?? false),
      start: ({ params, payload }) => changed("agent.start", params.id, lifecycle.start(params.id, payload)),
      stop: ({ params }) => changed("agent.stop", params.id, lifecycle.stop(params.id)),
      restart: Effect.fn("OperatorApi.restart")(function* ({ params, payload }) {
        const restart = audited("agent.restart", params.id, lifecycle.restart(params.id, payload))
        const view = yield* Effect.mapError(restart, fromAgentRefused)
        const agent = (yield* config.current).config.agents[params.id]
        const keeps = agent === undefined || view.bindings === null ? [] : keptOf(view.bindings, agent)
        return { ...(yield* summaries.of(view)), keeps }
      }),
      models: ({ params }) => Effect.mapError(models.get(params.id), fromAgentRefused),
      setModels: ({ params, payload }) => Effect.mapError(models.set(params.id, "operator", payload), fromAgentRefused)
    })
  })
)
