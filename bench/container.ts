/**
 * P6, Docker's half: from the wish for an agent to its HELLO on choird's socket, beside `docker run` of the same image with the same
 * program and folders and nothing of the closed profile; and what an idle agent takes in its control group.
 */
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { Effect, Fiber, Layer, Schema, Scope } from "effect"
import { RuntimeConfig } from "#schema/Config.ts"
import { ImageVersion, type ImageVersionFile } from "#schema/Image.ts"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { DockerImages } from "#src/choird/runtime/docker/DockerImages.ts"
import { dockerProfile } from "#src/choird/runtime/docker/dockerProfile.ts"
import { agentTag } from "#src/choird/runtime/docker/imageNames.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { layer } from "#src/choird/runtime/docker/DockerRuntime.ts"
import { containerName, installationOf } from "#src/shared/docker/dockerInstallation.ts"
import { makeRig } from "../test/choird/runtime/rig.ts"
import { testEngine } from "../test/support/docker.ts"
import { buildTestImage, docker, removeTestImage } from "../test/support/dockerImage.ts"
import { AGENT, makeInstallation, ROOT } from "../test/support/installation.ts"
import { atMost, median, ratioAtMost, type Row } from "./Row.ts"

const STARTS = 15
const IDLE_MS = 5000

/** The image is the bench's own. */
const NoImages = Layer.succeed(DockerImages, {
  build: () => Effect.succeed(false),
  has: () => Effect.succeed(true)
})

const temporaryHome = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync("/tmp/choir-bench-")),
  (home) => Effect.sync(() => rmSync(home, { recursive: true, force: true }))
)

const ZEROS = "0".repeat(64)

/** Listens for the first bytes of a connection, in which an agent says HELLO; nobody answers it. */
const listening = Effect.fnUntraced(function* (path: string) {
  let heard = (): void => undefined
  const server = createServer((socket) => socket.on("error", () => undefined).once("data", () => heard()))
  rmSync(path, { force: true })
  yield* Effect.callback<void>((resume) => {
    server.listen(path, () => resume(Effect.void))
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  return Effect.callback<void>((resume) => {
    heard = () => resume(Effect.void)
  })
})

const starts = Effect.fnUntraced(function* (socket: string) {
  const home = yield* temporaryHome
  const made = yield* makeRig("bench")
  const image_version = ImageVersion.make(randomBytes(6).toString("hex"))
  const config = yield* Schema.decodeEffect(RuntimeConfig)({ type: "docker", docker_socket: socket })
  // The limits of a configuration that says nothing of them: the stand-in's single processor would slow down a compiler's threads.
  const { cpus, memory_mb, pids } = config
  const limits = { cpus, memory_mb, pids }
  const spec = { ...made.spec, image_version, limits, program: join(ROOT, "dist/choir-agent.js") }
  const version: typeof ImageVersionFile.Encoded = {
    agent_id: spec.agent_id,
    image_version,
    global_repo_commit: ZEROS,
    agent_repo_commit: ZEROS,
    tool_manifest_hash: ZEROS,
    skill_manifest_hash: ZEROS
  }
  writeFileSync(join(spec.image, "choir/version.json"), JSON.stringify(version))
  const hello = yield* listening(join(spec.socket_dir, "choird.sock"))
  const tag = agentTag(spec.agent_id, image_version)
  buildTestImage(socket, { tag, image: spec.image, program: spec.program })
  yield* Effect.addFinalizer(() => Effect.sync(() => removeTestImage(socket, tag)))
  const parts = Layer.mergeAll(Cgroups.layer, DockerEngine.layer(config), NoImages)
  const runtime = yield* Layer.build(Layer.provide(layer({ home, config }), parts))
  const { start } = yield* Effect.provideContext(Effect.service(ContainerRuntime), runtime)

  const timed = <E>(begin: Effect.Effect<unknown, E>) =>
    Effect.gen(function* () {
      const before = performance.now()
      const heard = yield* Effect.forkChild(hello, { startImmediately: true })
      yield* begin
      yield* Fiber.join(heard)
      return performance.now() - before
    })
  const ours = Effect.scoped(
    Effect.flatMap(Effect.scope, (scope) => timed(Effect.provideService(start(spec), Scope.Scope, scope)))
  )
  const { Entrypoint, Env } = dockerProfile({
    spec,
    installation: installationOf(home),
    workspace: spec.workspace,
    socket_dir: spec.socket_dir,
    user: { uid: 0, gid: 0 },
    oci_runtime: undefined
  })
  const [entry = "", ...args] = Entrypoint as ReadonlyArray<string>
  const bare = Effect.scoped(
    Effect.gen(function* () {
      const name = `choir-bench-${randomBytes(4).toString("hex")}`
      yield* Effect.addFinalizer(() => Effect.sync(() => docker(socket, "rm", "--force", name)))
      const folders = ["-v", `${spec.workspace}:/workspace`, "-v", `${spec.socket_dir}:/run/choir`]
      const env = Env.flatMap((each) => ["-e", each])
      const run = ["run", "--name", name, "--entrypoint", entry, ...folders, ...env, tag, ...args]
      return yield* timed(
        Effect.sync(() => spawn("docker", ["-H", `unix://${socket}`, ...run], { stdio: "ignore" }).unref())
      )
    })
  )
  yield* ours
  const [mine, floor]: [Array<number>, Array<number>] = [[], []]
  for (let count = 0; count < STARTS; count++) {
    mine.push(yield* ours)
    floor.push(yield* bare)
  }
  return ratioAtMost("P6", "agent in a container, to its HELLO", median(mine), "ms", median(floor), 1.25)
}, Effect.scoped)

const UNITS: Readonly<Record<string, number>> = { KiB: 1 / 1024, MiB: 1, GiB: 1024 }

const idle = Effect.fnUntraced(function* (docker_socket: string) {
  const choir = yield* makeInstallation({ endpoint: "http://127.0.0.1:9/v1", runtime: { docker_socket } })
  yield* choir.start
  yield* choir.build
  yield* choir.api.agents.start({ params: choir.params, payload: {} })
  yield* Effect.sleep(IDLE_MS)
  const name = containerName(installationOf(choir.home), AGENT)
  const used = docker(docker_socket, "stats", "--no-stream", "--format", "{{.MemUsage}}", name)
  const [, value, unit = "MiB"] = /^([\d.]+)(\wiB)/u.exec(used.trim()) ?? []
  return atMost("P6", "idle agent in a container", Number(value) * (UNITS[unit] ?? Number.NaN), "MiB", 40)
}, Effect.scoped)

/** The rows of an agent in a container; empty where no engine can be had. */
export const container: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.gen(function* () {
  const { reason, socket } = testEngine("P6 in a container")
  return reason === undefined ? [yield* starts(socket), yield* idle(socket)] : []
})
