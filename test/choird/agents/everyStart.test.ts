/** Every way in which an agent is started again, with three DMs that its start named while its defaults have one. */
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Option, Scope } from "effect"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { Workspaces } from "#src/choird/agents/Workspaces.ts"
import type { ApprovalRow } from "#src/choird/approvals/approvalRows.ts"
import { AgentSteps } from "#src/choird/proposals/AgentSteps.ts"
import { ProofOfApproval } from "#src/choird/approvals/ProofOfApproval.ts"
import type { HostContainerId } from "#src/choird/runtime/ContainerRuntime.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { beginLife, database, LIVE, makeAgentHome, makeImage } from "../../support/choird.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

type Life = Effect.Success<ReturnType<typeof beginLife>>

const [DESK, HALL, PORCH, LARGE, MAIN] = ["desk", "hall", "porch", "large", "main"].map((name) =>
  ResourceName.make(name)
) as [ResourceName, ResourceName, ResourceName, ResourceName, ResourceName]
const DMS = [HALL, PORCH, DESK]
const OTHER = AgentId.make("other")

/** An agent whose defaults name `desk` alone, and another one in `porch`. */
const makeHome = makeAgentHome((_, { agents, dms, models }) => ({
  dms: { ...(dms as object), porch: { gateway: "terminal", user_id: "third" } },
  models: { ...(models as object), large: { provider: "test", model: "l", endpoint: "http://127.0.0.1:1" } },
  agents: {
    ...(agents as object),
    other: { repo: { url: "/srv/b" }, defaults: { workspace: "spare", llm: "small", dm: "porch" } }
  }
}))

const rowOf = (life: Life, agent_id: AgentId) =>
  Effect.map(life.within(Effect.flatMap(SessionStore, (sessions) => sessions.latest(agent_id))), Option.getOrThrow)

const dmsHeld = (life: Life, agent_id: AgentId) =>
  Effect.map(life.within(Effect.flatMap(Leases, (leases) => leases.all)), (all) =>
    all.flatMap((row) => (row.agent_id === agent_id && row.kind === "dm" ? [row.name] : []))
  )

/** Fails unless the agent runs with all that its start named. */
const keepsAll = Effect.fnUntraced(function* (life: Life, agent_id: AgentId, way: string) {
  const { bindings, status } = yield* life.lifecycle.view(agent_id)
  const stored = (yield* rowOf(life, agent_id)).resource_bindings
  for (const found of [bindings, stored])
    assert.deepInclude(found as object, { dm: HALL, dms: DMS, llm: LARGE, explicit: ["llm", "dm"] }, way)
  assert.strictEqual(status, "running", way)
  assert.sameMembers(yield* dmsHeld(life, agent_id), DMS, way)
})

/** The step of an approved proposal that puts the agent on its new image. */
const approvedChange = Effect.fnUntraced(function* (life: Life, home: string, agent_id: AgentId) {
  const image_version = yield* makeImage(home, agent_id, "changed")
  const { session_id } = yield* rowOf(life, agent_id)
  const row = { agent_id, session_id, status: "approved" } as ApprovalRow
  const approved = ProofOfApproval.of(row) ?? assert.fail("a row in approved makes a proof")
  const steps = yield* life.within(Effect.map(Layer.build(AgentSteps.layer), Context.get(AgentSteps)))
  const next = yield* steps.afterChange(approved, { image_version }, "built")
  if (next.type !== "next") return assert.fail(next.outcome)
  yield* steps.update(approved, next.standing.job, new Set())
  assert.strictEqual((yield* life.lifecycle.view(agent_id)).image_version, image_version)
})

