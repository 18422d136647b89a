/** Rigs whose images are in an engine, and what tests ask the engine by its own program. */
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, Schema, type Scope } from "effect"
import { build } from "rolldown"
import { afterAll } from "vitest"
import { RuntimeConfig } from "#schema/Config.ts"
import { AgentId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { DockerImages } from "#src/choird/runtime/docker/DockerImages.ts"
import { agentTag, HOME_LABEL } from "#src/choird/runtime/docker/imageNames.ts"
import { installationOf } from "#src/shared/docker/dockerInstallation.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { ContainerRuntime, type DockerContainerId } from "#src/choird/runtime/ContainerRuntime.ts"
import { layer } from "#src/choird/runtime/docker/DockerRuntime.ts"
import { JSON_READER, JSON_READER_MODULE } from "#tools/jsonReader.ts"
import { buildTestImage, docker, removeTestImage } from "../../support/dockerImage.ts"
import { makeRig } from "./rig.ts"

/** Images are built by choird's builder, whose tests are its own. */
const NoImages = Layer.succeed(DockerImages, {
  build: () => Effect.succeed(false),
  has: () => Effect.succeed(true)
})

/** One file that needs nothing but Node. */
const bundle = (name: string, file: string) =>
  Effect.promise(() =>
    build({
      input: join(import.meta.dirname, name),
      platform: "node",
      resolve: { alias: { [JSON_READER]: JSON_READER_MODULE } },
      output: { file, format: "esm", codeSplitting: false },
      logLevel: "silent"
    })
  )

const decodeConfig = Schema.decodeSync(RuntimeConfig)

/**
 * What a suite on an engine is made of; what it leaves there is removed when it ends.
 *
 * @param program a file of this folder that stands in for the agent; TypeScript is bundled.
 */
export const dockerSuite = (socket: string, program = "choir-agent.js") => {
  const home = mkdtempSync("/tmp/choir-docker-home-")
  const installation = installationOf(home)
  const ours = `${HOME_LABEL}=${installation.id}`
  const tags = new Map<string, string>()
  afterAll(() => {
    for (const tag of tags.values()) removeTestImage(socket, tag)
    rmSync(home, { recursive: true, force: true })
  })

  const runtimeWith = (settings: (typeof RuntimeConfig)["Encoded"] = {}, engine?: Layer.Layer<DockerEngine>) => {
    const config = decodeConfig({ type: "docker", docker_socket: socket, ...settings })
    const parts = Layer.mergeAll(Cgroups.layer, engine ?? DockerEngine.layer(config))
    return layer({ home, config }).pipe(Layer.provide(NoImages), Layer.provideMerge(parts))
  }

  /** @param lines of the image's Dockerfile beyond what every image has. */
  const rig = Effect.fnUntraced(function* (agent = "dev", lines: ReadonlyArray<string> = []) {
    const made = yield* makeRig(agent)
    const key = [agent, ...lines].join("\n")
    const { image } = made.spec
    const tag = tags.get(key) ?? agentTag(AgentId.make(agent), ImageVersion.make(randomBytes(6).toString("hex")))
    if (!tags.has(key)) {
      if (program.endsWith(".ts")) yield* bundle(program, made.spec.program)
      buildTestImage(socket, { tag, image, program: made.spec.program, lines })
    }
    tags.set(key, tag)
    return { ...made, spec: { ...made.spec, image_version: ImageVersion.make(tag.split(":")[1] ?? "") } }
  })

  const started = Effect.fnUntraced(function* (agent = "dev") {
    const made = yield* rig(agent)
    const runtime = yield* ContainerRuntime
    const container = yield* runtime.start(made.spec)
    return { ...made, runtime, container, id: container.id as DockerContainerId, agent: yield* made.connected }
  })

  /** Containers of this suite, running or not, by their names. */
  const containers = () =>
    docker(socket, "ps", "--all", "--filter", `label=${ours}`, "--format", "{{.Names}}").split("\n").filter(Boolean)
  const networks = () =>
    docker(socket, "network", "ls", "--filter", `label=${ours}`, "--format", "{{.Name}}").split("\n").filter(Boolean)

  /** A test in a runtime whose containers are gone before it is. */
  const inside = <A, E>(
    test: Effect.Effect<A, E, ContainerRuntime | Cgroups | DockerEngine | Scope.Scope>,
    runtime = runtimeWith()
  ) => test.pipe(Effect.scoped, Effect.provide(runtime))

  return { home, installation, inside, runtimeWith, rig, started, containers, networks }
}
