/**
 * Images in the engine, built from the folders that `Images` writes: the base of the global repository, an agent's own Dockerfile on it,
 * and the folder baked in at `/choir`. A tag is set last, so a name always means a whole image.
 */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { Context, Effect, FileSystem, Layer, Option, Schema } from "effect"
import type { RuntimeConfig } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import type { ImageVersion } from "#schema/Image.ts"
import type { AgentPrograms, ProgramMissing } from "#src/choird/runtime/AgentCommand.ts"
import type { ContainerError, ImageBuildFailed, ImageSource } from "#src/choird/runtime/ContainerRuntime.ts"
import type { DockerfileRole } from "#src/choird/repos/dockerfile.ts"
import { makeKeyedLock } from "#src/choird/config/keyedLock.ts"
import { baseOf, checkPrograms, ImageFacts, imageProblem } from "./imageChecks.ts"
import { agentRequest, bakedEntries, baseRequest, sourceRefusal } from "./imageRequests.ts"
import { BuildBroke, type BuildRequest, type ContextEntry, runBuild } from "./runBuild.ts"
import { asContainerError, DockerEngine } from "./DockerEngine.ts"
import { failedBuild } from "./failedBuild.ts"
import * as names from "./imageNames.ts"

type Progress = (line: string) => Effect.Effect<void>

export class DockerImages extends Context.Service<
  DockerImages,
  {
    /**
     * Builds the image of a folder and the base below it, and removes images that are not kept. Does nothing and returns false where the
     * engine already has the image. A failure or an interruption leaves the names as they were.
     */
    build(source: ImageSource, progress: Progress): Effect.Effect<boolean, ImageBuildFailed>
    /** Whether the engine has the image, whatever base it was made on. */
    has(agent_id: AgentId, image_version: ImageVersion): Effect.Effect<boolean, ContainerError>
  }
>()("choir/choird/DockerImages") {
  static readonly layer = (options: DockerImagesOptions) => Layer.effect(DockerImages, make(options))
}

export interface DockerImagesOptions {
  /** The folder of choird, whose images are its own also on an engine that others use. */
  readonly home: string
  readonly programs: Effect.Effect<AgentPrograms, ProgramMissing>
  readonly runtime: RuntimeConfig
}

const decodeFacts = Schema.decodeUnknownOption(ImageFacts)

/** The engine's description of an image, by its name or id; nothing where it has none. */
const find = Effect.fnUntraced(function* (ref: string) {
  const { use } = yield* DockerEngine
  const image = yield* use(`the image ${ref} could not be inspected`, (docker) => docker.getImage(ref).inspect()).pipe(
    Effect.asSome,
    Effect.catchIf(
      (error) => error.reason === "missing",
      () => Effect.succeedNone
    )
  )
  return Option.flatMap(image, decodeFacts)
})

const remove = (ref: string) =>
  Effect.flatMap(DockerEngine, ({ use }) =>
    use(`the image ${ref} could not be removed`, (docker, abortSignal) => docker.getImage(ref).remove({ abortSignal }))
  ).pipe(Effect.ignore({ log: "Debug" }))

/**
 * The labels of an agent's image, where this installation made it. Another installation, perhaps on another version of Choir, gives the
 * same tag to its image of the same commits.
 */
const ownLabels = (home_id: string, agent_id: AgentId, image_version: ImageVersion) =>
  Effect.map(find(names.agentTag(agent_id, image_version)), (image) =>
    Option.filter(
      Option.flatMapNullishOr(image, ({ Config }) => Config.Labels),
      (labels) => labels[names.HOME_LABEL] === home_id
    )
  )

/** Refuses an image with settings or programs that an agent must not have. */
const requireSound = Effect.fnUntraced(function* (role: DockerfileRole, image_id: string) {
  const facts = yield* find(image_id)
  if (Option.isNone(facts)) return yield* new BuildBroke({ problem: "the image no longer exists", output: [] })
  const problem = imageProblem(facts.value)
  if (problem !== undefined) return yield* new BuildBroke({ problem, output: [] })
  return yield* checkPrograms(role, image_id)
})

/** Builds an image, checks it, and only then gives it its name. */
const buildAs = Effect.fnUntraced(function* (
  role: DockerfileRole,
  tag: string,
  request: BuildRequest,
  progress: Progress
) {
  const { use } = yield* DockerEngine
  const image_id = yield* runBuild(request, progress)
  yield* requireSound(role, image_id).pipe(Effect.tapError(() => remove(image_id)))
  const [repo = "", name = ""] = tag.split(":")
  yield* use(`the image could not be named ${tag}`, (docker, abortSignal) =>
    docker.getImage(image_id).tag({ repo, tag: name, abortSignal })
  )
  return image_id
})