describe("an agent with three DMs", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("keeps them and its other bindings, in whatever way it is started again", () =>
      Effect.gen(function* () {
        const { agent_id, home } = yield* makeHome
        const first = yield* beginLife(home)
        const { lifecycle, views } = first
        yield* lifecycle.start(agent_id, { llm: LARGE, dm: DMS })
        yield* keepsAll(first, agent_id, "start")

        yield* approvedChange(first, home, agent_id)
        yield* keepsAll(first, agent_id, "an approved change")
        yield* lifecycle.restart(agent_id)
        yield* keepsAll(first, agent_id, "restart")

        const { epoch } = yield* lifecycle.view(agent_id)
        const container = (yield* rowOf(first, agent_id)).container as unknown as HostContainerId
        yield* Effect.sync(() => process.kill(container.processes[0]?.pid ?? 0, "SIGKILL"))
        yield* views.first((view) => view.status === "running" && view.epoch > epoch)
        yield* keepsAll(first, agent_id, "crash")

        assert.isTrue(yield* lifecycle.pause(agent_id, "a test"))
        assert.isTrue(yield* lifecycle.wake(agent_id))
        yield* keepsAll(first, agent_id, "pause")

        const workspaces = yield* first.within(Effect.map(Layer.build(Workspaces.layer), Context.get(Workspaces)))
        yield* workspaces.reset(MAIN)
        yield* lifecycle.startInChat(agent_id, PORCH, {})
        yield* keepsAll(first, agent_id, "reset of its workspace, and /start")

        yield* lifecycle.stop(agent_id)
        yield* lifecycle.startAsBefore(agent_id, (yield* rowOf(first, agent_id)).resource_bindings)
        yield* keepsAll(first, agent_id, "session resume")

        yield* Scope.close(first.scope, Exit.void)
        const second = yield* beginLife(home)
        yield* second.lifecycle.recover
        yield* second.views.first((view) => view.status === "running")
        yield* keepsAll(second, agent_id, "a death of choird")
      })
    )

    it.effect("is started from a chat in its own DMs and that one, unless the chat talks to another agent", () =>
      Effect.gen(function* () {
        const { agent_id, home } = yield* makeHome
        yield* makeImage(home, OTHER)
        const life = yield* beginLife(home)
        const { lifecycle } = life
        yield* lifecycle.startInChat(agent_id, HALL, { llm: LARGE })
        assert.deepInclude((yield* lifecycle.view(agent_id)).bindings as object, { dms: [DESK, HALL], llm: LARGE })
        yield* lifecycle.stop(agent_id)
        yield* lifecycle.startInChat(OTHER, HALL, {})
        assert.deepInclude((yield* lifecycle.view(OTHER)).bindings as object, { dms: [PORCH, HALL] })
        // Its last run had the chat, which now talks to somebody else.
        const { kind, reason } = yield* Effect.flip(lifecycle.startInChat(agent_id, DESK, {}))
        assert.deepStrictEqual([kind, reason], ["NOT_READY", 'the DM "hall" is leased by the agent "other"'])
        yield* lifecycle.startInChat(agent_id, HALL, { dm: DESK })
        assert.deepInclude((yield* lifecycle.view(agent_id)).bindings as object, { dms: [DESK] })
      })
    )

    it.effect("is not stopped for a restart whose DM another agent holds", () =>
      Effect.gen(function* () {
        const { agent_id, home } = yield* makeHome
        yield* makeImage(home, OTHER)
        const life = yield* beginLife(home)
        const { lifecycle } = life
        yield* lifecycle.start(agent_id, { dm: [DESK, HALL] })
        const { epoch } = yield* lifecycle.start(OTHER, {})
        const refused = yield* Effect.flip(lifecycle.restart(OTHER, { dm: HALL }))
        assert.deepStrictEqual(
          [refused.kind, refused.reason],
          ["NOT_READY", `the DM "hall" is leased by the agent "${agent_id}"`]
        )
        assert.deepInclude(yield* lifecycle.view(OTHER), { status: "running", epoch })
        assert.deepStrictEqual(yield* dmsHeld(life, OTHER), [PORCH])
      })
    )
  })
})
