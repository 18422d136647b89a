/** A home of choird whose images are built in the tests' engine, with programs that are always the same. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Schema } from "effect"
import { RuntimeConfig } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import { type BuildOptions, Images } from "#src/choird/images/Images.ts"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { DockerImages } from "#src/choird/runtime/docker/DockerImages.ts"
import { AGENT_LABEL } from "#src/choird/runtime/docker/imageNames.ts"
import { removeContainer } from "#src/choird/runtime/docker/removeContainer.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { makeGitRepo, temporaryFolder } from "../../../support/gitRepo.ts"
import { reposLayer } from "../../../support/images.ts"

const folder = join(packageFolder, "docker", "starter")

/** The starter of `choirctl init`, as the files of a repository. */
export const STARTER = Object.fromEntries(
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [relative(folder, path), readFileSync(path)])
)

/** Programs of a base, the same for each run, so that the engine has the base already. */
const programs = (root: string) => {
  mkdirSync(join(root, "programs"))
  const program = join(root, "programs", "choir-agent.js")
  writeFileSync(program, `console.log("an agent")\n`)
  writeFileSync(join(root, "programs", "choir-agent.code.js"), "code\n")
  writeFileSync(join(root, "programs", "choir-agent.cache"), "compiled\n")
  writeFileSync(join(root, "programs", "choir-agent.o200k"), "words\n")
  return Effect.succeed({ node: process.execPath, program, rg: "/usr/bin/rg" })
}

export const makeDockerHome = Effect.fnUntraced(function* (
  socket: string,
  agent_id: AgentId,
  runtime: Partial<typeof RuntimeConfig.Encoded> = {}
) {
  const root = yield* temporaryFolder
  const home = join(root, "home")
  const global = makeGitRepo(join(root, "global"))
  const agent = makeGitRepo(join(root, "agent"))
  global.commit(STARTER)
  agent.commit({ Dockerfile: "FROM choir-base\n" })
  const config = yield* Schema.decodeEffect(RuntimeConfig)({ type: "docker", ...runtime })
  const engines = DockerEngine.layer({ docker_socket: socket })
  const docker = DockerImages.layer({ home, programs: programs(root), runtime: config }).pipe(
    Layer.provideMerge(engines),
    Layer.provideMerge(NodeServices.layer)
  )
  const builder = Layer.effect(
    ContainerRuntime,
    Effect.map(DockerImages, ({ build, has }) =>
      ContainerRuntime.of({
        type: "docker",
        buildImage: build,
        hasImage: has,
        start: () => Effect.die("no container is started here"),
        adopt: () => Effect.succeed(false),
        sweep: () => Effect.void,
        reap: () => Effect.void,
        emptyWorkspace: () => Effect.die("no workspace is emptied here"),
        status: Effect.die("nobody asks")
      })
    )
  )
  const context = yield* Layer.build(
    Images.layer(home).pipe(Layer.provide(reposLayer(home)), Layer.provideMerge(builder), Layer.provideMerge(docker))
  )
  const { engine, images, made } = yield* Effect.provideContext(
    Effect.all({ engine: DockerEngine, images: DockerImages, made: Images }),
    context
  )
  const sources = { global: { url: global.path, ref: "main" }, agent: { url: agent.path, ref: "main" } }
  const tags = engine
    .use("the images", (client) =>
      client.listImages({ filters: JSON.stringify({ label: [`${AGENT_LABEL}=${agent_id}`] }) })
    )
    .pipe(Effect.map((rows) => rows.flatMap(({ RepoTags }) => RepoTags ?? []).filter((tag) => !tag.includes("<none>"))))
  /** Ids of the agent's images without a tag. */
  const nameless = engine
    .use("the images", (client) =>
      client.listImages({ filters: JSON.stringify({ dangling: ["true"], label: [`${AGENT_LABEL}=${agent_id}`] }) })
    )
    .pipe(Effect.map((rows) => rows.map(({ Id }) => Id)))
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(Effect.orDie(tags), (names) =>
      Effect.forEach(names, (name) => Effect.ignore(engine.use("an image", (client) => client.getImage(name).remove())))
    )
  )
  const lines: Array<string> = []
  return {
    global,
    agent,
    engine,
    images,
    made,
    tags,
    nameless,
    runIn: (image: string, command: ReadonlyArray<string>) =>
      Effect.provideService(runIn(image, command), DockerEngine, engine),
    lines,
    build: (options: BuildOptions = {}) =>
      made.build(agent_id, sources, {
        progress: (line) => Effect.sync(() => void lines.push(line)),
        ...options
      })
  }
})

/** What a command prints in a container of the image, without a network. */
const runIn = Effect.fnUntraced(function* (image: string, command: ReadonlyArray<string>) {
  const engine = yield* DockerEngine
  const container = yield* Effect.acquireRelease(
    engine.use("a container", (docker) =>
      docker.createContainer({
        Image: image,
        Entrypoint: [...command],
        Tty: true,
        HostConfig: { NetworkMode: "none", CapDrop: ["ALL"] },
        Labels: { "choir.test": "images" }
      })
    ),
    ({ id }) => Effect.ignore(removeContainer(id))
  )
  yield* engine.use("the start", () => container.start())
  yield* engine.use("the end", () => container.wait())
  const output = yield* engine.use("its output", () => container.logs({ stdout: true, stderr: true }))
  return output.toString("utf8").replaceAll("\r\n", "\n").trim()
}, Effect.scoped)
