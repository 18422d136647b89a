import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Option, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { CgroupName } from "#src/choird/runtime/Cgroups.ts"
import type { HostContainerId } from "#src/choird/runtime/ContainerRuntime.ts"
import { bootId, statOf } from "#src/choird/runtime/ProcessIdentity.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { beginLife, database, LIVE, makeAgentHome, makeImage } from "../../support/choird.ts"
import { isGone } from "../runtime/rig.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

type Life = Effect.Success<ReturnType<typeof beginLife>>

/** How long an agent may be silent where a test waits for it. */
const silent = () => ({ crash_detection_threshold_ms: 10_000 })

const setUpOf = Effect.fnUntraced(function* (also?: typeof silent) {
  const home = yield* makeAgentHome(also)
  return { ...home, ...(yield* beginLife(home.home)) }
})
const setUp = setUpOf()

const sessionOf = (life: Pick<Life, "within">, agent_id: AgentId) =>
  life.within(Effect.flatMap(SessionStore, (sessions) => sessions.latest(agent_id))).pipe(Effect.map(Option.getOrThrow))

/** What was refused about an agent, in order (R77). */
const refusalsOf = (life: Pick<Life, "within">, agent_id: AgentId) =>
  Effect.map(life.within(Effect.flatMap(Audit, (audit) => audit.last({ count: 100, agent_id }))), (rows) =>
    rows.map(({ action, detail, who }) => `${who} ${action} ${(detail as { readonly refused?: string }).refused}`)
  )

const pidOf = (life: Pick<Life, "within">, agent_id: AgentId) =>
  Effect.map(
    sessionOf(life, agent_id),
    ({ container }) => (container as unknown as HostContainerId).processes[0]?.pid ?? 0
  )

const leasesOf = (life: Pick<Life, "within">, agent_id: AgentId) =>
  life.within(
    Effect.map(
      Effect.flatMap(Leases, (leases) => leases.all),
      (all) => all.filter((lease) => lease.agent_id === agent_id).map(({ kind }) => kind)
    )
  )

/** A process that looks like what is left of a container. */
const stray = Effect.fnUntraced(function* (workspace: string) {
  const { pid = 0 } = spawn("sleep", ["1000"], { detached: true, stdio: "ignore", cwd: workspace })
  const stat = yield* statOf(pid)
  const cgroup = CgroupName.make("choir-stray-1")
  const processes = [{ pid, start: stat?.start ?? "" }]
  return { type: "process", boot_id: yield* bootId, processes, cgroup, workspace } satisfies HostContainerId
})

