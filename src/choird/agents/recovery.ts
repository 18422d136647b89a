/**
 * Recovers the agents of an earlier choird at start: ends their containers by identity, frees what nobody uses any more, and resumes
 * what was active (docs/protocol.md, Recovery).
 */
import { Effect, Option, Result, Schema } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { ContainerId, ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { makeReapContainer } from "./prepareStart.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Leases } from "./Leases.ts"
import type { RunRequest } from "./RunContext.ts"
import { REAPS_IN_FLIGHT_MAX } from "#src/choird/runtime/docker/removeContainer.ts"

const decodeContainer = Schema.decodeUnknownOption(ContainerId)

/** Removes what is left of a session's container, and says whether it is gone. Until it is, its agent cannot start; each start tries again. */
const reap = Effect.fnUntraced(function* (row: SessionRow) {
  const reapContainer = yield* makeReapContainer
  const reaped = yield* Effect.result(reapContainer(row))
  if (Result.isFailure(reaped))
    yield* Effect.logError(reaped.failure.message, { agent_id: row.agent_id, session_id: row.session_id })
  return Result.isSuccess(reaped)
})

/** An active session's container of the engine may still have events; its run takes them and ends it. */
const isHeard = ({ container }: SessionRow) =>
  Option.exists(decodeContainer(container), ({ type }) => type === "docker")

/**
 * Agents without an active session that hold leases. Those whose session is at its budget still await a message (D19); the others give
 * them up, unless the container for which they were kept is still there (E8).
 */
const awaitingRuns = Effect.fnUntraced(function* (active: ReadonlySet<AgentId>) {
  const leases = yield* Leases
  const sessions = yield* SessionStore
  const holders = new Set((yield* leases.all).map(({ agent_id }) => agent_id))
  const awaiting: Array<SessionRow> = []
  for (const agent_id of holders) {
    if (active.has(agent_id)) continue
    const latest = yield* sessions.latest(agent_id)
    if (latest._tag === "Some" && latest.value.status === "closed") awaiting.push(latest.value)
    else if (Option.isNone(latest) || (yield* reap(latest.value))) yield* leases.release(agent_id)
  }
  return awaiting
})

/** Every container of the host's own runtimes is gone when this returns; the agents come up afterwards, independently of each other. */
export const recoverRuns = Effect.fn("Lifecycle.recover")(function* (
  launch: (request: RunRequest) => Effect.Effect<void>
) {
  const leases = yield* Leases
  const runtime = yield* ContainerRuntime
  const sessions = yield* SessionStore
  const { config: running } = yield* (yield* ConfigStore).current
  const rows = yield* sessions.active
  yield* runtime.sweep(rows.flatMap(({ container }) => Option.toArray(decodeContainer(container))))
  const ended = rows.filter((row) => !isHeard(row))
  yield* Effect.forEach(ended, (row) => reap(row), { concurrency: REAPS_IN_FLIGHT_MAX, discard: true })
  const awaiting = yield* awaitingRuns(new Set(rows.map(({ agent_id }) => agent_id)))
  const runs = [...rows.map((row) => ({ row, awaiting: false })), ...awaiting.map((row) => ({ row, awaiting: true }))]
  for (const { awaiting, row } of runs) {
    const { agent_id, resource_bindings: bindings, session_id } = row
    if (Object.hasOwn(running.agents, agent_id)) {
      yield* Effect.logInfo(awaiting ? "a message will start the agent" : "the agent is resumed", {
        agent_id,
        session_id
      })
      yield* launch({
        agent_id,
        bindings,
        fresh: false,
        awaiting,
        unattended: true,
        ...(awaiting ? {} : { adopted: row })
      })
      continue
    }
    yield* Effect.logWarning("config.json no longer has this agent: its session is stopped", { agent_id, session_id })
    if (!awaiting) yield* sessions.end(session_id, "stopped")
    yield* leases.release(agent_id)
  }
})
