/**
 * The bindings of every start and every restart. They are made here alone, so that no way to start an agent leaves out one of its DMs or
 * another binding that it had.
 */
import { Effect, Option, Result } from "effect"
import type { RestartAgent, StartAgent } from "#schema/AgentsApi.ts"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import { boundDms, DMS_PER_AGENT_MAX, type RunBindings } from "#schema/ResourceBindings.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { AgentRefused, notReady } from "./AgentRefused.ts"
import { AgentViews } from "./AgentViews.ts"
import { type BindingProblem, bindingsAsBefore, bindingsOf, type Rebound, restartBindings } from "./bindings.ts"
import { makeKnown } from "./knownAgent.ts"
import { exclusive, Leases } from "./Leases.ts"
import { checkResources } from "./prepareStart.ts"
import { runServices } from "./RunContext.ts"

export const makeStartBindings = Effect.gen(function* () {
  const known = yield* makeKnown
  const leases = yield* Leases
  const services = yield* runServices
  const sessions = yield* SessionStore
  const views = yield* AgentViews

  const usable = (agent_id: AgentId, made: Result.Result<RunBindings, BindingProblem>) =>
    Result.isSuccess(made)
      ? Effect.succeed(made.success)
      : Effect.fail(new AgentRefused({ kind: "NOT_READY", agent_id, ...made.failure }))

  const lastRun = Effect.fnUntraced(function* (agent_id: AgentId) {
    return Option.getOrUndefined(yield* databaseDefect(sessions.latest(agent_id)))?.resource_bindings
  })

  const isHeld = (agent_id: AgentId, dm: ResourceName) =>
    Effect.map(databaseDefect(leases.all), (rows) =>
      rows.some(({ agent_id: holder, kind, name }) => kind === "dm" && name === dm && holder !== agent_id)
    )

  return {
    /** The names that a person gives, and the agent's defaults for the rest. */
    named: Effect.fnUntraced(function* (agent_id: AgentId, named: StartAgent) {
      const { agent, config } = yield* known(agent_id)
      return yield* usable(agent_id, bindingsOf(config, agent_id, agent, named))
    }),
    /** The resources of an earlier run, but for those that come from the defaults again. */
    asBefore: Effect.fnUntraced(function* (agent_id: AgentId, before: RunBindings, rebound?: Rebound) {
      const { agent, config } = yield* known(agent_id)
      return yield* usable(agent_id, bindingsAsBefore(config, agent_id, agent, before, rebound))
    }),
    /**
     * The names of the last start and of this one, and the defaults for the rest. The chat is bound as well, so that its person is
     * answered; a chat that talks to another agent stays with that one.
     */
    inChat: Effect.fnUntraced(function* (agent_id: AgentId, dm: ResourceName, named: RestartAgent) {
      const { agent, config } = yield* known(agent_id)
      const bindings = yield* lastRun(agent_id)
      const bind = (options: RestartAgent) =>
        bindings === undefined
          ? bindingsOf(config, agent_id, agent, options)
          : restartBindings(config, agent_id, agent, { bindings, defaults: agent.defaults }, options)
      const made = bind(named)
      const dms = Result.isSuccess(made) ? boundDms(made.success) : []
      const has = named.dm !== undefined || dms.includes(dm) || dms.length >= DMS_PER_AGENT_MAX
      if (has || (yield* isHeld(agent_id, dm))) return yield* usable(agent_id, made)
      return yield* usable(agent_id, bind({ ...named, dm: [...dms, dm] }))
    }),
    /** The bindings of a restart. They are checked while the agent still runs, so that one that could not come up again is not stopped. */
    again: Effect.fnUntraced(function* (
      agent_id: AgentId,
      bindings: RunBindings,
      options: RestartAgent,
      rebound?: Rebound
    ) {
      const { agent, config } = yield* known(agent_id)
      const defaults = views.of(agent_id).started_with?.agents[agent_id]?.defaults ?? agent.defaults
      const made = restartBindings(config, agent_id, agent, { bindings, defaults }, options, rebound)
      const next = yield* usable(agent_id, made)
      yield* Effect.provideContext(checkResources(config, agent_id, next), services)
      yield* Effect.catchTag(
        databaseDefect(leases.requireFree(agent_id, exclusive(config, agent_id, next))),
        "ResourceHeld",
        ({ hint, message }) => notReady(agent_id, message, hint)
      )
      return next
    })
  }
})