/** Removes images that are not kept, but for those of containers, which the engine refuses to remove. */
const prune = Effect.fnUntraced(function* (home_id: string, source: ImageSource, key: string) {
  const { use } = yield* DockerEngine
  const images = yield* use("the engine's images could not be listed", (docker, abortSignal) =>
    docker.listImages({ filters: JSON.stringify({ label: [`${names.HOME_LABEL}=${home_id}`] }), abortSignal })
  )
  const tagged = images.flatMap(({ Created: created, Id, Labels, RepoTags }) => {
    const labels = Object(Labels) as Readonly<Record<string, string>>
    const tags = (RepoTags ?? []).filter((tag) => !tag.includes("<none>"))
    // Any other image without a name may be one that is about to get it; of this agent nothing else is built meanwhile.
    const lost = tags.length === 0 && labels[names.AGENT_LABEL] === source.agent_id ? [Id] : tags
    return lost.map((tag) => ({ tag, created, labels }))
  })
  yield* Effect.forEach(names.unusedTags(tagged, source, key), remove, { discard: true })
})

const agentLabels = ({ agent_id, image_version }: ImageSource, key: string) => ({
  [names.AGENT_LABEL]: agent_id,
  [names.VERSION_LABEL]: image_version,
  [names.BASE_LABEL]: key
})

const make = Effect.fnUntraced(function* ({ home, programs, runtime }: DockerImagesOptions) {
  const context = Context.pick(
    DockerEngine,
    FileSystem.FileSystem
  )(yield* Effect.context<DockerEngine | FileSystem.FileSystem>())
  const locked = yield* makeKeyedLock
  const home_id = createHash("sha256").update(home).digest("hex").slice(0, 16)
  const ours = { [names.MANAGED_LABEL]: "true", [names.HOME_LABEL]: home_id }
  const limits = { memory_mb: runtime.memory_mb, cpus: runtime.cpus }

  const base = Effect.fnUntraced(function* (
    source: ImageSource,
    key: string,
    entries: ReadonlyArray<ContextEntry>,
    progress: Progress
  ) {
    const tag = names.baseTag(key)
    const known = yield* find(tag)
    if (Option.isSome(known) && source.force !== true) return known.value.Id
    yield* progress(`build base ${tag}`)
    const request = baseRequest(source, entries, { ...ours, [names.BASE_LABEL]: key })
    return yield* buildAs("base", tag, { ...request, ...limits }, progress)
  })

  const agent = Effect.fnUntraced(function* (source: ImageSource, key: string, base_id: string, progress: Progress) {
    const { agent_id, image_version } = source
    const tag = names.agentTag(agent_id, image_version)
    yield* progress(`build image ${tag}`)
    const labels = { ...ours, ...agentLabels(source, key) }
    const baked = yield* bakedEntries(join(source.path, "choir"))
    const request = agentRequest(source, base_id, baked, { labels, network: runtime.build_network === "open" })
    yield* buildAs("agent", tag, { ...request, ...limits }, progress)
  })

  const build = Effect.fnUntraced(function* (source: ImageSource, progress: Progress) {
    const { agent_id, image_version } = source
    const refused = sourceRefusal(source)
    if (refused !== undefined) return yield* new BuildBroke({ problem: refused, output: [] })
    const { entries, key } = yield* baseOf(yield* programs, source.base)
    const known = yield* ownLabels(home_id, agent_id, image_version)
    const current = Option.exists(known, (labels) => labels[names.BASE_LABEL] === key)
    const builds = !current || source.force === true
    if (builds) {
      const base_id = yield* base(source, key, entries, progress).pipe(locked(key))
      yield* agent(source, key, base_id, progress)
    }
    yield* prune(home_id, source, key)
    return builds
  })

  return DockerImages.of({
    build: Effect.fn("DockerImages.build")((source, progress) =>
      build(source, progress).pipe(
        Effect.mapError((error) => failedBuild(source, error, runtime)),
        locked(`agent ${source.agent_id}`),
        Effect.provideContext(context)
      )
    ),
    has: Effect.fn("DockerImages.has")((agent_id, image_version) =>
      ownLabels(home_id, agent_id, image_version).pipe(
        Effect.map(Option.exists((labels) => labels[names.VERSION_LABEL] === image_version)),
        Effect.mapError(asContainerError),
        Effect.provideContext(context)
      )
    )
  })
})
