/** Resuming a session by its id: only an agent's newest one goes on, since the later ones know more (D19). */
import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { Config } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import { explicitOf, type StartOptions } from "#src/choird/agents/bindings.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { SessionUnknown } from "#src/choird/sessions/EventStore.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { conflict, fromAgentRefused, fromSessionUnknown } from "#src/choird/api/refusals.ts"

/** Why it does not go on; what else hinders a start, the start itself says. */
const refusal = ({ agent_id, session_id, status }: SessionRow, latest: SessionRow) => {
  if (latest.session_id !== session_id)
    return conflict(
      "NOT_LATEST",
      `${agent_id} has run in ${latest.session_id} since, and only an agent's newest session goes on`,
      `choirctl session resume ${latest.session_id}`
    )
  return status === "closed"
    ? conflict(
        "CLOSED",
        `the session ${session_id} reached its budget and is never resumed`,
        `choirctl agent start ${agent_id}`
      )
    : undefined
}

/** On the resources that the session had. Which model core jobs use, the agent's defaults say where the start did not. */
const asBefore = ({ resource_bindings }: SessionRow, agent: Config["agents"][AgentId] | undefined): StartOptions => {
  const { core_llm, dms: _, ...bindings } = resource_bindings
  const dm = boundDms(resource_bindings)
  if (agent === undefined) return { ...bindings, dm }
  const explicit = explicitOf(resource_bindings, agent.defaults)
  return { ...bindings, ...(explicit.includes("core_llm") ? { core_llm } : {}), dm, explicit }
}

export const layerOperatorResume = HttpApiBuilder.group(
  OperatorApi,
  "resume",
  Effect.fnUntraced(function* (handlers) {
    const lifecycle = yield* Lifecycle
    const sessions = yield* SessionStore
    const store = yield* ConfigStore
    return handlers.handleAll({
      resume: Effect.fn("OperatorApi.resumeSession")(function* ({ params: { id: session_id } }) {
        const found = yield* sessions.get(session_id)
        if (Option.isNone(found)) return yield* fromSessionUnknown(new SessionUnknown({ session_id }))
        const row = found.value
        const latest = Option.getOrElse(yield* sessions.latest(row.agent_id), () => row)
        const refused = refusal(row, latest)
        if (refused !== undefined) return yield* refused
        const { config } = yield* store.current
        const { agent_id, epoch } = yield* Effect.mapError(
          lifecycle.start(row.agent_id, asBefore(row, config.agents[row.agent_id])),
          fromAgentRefused
        )
        return { session_id, agent_id, epoch }
      })
    })
  })
)