describe("Lifecycle", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("starts an agent, answers a message, and stops it with nothing left but its session", () =>
      Effect.gen(function* () {
        const life = yield* setUp
        const { agent_id, home, lifecycle, views } = life
        const running = yield* lifecycle.start(agent_id, {})
        assert.deepInclude(running, { status: "running", epoch: 1, reason: null })
        assert.deepStrictEqual((yield* leasesOf(life, agent_id)).sort(), ["browser", "dm", "workspace"])
        yield* life.say(agent_id, "hello")
        yield* life.told(agent_id, /^1: hello$/u)
        const pid = yield* pidOf(life, agent_id)
        const stopped = yield* lifecycle.stop(agent_id)
        assert.deepInclude(stopped, { status: "stopped", session_id: null, bindings: null })
        assert.isTrue(yield* isGone(pid))
        assert.isFalse(existsSync(join(home, "socks", "agents", running.session_id ?? "")))
        assert.deepStrictEqual(yield* leasesOf(life, agent_id), [])
        assert.deepInclude(yield* sessionOf(life, agent_id), { status: "stopped", last_rev: 3 })
        assert.deepStrictEqual(
          (yield* views.all).map(({ status }) => status).filter((status, at, all) => status !== all[at - 1]),
          ["starting", "running", "stopping", "stopped"]
        )
      })
    )

    it.effect("resumes the same session in the next epoch, and starts a new one with fresh (D19, E13)", () =>
      Effect.gen(function* () {
        const life = yield* setUp
        const { agent_id, lifecycle } = life
        const first = yield* lifecycle.start(agent_id, {})
        yield* lifecycle.stop(agent_id)
        const second = yield* lifecycle.start(agent_id, {})
        assert.deepInclude(second, { session_id: first.session_id, epoch: 2 })
        const third = yield* lifecycle.restart(agent_id)
        assert.deepInclude(third, { session_id: first.session_id, epoch: 3 })
        yield* lifecycle.stop(agent_id)
        const fresh = yield* lifecycle.start(agent_id, { fresh: true })
        assert.notStrictEqual(fresh.session_id, first.session_id)
        assert.strictEqual(fresh.epoch, 1)
      })
    )

    it.effect("tells flags from defaults in a session that an earlier version stored", () =>
      Effect.gen(function* () {
        const agentHome = yield* makeAgentHome((_, { models, workspaces }) => ({
          models: { ...(models as object), large: { provider: "test", model: "l", endpoint: "http://127.0.0.1:1" } },
          workspaces
        }))
        const { agent_id, home, write } = agentHome
        const config = JSON.parse(readFileSync(join(home, "config.json"), "utf8"))
        const first = yield* beginLife(home)
        const [large, desk] = [ResourceName.make("large"), ResourceName.make("desk")]
        yield* first.lifecycle.start(agent_id, { llm: large, dm: desk })
        yield* Scope.close(first.scope, Exit.void)
        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE choir_control.sessions SET resource_bindings = resource_bindings - 'explicit' - 'dms'
          WHERE agent_id = ${agent_id}`

        const second = yield* beginLife(home)
        yield* second.lifecycle.recover
        yield* second.views.first((view) => view.status === "running")
        const store = yield* second.within(ConfigStore)
        const defaults = { workspace: "spare", llm: "small", dm: ["hall", "desk"] }
        const agents = { [agent_id]: { ...config.agents[agent_id], defaults } }
        write("config.json", { ...config, agents })
        const configuration = yield* second.within(Reconfiguration)
        yield* configuration.load("tester", () => Effect.void)
        yield* configuration.apply("tester")
        assert.strictEqual((yield* store.current).config.agents[agent_id]?.defaults.workspace, "spare")
        const { bindings } = yield* second.lifecycle.restart(agent_id)
        assert.deepInclude(bindings as object, {
          workspace: "spare",
          llm: "large",
          dms: ["hall", "desk"],
          explicit: ["llm"]
        })
      })
    )

    it.effect("restarts an agent to the end, also when the client that asked has left meanwhile", () =>
      Effect.gen(function* () {
        const { agent_id, lifecycle, views } = yield* setUp
        yield* lifecycle.start(agent_id, {})
        const asking = yield* Effect.forkChild(lifecycle.restart(agent_id))
        yield* views.first(({ status }) => status === "stopping")
        yield* Fiber.interrupt(asking)
        const again = yield* views.first(({ epoch, status }) => status === "running" && epoch === 2)
        assert.deepStrictEqual(yield* lifecycle.view(agent_id), again)
      })
    )

    it.effect("is one instance, however many starts are asked for at once (invariant 11)", () =>
      Effect.gen(function* () {
        const { agent_id, lifecycle } = yield* setUp
        const all = yield* Effect.all(
          Array.from({ length: 5 }, () => Effect.result(lifecycle.start(agent_id, {}))),
          { concurrency: 5 }
        )
        assert.strictEqual(all.filter((one) => one._tag === "Success").length, 1)
        const kinds = all.flatMap((one) => (one._tag === "Failure" ? [one.failure.kind] : []))
        assert.deepStrictEqual([...new Set(kinds)], ["ALREADY_RUNNING"])
      })
    )

    it.effect("tells why an agent does not start: it ends early, or the operator stops it", () =>
      Effect.gen(function* () {
        const life = yield* setUp
        const { agent_id, home, lifecycle, script, views } = life
        script("exit")
        const early = yield* Effect.flip(lifecycle.start(agent_id, {}))
        assert.match(`${early.kind} ${early.reason}`, /^START_FAILED .*exited with code 3/u)
        assert.deepStrictEqual(yield* leasesOf(life, agent_id), [])
        assert.strictEqual((yield* sessionOf(life, agent_id)).status, "crashed")
        script("mute")
        const starting = yield* Effect.forkChild(Effect.flip(lifecycle.start(agent_id, {})), { startImmediately: true })
        const { session_id } = yield* views.first((view) => view.status === "starting" && view.epoch === 2)
        const stopped = yield* lifecycle.stop(agent_id)
        assert.strictEqual(stopped.status, "stopped")
        assert.match((yield* Fiber.join(starting)).reason, /stopped while it started/u)
        assert.isFalse(existsSync(join(home, "socks", "agents", session_id ?? "")))
      })
    )

    it.effect("restarts a killed agent at once in a new epoch, and fences the old token (R7, R8, D8)", () =>
      Effect.gen(function* () {
        const life = yield* setUp
        const { agent_id, lifecycle, views } = life
        const first = yield* lifecycle.start(agent_id, {})
        yield* life.say(agent_id, "one")
        yield* life.told(agent_id, /^1: one$/u)
        const leased = yield* leasesOf(life, agent_id)
        const pid = yield* pidOf(life, agent_id)
        const tokens = yield* life.within(Tokens)
        const caller = { session_id: first.session_id!, agent_id, epoch: 1, standing: "current" as const }
        const old = yield* tokens.lease(caller)
        process.kill(pid, "SIGKILL")
        const again = yield* views.first((view) => view.status === "running" && view.epoch === 2)
        assert.strictEqual(again.session_id, first.session_id)
        assert.isTrue(yield* isGone(pid))
        assert.deepInclude(Option.getOrThrow(yield* tokens.identify(old)), { epoch: 1, standing: "superseded" })
        assert.deepStrictEqual(yield* leasesOf(life, agent_id), leased)
        yield* life.say(agent_id, "two")
        yield* life.told(agent_id, /^2: two$/u)
        const events = yield* life.within(EventStore)
        assert.deepInclude(yield* events.verify(first.session_id!), { ok: true, events: 6 })
      })
    )

    it.effect("finds an agent that hangs by its silence and restarts it (R7)", () =>
      Effect.gen(function* () {
        const life = yield* setUpOf(silent)
        const { agent_id, lifecycle, views } = life
        yield* lifecycle.start(agent_id, {})
        const pid = yield* pidOf(life, agent_id)
        process.kill(pid, "SIGSTOP")
        yield* views.first((view) => view.status === "running" && view.epoch === 2)
        assert.isTrue(yield* isGone(pid))
      })
    )

    it.effect("takes a hung agent's token at once, and begins nothing before what holds it can end it (R8, D8)", () =>
      Effect.gen(function* () {
        const engine = yield* Deferred.make<void>()
        const home = yield* makeAgentHome(silent)
        const { agent_id } = home
        const life = yield* beginLife(home.home, (runtime) => ({
          ...runtime,
          start: (spec) =>
            Effect.map(runtime.start(spec), (container) => ({
              ...container,
              kill: Effect.andThen(Deferred.await(engine), container.kill)
            }))
        }))
        const { lifecycle, views } = life
        yield* Effect.addFinalizer(() => Deferred.succeed(engine, undefined))
        const first = yield* lifecycle.start(agent_id, {})
        const leased = yield* leasesOf(life, agent_id)
        const pid = yield* pidOf(life, agent_id)
        process.kill(pid, "SIGSTOP")
        const tokens = yield* life.within(Tokens)
        const caller = { session_id: first.session_id!, agent_id, epoch: 1, standing: "current" as const }
        const old = yield* tokens.lease(caller)
        const waits = yield* views.first((view) => /its container is not gone yet/u.test(view.reason ?? ""))
        assert.deepStrictEqual([waits.status, waits.epoch], ["starting", 1])
        assert.match(waits.reason ?? "", /^it was silent for \d+ ms; its container is paused; its token is no/u)
        assert.deepInclude(Option.getOrThrow(yield* tokens.identify(old)), { epoch: 1, standing: "superseded" })
        assert.deepStrictEqual(yield* leasesOf(life, agent_id), leased)
        assert.strictEqual((yield* Effect.flip(lifecycle.start(agent_id, {}))).kind, "ALREADY_RUNNING")
        assert.strictEqual((yield* sessionOf(life, agent_id)).epoch, 1)
        assert.isFalse(yield* isGone(pid))
        yield* Deferred.succeed(engine, undefined)
        yield* views.first((view) => view.status === "running" && view.epoch === 2)
        assert.isTrue(yield* isGone(pid))
        assert.deepStrictEqual(yield* leasesOf(life, agent_id), leased)
      })
    )

    it.effect("gives up after three crashes, says so to the DM, and starts again when asked (R9)", () =>
      Effect.gen(function* () {
        const life = yield* setUp
        const { agent_id, lifecycle, views } = life
        yield* lifecycle.start(agent_id, {})
        // The message stays unacknowledged, so that each epoch meets it again.
        yield* life.say(agent_id, "crash")
        const last = yield* views.first((view) => view.status === "crashed")
        assert.match(last.reason ?? "", /^it crashed 3 times in 5 minutes; the last time it exited with code 9$/u)
        yield* life.told(agent_id, /stopped working: it crashed 3 times.*To start me again: choirctl agent start/u)
        assert.deepStrictEqual(yield* refusalsOf(life, agent_id), ["choird agent.restart BREAKER"])
        assert.deepInclude(yield* sessionOf(life, agent_id), { status: "crashed", epoch: 3 })
        assert.deepStrictEqual(yield* leasesOf(life, agent_id), [])
        life.script("mute")
        yield* Effect.forkChild(lifecycle.start(agent_id, {}))
        yield* views.first((view) => view.status === "starting" && view.epoch === 4)
      })
    )

    it.effect("never restarts a frozen session, and asks for fresh (D4)", () =>
      Effect.gen(function* () {
        const life = yield* setUp
        const { agent_id, lifecycle, views } = life
        const first = yield* lifecycle.start(agent_id, {})
        yield* life.say(agent_id, "rewrite")
        const frozen = yield* views.first((view) => view.status === "crashed")
        assert.match(frozen.reason ?? "", /its session is frozen: /u)
        yield* life.told(agent_id, /stopped working: its session is frozen/u)
        const refusals = yield* refusalsOf(life, agent_id)
        assert.deepStrictEqual(refusals, [`agent:${agent_id} rpc.HEARTBEAT CONFLICT`, "choird agent.restart FROZEN"])
        const refused = yield* Effect.flip(lifecycle.start(agent_id, {}))
        assert.match(`${refused.kind} ${refused.hint}`, /^FROZEN .*--fresh/u)
        life.script("mute")
        yield* Effect.forkChild(lifecycle.start(agent_id, { fresh: true }))
        const fresh = yield* views.first((view) => view.status === "starting" && view.session_id !== null, 4)
        assert.notStrictEqual(fresh.session_id, first.session_id)
      })
    )

    it.effect(
      "closes a session at its budget, keeps its leases, and starts a fresh one with the queued message (D19)",
      () =>
        Effect.gen(function* () {
          const life = yield* setUp
          const { agent_id, lifecycle, views } = life
          const first = yield* lifecycle.start(agent_id, {})
          yield* life.say(agent_id, "budget")
          const waiting = yield* views.first((view) => /session has ended/u.test(view.reason ?? ""))
          assert.deepInclude(waiting, { status: "running", session_id: null })
          assert.strictEqual((yield* sessionOf(life, agent_id)).status, "closed")
          assert.deepStrictEqual((yield* leasesOf(life, agent_id)).sort(), ["browser", "dm", "workspace"])
          yield* life.say(agent_id, "more")
          yield* life.told(agent_id, /^1: more$/u)
          const { epoch, reason, session_id, status } = yield* lifecycle.view(agent_id)
          assert.deepStrictEqual([status, epoch, reason, session_id === first.session_id], ["running", 1, null, false])
          assert.isFalse((yield* views.all).some((view) => view.status === "starting" && view.reason !== null))
          yield* life.say(agent_id, "budget")
          yield* views.first((view) => /session has ended/u.test(view.reason ?? ""), (yield* views.all).length)
          // The run outlives choird, although it has no session.
          yield* Scope.close(life.scope, Exit.void)
          const next = yield* beginLife(life.home)
          yield* next.lifecycle.recover
          yield* next.say(agent_id, "after")
          yield* next.told(agent_id, /^1: after$/u)
          yield* next.lifecycle.stop(agent_id)
          assert.deepStrictEqual(yield* leasesOf(next, agent_id), [])
        })
    )

    it.effect("kills an agent that ignores its stop, once it is silent or too slow (D18)", () =>
      Effect.gen(function* () {
        const life = yield* setUpOf(silent)
        const { agent_id, lifecycle, script } = life
        script("stubborn")
        yield* lifecycle.start(agent_id, {})
        yield* life.say(agent_id, "hang")
        const pid = yield* pidOf(life, agent_id)
        assert.strictEqual((yield* lifecycle.stop(agent_id)).status, "stopped")
        assert.isTrue(yield* isGone(pid))
        assert.strictEqual((yield* sessionOf(life, agent_id)).status, "stopped")
      })
    )

    it.effect(
      "resumes after choird's own stop, and reaps what a killed choird left before the new epoch (R2, R8)",
      () =>
        Effect.gen(function* () {
          const life = yield* setUp
          const { agent_id, home, lifecycle } = life
          const first = yield* lifecycle.start(agent_id, {})
          yield* life.say(agent_id, "one")
          yield* life.told(agent_id, /^1: one$/u)
          yield* Scope.close(life.scope, Exit.void)
          assert.strictEqual((yield* sessionOf(life, agent_id)).status, "active")
          const second = yield* beginLife(home)
          yield* second.lifecycle.recover
          const resumed = yield* second.views.first((view) => view.status === "running")
          assert.deepInclude(resumed, { session_id: first.session_id, epoch: 2 })
          yield* Scope.close(second.scope, Exit.void)
          // As after a death of choird: a process lives on, and the next choird knows of it by the session's row alone.
          const left = yield* stray(life.workspace)
          const sessions = yield* second.within(SessionStore)
          yield* sessions.recordContainer(first.session_id!, 2, left)
          const third = yield* beginLife(home)
          yield* third.lifecycle.recover
          assert.isTrue(yield* isGone(left.processes[0]?.pid ?? 0))
          assert.deepInclude(yield* third.views.first((view) => view.status === "running"), {
            session_id: first.session_id,
            epoch: 3
          })
        })
    )

    it.effect(
      "frees what nobody uses any more, and does not let one agent that cannot come up hold up the rest (D15)",
      () =>
        Effect.gen(function* () {
          const home = yield* makeAgentHome((id, { agents }) => ({
            agents: { ...(agents as object), [`${id}-b`]: (agents as Record<string, unknown>)[id] }
          }))
          const other = AgentId.make(`${home.agent_id}-b`)
          yield* makeImage(home.home, other)
          const life = yield* beginLife(home.home)
          yield* life.lifecycle.start(home.agent_id, {})
          const elsewhere = { workspace: ResourceName.make("spare"), dm: ResourceName.make("hall") }
          yield* life.lifecycle.start(other, elsewhere)
          yield* Scope.close(life.scope, Exit.void)
          home.noImage(other)
          const next = yield* beginLife(home.home)
          const gone = AgentId.make("gone")
          const { acquire } = yield* next.within(Leases)
          yield* acquire(gone, (yield* sessionOf(next, other)).session_id, [{ kind: "notion", name: "wiki" }])
          yield* next.lifecycle.recover
          assert.deepStrictEqual(yield* leasesOf(next, gone), [])
          yield* next.views.first((view) => view.agent_id === home.agent_id && view.status === "running")
          const left = yield* next.views.first((view) => view.agent_id === other && view.status === "stopped")
          assert.match(left.reason ?? "", /choirctl agent build/u)
          assert.strictEqual((yield* sessionOf(next, other)).status, "stopped")
          assert.deepStrictEqual(yield* leasesOf(next, other), [])
        })
    )

    it.effect("writes the agent's output and its own words on it to the agent's log, and archives it at the stop", () =>
      Effect.gen(function* () {
        const life = yield* setUp
        const { agent_id, home, lifecycle } = life
        yield* Effect.provide(
          Effect.gen(function* () {
            const { session_id } = yield* lifecycle.start(agent_id, {})
            yield* lifecycle.stop(agent_id)
            const archive = join(home, "logs", "archive", agent_id)
            assert.strictEqual(readdirSync(archive).length, 1)
            const lines = readFileSync(join(archive, readdirSync(archive)[0] ?? ""), "utf8")
              .trim()
              .split("\n")
              .map((line) => JSON.parse(line) as Record<string, unknown>)
            for (const message of ["epoch 1 fresh at 0", "plain words"]) {
              const line = lines.find((one) => one["message"] === message)
              assert.include(line, { level: "INFO", source: agent_id, session_id })
            }
            assert.isTrue(
              lines.some((line) => line["source"] === "choird" && line["message"] === "the agent is running")
            )
          }),
          life.logged
        )
      })
    )
  })
})
