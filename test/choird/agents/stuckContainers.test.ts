import { assert, describe, layer } from "@effect/vitest"
import { Effect, Exit, Option, Scope } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { ContainerError, type HostContainerId } from "#src/choird/runtime/ContainerRuntime.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { beginLife, database, LIVE, makeAgentHome } from "../../support/choird.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

type Life = Effect.Success<ReturnType<typeof beginLife>>

const leasesOf = ({ within }: Life, agent_id: AgentId) =>
  Effect.map(within(Effect.flatMap(Leases, (leases) => leases.all)), (all) =>
    all.filter((lease) => lease.agent_id === agent_id).map(({ kind }) => kind)
  )

const pidOf = ({ within }: Life, agent_id: AgentId) =>
  Effect.map(within(Effect.flatMap(SessionStore, (sessions) => sessions.latest(agent_id))), (latest) => {
    const { container } = Option.getOrThrow(latest)
    return (container as unknown as HostContainerId).processes[0]?.pid ?? 0
  })

describe("a container that does not die", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("keeps the resources of its agent until it is gone, over a restart of choird too (E8)", () =>
      Effect.gen(function* () {
        const { agent_id, home } = yield* makeAgentHome()
        const stuck = new ContainerError({ reason: "stuck", problem: "it is still there", fix: "look" })
        const first = yield* beginLife(home, (runtime) => ({
          ...runtime,
          start: (spec) => Effect.map(runtime.start(spec), (container) => ({ ...container, kill: Effect.fail(stuck) }))
        }))
        yield* first.lifecycle.start(agent_id, {})
        const leased = yield* leasesOf(first, agent_id)
        process.kill(yield* pidOf(first, agent_id), "SIGKILL")
        yield* first.views.first((view) => view.status === "crashed")
        assert.deepStrictEqual(yield* leasesOf(first, agent_id), leased)
        yield* Scope.close(first.scope, Exit.void)

        const second = yield* beginLife(home, (runtime) => ({ ...runtime, reap: () => Effect.fail(stuck) }))
        yield* second.lifecycle.recover
        assert.deepStrictEqual(yield* leasesOf(second, agent_id), leased)
        yield* Scope.close(second.scope, Exit.void)

        const third = yield* beginLife(home)
        yield* third.lifecycle.recover
        assert.deepStrictEqual(yield* leasesOf(third, agent_id), [])
      })
    )
  })
})
