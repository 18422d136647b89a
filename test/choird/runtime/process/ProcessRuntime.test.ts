import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { readFileSync } from "node:fs"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { CgroupName, Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import * as ProcessRuntime from "#src/choird/runtime/process/ProcessRuntime.ts"
import { listProcesses } from "#src/choird/runtime/ProcessIdentity.ts"
import { comesTrue, HostParts, isGone, LIVE, makeRig, hostId, startHolder } from "../rig.ts"

const Processes = ProcessRuntime.layer.pipe(Layer.provideMerge(HostParts))
/** As where choird may write no control groups, so that only the tree tells what is the agent's. */
const NoCgroups = Layer.succeed(Cgroups, {
  enforced: { cpus: false, memory_mb: false, pids: false },
  create: () => Effect.succeed({ joins: [], oomKills: Effect.succeed(0) }),
  members: () => Effect.succeed([]),
  remove: () => Effect.void
})
const Bare = ProcessRuntime.layer.pipe(Layer.provideMerge([NoCgroups, DockerEngine.layer({})]))

const started = Effect.gen(function* () {
  const rig = yield* makeRig()
  const runtime = yield* ContainerRuntime
  const container = yield* runtime.start(rig.spec)
  return { ...rig, runtime, container, agent: yield* rig.connected }
})

const runsIn = (folder: string) =>
  Effect.map(listProcesses, (processes) =>
    processes.some(({ pid }) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(folder)
      } catch {
        return false
      }
    })
  )

describe("ProcessRuntime", LIVE, () => {
  it.live("gives the agent host paths, its environment and nothing more, and the token by no command line", () =>
    Effect.gen(function* () {
      const { agent, spec, token, container } = yield* started
      assert.deepStrictEqual(agent.argv, [
        spec.node,
        spec.program,
        "--control-plane=uds",
        `--socket=${spec.socket_dir}/choird.sock`,
        `--workspace=${spec.workspace}`,
        `--choir=${spec.image}/choir`,
        `--rg=${spec.rg}`
      ])
      const { PWD, ...env } = agent.env
      assert.strictEqual(PWD ?? spec.workspace, spec.workspace)
      assert.deepStrictEqual(Object.keys(env).sort(), [
        "AGENT_ID",
        "CHOIR_BOOTSTRAP_TOKEN",
        "CHOIR_SESSION_ID",
        "HOME",
        "LANG",
        "MALLOC_ARENA_MAX",
        "MALLOC_TRIM_THRESHOLD_",
        "PATH",
        "TZ"
      ])
      assert.strictEqual(agent.env["CHOIR_BOOTSTRAP_TOKEN"], token)
      assert.strictEqual(agent.cwd, spec.workspace)
      const command = readFileSync(`/proc/${hostId(container.id).processes[0]?.pid}/cmdline`, "utf8")
      assert.include(command, "choir-agent")
      assert.notInclude(command, token)
    }).pipe(Effect.provide(Processes))
  )

  it.live("tells of a Node that is not there", () =>
    Effect.gen(function* () {
      const rig = yield* makeRig()
      const runtime = yield* ContainerRuntime
      const broken = yield* runtime.start({ ...rig.spec, node: "/nonexistent/node" })
      assert.strictEqual((yield* broken.exit).reason, "setup_failed")
    }).pipe(Effect.provide(Processes))
  )

  it.live("kills the whole tree when its scope closes, what left its session included", () =>
    Effect.gen(function* () {
      const rig = yield* makeRig()
      const runtime = yield* ContainerRuntime
      const scope = yield* Scope.make()
      const { id, exit } = yield* Scope.provide(runtime.start(rig.spec), scope)
      const agent = yield* rig.connected
      // A child, one in a session of its own, and one that init has taken over.
      yield* agent.ask(`require('child_process').spawn('setsid', ['sh', '-c', 'sleep 1000; : ${rig.home}']); return 0`)
      yield* agent.sh(`(sh -c 'sleep 1000; : ${rig.home}' &) >/dev/null 2>&1`)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(yield* isGone(hostId(id).processes[0]?.pid ?? 0))
      assert.isFalse(yield* runsIn(rig.home))
      assert.strictEqual((yield* exit).reason, "killed")
    }).pipe(Effect.provide(Bare))
  )

  it.live("dies with a choird that is killed, and reap ends what the agent left (R8)", () =>
    Effect.gen(function* () {
      const rig = yield* makeRig()
      const holder = yield* startHolder("process", rig.home, rig.spec)
      const agent = yield* rig.connected
      yield* agent.sh(`(sh -c 'sleep 1000; : ${rig.home}' &) >/dev/null 2>&1`)
      process.kill(holder.pid, "SIGKILL")
      yield* comesTrue(isGone(holder.id.processes[0]?.pid ?? 0))
      assert.isTrue(yield* runsIn(rig.home))
      yield* (yield* ContainerRuntime).reap(holder.id)
      assert.isFalse(yield* runsIn(rig.home))
      // The holder made a control group that this runtime knows nothing of.
      yield* Effect.provide(
        Cgroups.use((cgroups) => cgroups.remove(holder.id.cgroup)),
        Layer.fresh(Cgroups.layer)
      )
    }).pipe(Effect.provide(Bare))
  )

  it.live("reaps by identity: not another boot's, not a process that only has the pid", () =>
    Effect.gen(function* () {
      const { container, runtime, agent } = yield* started
      const { id } = container
      const cgroup = CgroupName.make("choir-none-1")
      yield* runtime.reap({ ...hostId(id), boot_id: "another" })
      yield* runtime.reap({
        ...hostId(id),
        cgroup,
        processes: hostId(id).processes.map(({ pid }) => ({ pid, start: "1" }))
      })
      assert.strictEqual(yield* agent.sh("echo alive"), "alive")
      yield* runtime.reap(id)
      assert.isTrue(yield* isGone(hostId(id).processes[0]?.pid ?? 0))
    }).pipe(Effect.provide(Processes))
  )
})
