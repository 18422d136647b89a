import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { execFileSync, spawnSync } from "node:child_process"
import { readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DockerEngine, dockerError } from "#src/choird/runtime/docker/DockerEngine.ts"
import { dockerProfile, INSIDE } from "#src/choird/runtime/docker/dockerProfile.ts"
import { agentTag } from "#src/choird/runtime/docker/imageNames.ts"
import { profileDifferences } from "#src/choird/runtime/docker/profileDifferences.ts"
import { agentCommand, partOf } from "#src/choird/runtime/AgentCommand.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { AGENT_UID_FIRST } from "#src/shared/docker/agentUids.ts"
import { engineFacts } from "#src/shared/docker/dockerInfo.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { testEngine } from "../../../support/docker.ts"
import { buildTestImage, docker, removeTestImage } from "../../../support/dockerImage.ts"
import { dockerSuite } from "../dockerRig.ts"
import { makeRig } from "../rig.ts"
import { SIZE } from "../../../support/size.ts"

const { reason, socket } = testEngine("DockerRuntime")
const suite = dockerSuite(socket)
const { containers, home, inside, installation, networks, rig, runtimeWith, started } = suite

const inspect = (name: string) => JSON.parse(docker(socket, "inspect", name))[0]

const bridges = () => spawnSync("ip", ["link", "show", "type", "bridge"], { encoding: "utf8" }).stdout

/** Connections that are closing when they are counted. */
const DESCRIPTORS_MORE_MAX = 4

describe.skipIf(reason !== undefined)("DockerRuntime", { timeout: 300_000 }, () => {
  it.live("gives the agent its flags, its environment and nothing more", () =>
    Effect.gen(function* () {
      const { agent, spec, token } = yield* started()
      assert.deepStrictEqual(agent.argv, [
        "/opt/choir/bin/node",
        "/opt/choir/choir-agent.js",
        "--control-plane=uds",
        "--socket=/run/choir/choird.sock",
        "--workspace=/workspace",
        "--choir=/choir",
        "--rg=/usr/bin/rg",
        "--own-pid-namespace"
      ])
      const { PATH, HOSTNAME, ...env } = agent.env
      assert.include(PATH, "/usr/bin")
      assert.strictEqual(HOSTNAME, "choir")
      assert.deepStrictEqual(env, {
        AGENT_ID: spec.agent_id,
        CHOIR_SESSION_ID: spec.session_id,
        CHOIR_BOOTSTRAP_TOKEN: token,
        HOME: "/tmp",
        LANG: "C.UTF-8",
        TZ: new Intl.DateTimeFormat().resolvedOptions().timeZone,
        MALLOC_ARENA_MAX: "1",
        MALLOC_TRIM_THRESHOLD_: "131072"
      })
      assert.strictEqual(agent.cwd, "/workspace")
      assert.strictEqual(
        yield* agent.sh("hostname; id -u; rg --version | head -c 7; cat /choir/version.json /opt/choir/*.o200k"),
        `choir\n${AGENT_UID_FIRST + spec.agent_number}\nripgrep{}words`
      )
      assert.strictEqual(yield* agent.sh("touch /workspace/a /tmp/b /run/c /dev/shm/d && echo written"), "written")
    }).pipe(inside)
  )

  it.live("makes the agent's user the owner of workspace and socket, and of nothing else (D11, R38)", () =>
    Effect.gen(function* () {
      const { info } = yield* DockerEngine
      const { root } = yield* info
      const { agent, spec } = yield* started()
      const uid = (root.type === "remapped" ? root.uid : 0) + AGENT_UID_FIRST + spec.agent_number
      yield* agent.sh("touch made")
      for (const path of [spec.workspace, join(spec.workspace, "made"), join(spec.socket_dir, "choird.sock")])
        assert.strictEqual(statSync(path).uid, uid, path)
      assert.strictEqual(statSync(join(spec.socket_dir, "choird.sock")).mode & 0o777, 0o600)
      assert.strictEqual(statSync(home).uid, 0)
    }).pipe(inside)
  )

  it.live("makes exactly the closed profile (R36)", () =>
    Effect.gen(function* () {
      const { id, spec } = yield* started()
      const { agent_number, workspace, socket_dir } = spec
      const user = { uid: AGENT_UID_FIRST + agent_number, gid: AGENT_UID_FIRST + agent_number }
      const profile = dockerProfile({
        spec,
        installation,
        workspace,
        socket_dir,
        user,
        oci_runtime: undefined
      })
      const made = inspect(id.container_id)
      assert.deepStrictEqual(profileDifferences(profile, made), [])
      const { HostConfig, Mounts } = made
      assert.deepStrictEqual([HostConfig.CapDrop, HostConfig.CapAdd, HostConfig.Privileged], [["ALL"], null, false])
      assert.deepStrictEqual([HostConfig.SecurityOpt, HostConfig.ReadonlyRootfs], [["no-new-privileges:true"], true])
      const { IpcMode, Memory, MemorySwap, PidMode, PidsLimit, UTSMode, UsernsMode } = HostConfig
      assert.deepStrictEqual([IpcMode, PidMode, UTSMode, UsernsMode], ["private", "", "", ""])
      assert.deepStrictEqual([Memory, MemorySwap, PidsLimit], [512 << 20, 512 << 20, 128])
      assert.strictEqual(Mounts.length, 4)
      assert.strictEqual(made.Name, `/choir-dev.${installation.id.slice(0, 8)}`)
    }).pipe(inside)
  )

  it.live("removes a container that an image made different, and one of another image than was built (R36)", () =>
    Effect.gen(function* () {
      const runtime = yield* ContainerRuntime
      const volume = yield* rig("volume", ["VOLUME /data"])
      const refused = yield* Effect.flip(Effect.scoped(runtime.start(volume.spec)))
      assert.strictEqual(refused.reason, "refused")
      assert.match(refused.problem, /Config.Volumes is \{"\/data":\{\}\}; it mounts .*volume/u)
      const other = yield* rig("drift")
      writeFileSync(join(other.spec.image, "choir", "version.json"), "{ }")
      const drifted = yield* Effect.flip(Effect.scoped(runtime.start(other.spec)))
      assert.include(drifted.message, "a different /choir/version.json")
      docker(socket, "rmi", "--force", `choir-agent-drift:${other.spec.image_version}`)
      const missing = yield* Effect.flip(Effect.scoped(runtime.start(other.spec)))
      assert.deepStrictEqual([missing.reason, /no such image/iu.test(missing.problem)], ["failed", true])
      assert.deepStrictEqual(containers(), [])
    }).pipe(inside)
  )

  it.live("takes the agent's program in the form that the build compiled, which is in the image", () =>
    Effect.gen(function* () {
      const { spec } = yield* makeRig("compiled")
      const tag = `choir-agent-compiled:${process.pid}`
      yield* Effect.addFinalizer(() => Effect.sync(() => removeTestImage(socket, tag)))
      buildTestImage(socket, { tag, image: spec.image, program: join(packageFolder, "dist/choir-agent.js") })
      const command = agentCommand(INSIDE, undefined, [])
      const flags = command.slice(1, command.indexOf(INSIDE.program))
      const [code, cache] = [partOf(INSIDE.program, "code"), partOf(INSIDE.program, "cache")]
      // After the digest of the code, as src/shared/program/compiledProgram.ts writes it.
      const look = `
        const { readFileSync } = require("node:fs")
        const options = { filename: "${code}", cachedData: readFileSync("${cache}").subarray(32) }
        console.log(new (require("node:vm").Script)(readFileSync("${code}", "latin1"), options).cachedDataRejected)`
      const run = ["run", "--rm", "--network", "none", "--entrypoint", INSIDE.node, tag, ...flags, "--eval", look]
      assert.strictEqual(docker(socket, ...run), "false")
    }).pipe(Effect.scoped)
  )

  it.live(
    "asks the engine about itself and about an image once, and about an image that took over its name (R36)",
    () => {
      const asked: Array<string> = []
      const engine = Layer.effect(
        DockerEngine,
        Effect.map(Effect.service(DockerEngine), (real) =>
          DockerEngine.of({
            ...real,
            info: Effect.andThen(
              Effect.sync(() => asked.push("info")),
              real.info
            ),
            use: (what, act, call) => {
              if (what.includes("version.json")) asked.push("version")
              return real.use(what, act, call)
            }
          })
        )
      ).pipe(Layer.provide(DockerEngine.layer({ docker_socket: socket })))
      return inside(
        Effect.gen(function* () {
          const first = yield* started("again")
          yield* first.container.kill
          const { spec } = first
          yield* Effect.scoped(first.runtime.start(spec))
          assert.strictEqual(asked.filter((what) => what === "version").length, 1)
          asked.length = 0
          const other = yield* rig("again", ["RUN echo another > /choir/version.json"])
          const names = [other.spec, spec].map(({ agent_id, image_version }) => agentTag(agent_id, image_version))
          docker(socket, "tag", ...names)
          const drifted = yield* Effect.flip(Effect.scoped(first.runtime.start(spec)))
          assert.include(drifted.message, "a different /choir/version.json")
          assert.deepStrictEqual(asked, ["version"])
        }),
        runtimeWith({}, engine)
      )
    }
  )

  it.live("tells of a death by another's hand, and of a removal (R7)", () =>
    Effect.gen(function* () {
      const four = yield* started("four")
      docker(socket, "kill", four.id.name)
      const within = yield* Effect.timeoutOption(four.container.exit, "30 seconds")
      assert.deepStrictEqual(within._tag === "Some" ? within.value : undefined, {
        code: null,
        signal: "SIGKILL",
        reason: "signalled"
      })
      const five = yield* started("five")
      docker(socket, "rm", "--force", five.id.name)
      assert.strictEqual((yield* five.container.exit).reason, "signalled")
    }).pipe(inside)
  )

  it.live("kills when its scope closes, and leaves nothing in the engine when choird ends (R65)", () =>
    Effect.gen(function* () {
      const services = yield* Scope.make()
      const context = yield* Layer.buildWithScope(runtimeWith(), services)
      const made = yield* rig()
      const scope = yield* Scope.make()
      const start = Effect.flatMap(ContainerRuntime, (runtime) => runtime.start(made.spec))
      const { exit } = yield* Scope.provide(Effect.provideContext(start, context), scope)
      yield* made.connected
      assert.deepStrictEqual(networks(), [installation.network])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(containers(), [])
      assert.strictEqual((yield* exit).reason, "killed")
      yield* Scope.close(services, Exit.void)
      assert.deepStrictEqual(networks(), [])
      const rules = execFileSync("iptables-save", { encoding: "utf8" })
      assert.notInclude(rules, installation.network)
      assert.notInclude(rules, installation.network.toUpperCase())
    })
  )

  it.live("kills and removes when the fiber that runs the agent is interrupted (R8)", () =>
    Effect.gen(function* () {
      const made = yield* rig()
      const runtime = yield* ContainerRuntime
      const run = Effect.scoped(Effect.andThen(runtime.start(made.spec), Effect.never))
      const fiber = yield* Effect.forkChild(run)
      yield* made.connected
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(containers(), [])
    }).pipe(inside)
  )

  it.live("ends what an earlier choird left, of this home alone: by its id, by its name, by its label (R8)", () =>
    Effect.gen(function* () {
      const label = `choir.home=${installation.id}`
      const left = (name: string, owner: string) =>
        docker(socket, "run", "--detach", "--name", name, "--label", owner, "debian:bookworm-slim", "sleep", "1000")
      const [mine, foreign] = [`choir-test-left-${process.pid}`, `choir-test-foreign-${process.pid}`]
      yield* Effect.addFinalizer(() => Effect.sync(() => docker(socket, "rm", "--force", foreign)))
      left(mine, label)
      left(foreign, "choir.home=another")
      const runtime = yield* ContainerRuntime
      const remembered = { type: "docker", container_id: inspect(mine).Id, name: mine } as const
      yield* runtime.sweep([remembered])
      assert.deepStrictEqual(containers(), [mine])
      yield* runtime.sweep([])
      assert.deepStrictEqual(containers(), [])
      assert.strictEqual(inspect(foreign).State.Running, true)
      // A name that is taken is taken over; an id of a row is removed, and twice is not too often.
      const name = `choir-dev.${installation.id.slice(0, 8)}`
      const container_id = left(name, label)
      const { id } = yield* started()
      assert.notStrictEqual(id.container_id, container_id)
      yield* runtime.reap(id)
      assert.deepStrictEqual(containers(), [])
      yield* runtime.reap(id)
    }).pipe(inside)
  )

  it.live("starts no agent in an engine that maps root to nobody, unless that is allowed (R38)", () =>
    Effect.gen(function* () {
      const info = { ServerVersion: "20.10", Driver: "overlay2", DockerRootDir: "/var/lib/docker" }
      const Plain = Layer.effect(
        DockerEngine,
        Effect.map(DockerEngine, (engine) => ({ ...engine, info: Effect.succeed(engineFacts(info)) }))
      ).pipe(Layer.provide(DockerEngine.layer({ docker_socket: socket })))
      const { spec } = yield* rig()
      const attempt = (settings: Parameters<typeof runtimeWith>[0]) =>
        Effect.gen(function* () {
          const runtime = yield* ContainerRuntime
          return { error: yield* Effect.flip(runtime.start(spec)), status: yield* runtime.status }
        }).pipe(Effect.scoped, Effect.provide(runtimeWith(settings, Plain)))
      const { error } = yield* attempt({})
      assert.strictEqual(error.reason, "refused")
      assert.include(error.fix, "userns-remap")
      const allowed = yield* attempt({ allow_unmapped_root: true })
      assert.match(allowed.status.warnings.join(), /root of a container would be root of this host/u)
      // It goes as far as this engine lets it, which has no such user.
      assert.notStrictEqual(allowed.error.reason, "refused")
    })
  )

  it.live("leaves no bridge of a network that the engine made half-way", () =>
    Effect.gen(function* () {
      const HalfWay = Layer.effect(
        DockerEngine,
        Effect.map(DockerEngine, (engine) => {
          const use: DockerEngine["Service"]["use"] = (what, act) => {
            if (!/^the network .* could not be created$/u.test(what)) return engine.use(what, act)
            execFileSync("ip", ["link", "add", installation.network, "type", "bridge"])
            return Effect.fail(dockerError(what, { statusCode: 500, message: "Failed to program NAT chain" }))
          }
          return { ...engine, use }
        })
      ).pipe(Layer.provide(DockerEngine.layer({ docker_socket: socket })))
      const { spec } = yield* rig()
      const attempt = Effect.flatMap(ContainerRuntime, (runtime) => runtime.start(spec))
      const error = yield* Effect.flip(Effect.scoped(Effect.provide(attempt, runtimeWith({}, HalfWay))))
      assert.include(error.message, "Failed to program NAT chain")
      assert.notInclude(bridges(), installation.network)
    })
  )

  /** CHOIR_CYCLES asks for more, as the thousand of R65. */
  const CYCLES = SIZE.containerCycles
  const CYCLES_MS_MAX = 300_000 + 10_000 * CYCLES
  it.live(
    `starts and stops ${CYCLES} times and leaves no container, network, socket or descriptor (R65)`,
    () =>
      Effect.gen(function* () {
        const made = yield* rig()
        const descriptors = () => readdirSync("/proc/self/fd").length
        yield* Effect.gen(function* () {
          const runtime = yield* ContainerRuntime
          const cycle = (epoch: number) =>
            Effect.scoped(Effect.andThen(runtime.start({ ...made.spec, epoch }), made.connected))
          yield* cycle(1)
          const [before, began_ms] = [descriptors(), performance.now()]
          for (let done = 1; done < CYCLES; done++) yield* cycle(done + 1)
          assert.isAtMost(descriptors(), before + DESCRIPTORS_MORE_MAX)
          if (process.env["CHOIR_CYCLES"] !== undefined)
            process.stderr.write(
              `${CYCLES} cycles, ${Math.round((performance.now() - began_ms) / CYCLES)} ms each, ${before} descriptors before and ${descriptors()} after, ${Math.round(process.memoryUsage.rss() / 2 ** 20)} MiB\n`
            )
        }).pipe(Effect.provide(Layer.fresh(runtimeWith())))
        assert.deepStrictEqual([containers(), networks()], [[], []])
        assert.notInclude(bridges(), installation.network)
      }),
    CYCLES_MS_MAX
  )

  it.live("says what it isolates, and true things while the engine is away", () =>
    Effect.gen(function* () {
      const status = yield* (yield* ContainerRuntime).status
      assert.match(status.isolation, /container of Docker \d+.* its root user is uid \d+ on this host/u)
      const gone = Effect.flatMap(ContainerRuntime, ({ status }) => status)
      const away = yield* Effect.provide(gone, runtimeWith({ docker_socket: join(home, "none.sock") }))
      assert.match(away.warnings.join(), /does not answer/u)
    }).pipe(inside)
  )
})
