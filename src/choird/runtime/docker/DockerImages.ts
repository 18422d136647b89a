/**
 * Images in the engine, made of the folders that `Images` writes: the base of the global repository, an agent's own
 * Dockerfile on it, and what the folder holds baked in at `/choir`. A tag is given last, so that a name stands for a whole image.
 */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { Context, Effect, FileSystem, Layer, Option, Schema } from "effect"
import type { RuntimeConfig } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import type { ImageVersion } from "#schema/Image.ts"
import type { AgentPrograms, ProgramMissing } from "#src/choird/runtime/AgentPrograms.ts"
import { ContainerError, ImageBuildFailed, type ImageSource } from "#src/choird/runtime/ContainerRuntime.ts"
import { makeKeyedLock } from "#src/shared/keyedLock.ts"
import { baseOf, checkPrograms, ImageFacts, imageProblem } from "./imageChecks.ts"
import { bakedEntries } from "./bakedFolder.ts"
import type { ContextEntry } from "./buildContext.ts"
import { DockerEngine } from "./DockerEngine.ts"
import { type DockerError, engineIsAway } from "./DockerError.ts"
import { failedBuild } from "./failedBuild.ts"
import * as names from "./imageNames.ts"
import { agentRequest, baseRequest, type ImageRequest, sourceRefusal } from "./imageRequests.ts"
import { BuildBroke, runBuild } from "./runBuild.ts"
import { unusedTags } from "./unusedTags.ts"

type Progress = (line: string) => Effect.Effect<void>

export class DockerImages extends Context.Service<
  DockerImages,
  {
    /**
     * Builds the image of a folder and the base below it, and removes what is no longer kept; does nothing where the engine has the
     * image already, and says so with false. Whatever goes wrong, or interrupts it, leaves the names as they were.
     */
    build(source: ImageSource, progress: Progress): Effect.Effect<boolean, ImageBuildFailed>
    /** Whether the engine has the image, whatever base it was made on. */
    has(agent_id: AgentId, image_version: ImageVersion): Effect.Effect<boolean, ContainerError>
  }
>()("choir/choird/runtime/docker/DockerImages") {
  static readonly layer = (options: DockerImagesOptions) => Layer.effect(DockerImages, make(options))
}

export interface DockerImagesOptions {
  /** The folder of choird, whose images are its own also on an engine that others use. */
  readonly home: string
  readonly programs: Effect.Effect<AgentPrograms, ProgramMissing>
  readonly runtime: RuntimeConfig
}

const decodeFacts = Schema.decodeUnknownOption(ImageFacts)

const make = Effect.fnUntraced(function* ({ home, programs, runtime }: DockerImagesOptions) {
  const engine = yield* DockerEngine
  const fs = yield* FileSystem.FileSystem
  const locked = yield* makeKeyedLock
  const home_id = createHash("sha256").update(home).digest("hex").slice(0, 16)
  const ours = { [names.MANAGED_LABEL]: "true", [names.HOME_LABEL]: home_id }
  const limits = { memory_mb: runtime.memory_mb, cpus: runtime.cpus }

  /** What the engine says of an image, by its name or id; nothing where it has none. */
  const find = Effect.fnUntraced(function* (ref: string) {
    const what = `the engine could not be asked for the image ${ref}`
    const image = yield* engine
      .use(what, (docker) => docker.getImage(ref).inspect())
      .pipe(
        Effect.asSome,
        Effect.catchIf(
          (error) => error.reason === "missing",
          () => Effect.succeedNone
        )
      )
    return Option.flatMap(image, decodeFacts)
  })

  /**
   * The labels of an agent's image, where this installation made it. Another one, on another version of Choir perhaps, gives the same
   * tag to what it makes of the same commits.
   */
  const made = (agent_id: AgentId, image_version: ImageVersion) =>
    Effect.map(find(names.agentTag(agent_id, image_version)), (image) =>
      Option.filter(
        Option.flatMapNullishOr(image, ({ Config }) => Config.Labels),
        (labels) => labels[names.HOME_LABEL] === home_id
      )
    )

  const remove = (ref: string) =>
    Effect.ignore(
      engine.use(`the image ${ref} could not be removed`, (docker, abortSignal) =>
        docker.getImage(ref).remove({ abortSignal })
      ),
      { log: "Debug" }
    )

  const look = Effect.fnUntraced(function* (
    image_id: string,
    check: (image_id: string) => Effect.Effect<void, DockerError | BuildBroke>
  ) {
    const facts = yield* find(image_id)
    if (Option.isNone(facts)) return yield* new BuildBroke({ problem: "the image is gone already", output: [] })
    const problem = imageProblem(facts.value)
    return yield* problem === undefined ? check(image_id) : new BuildBroke({ problem, output: [] })
  })

  /** Builds, looks at what came of it, and only then gives it its name. */
  const buildAs = Effect.fnUntraced(function* (
    tag: string,
    request: ImageRequest,
    check: (image_id: string) => Effect.Effect<void, DockerError | BuildBroke>,
    progress: Progress
  ) {
    const image_id = yield* runBuild(engine, { ...request, ...limits }, progress)
    yield* look(image_id, check).pipe(Effect.tapError(() => remove(image_id)))
    const [repo = "", name = ""] = tag.split(":")
    yield* engine.use(`the image could not be named ${tag}`, (docker, abortSignal) =>
      docker.getImage(image_id).tag({ repo, tag: name, abortSignal })
    )
    return image_id
  })

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
    return yield* buildAs(tag, request, (image_id) => checkPrograms(engine, "base", image_id), progress)
  })

  const agent = Effect.fnUntraced(function* (source: ImageSource, key: string, base_id: string, progress: Progress) {
    const { agent_id, image_version } = source
    const tag = names.agentTag(agent_id, image_version)
    yield* progress(`build image ${tag}`)
    const labels = {
      ...ours,
      [names.AGENT_LABEL]: agent_id,
      [names.VERSION_LABEL]: image_version,
      [names.BASE_LABEL]: key
    }
    const baked = yield* Effect.provideService(bakedEntries(join(source.path, "choir")), FileSystem.FileSystem, fs)
    const request = agentRequest(source, base_id, baked, { labels, network: runtime.build_network === "open" })
    yield* buildAs(tag, request, (image_id) => checkPrograms(engine, "agent", image_id), progress)
  })

  /** What a container uses stays: the engine refuses to remove it. */
  const prune = Effect.fnUntraced(function* (source: ImageSource, key: string) {
    const images = yield* engine.use("the engine could not be asked for its images", (docker, abortSignal) =>
      docker.listImages({ filters: JSON.stringify({ label: [`${names.HOME_LABEL}=${home_id}`] }), abortSignal })
    )
    const tagged = images.flatMap(({ Created: created, Id, Labels, RepoTags }) => {
      const labels = Object(Labels) as Readonly<Record<string, string>>
      const tags = (RepoTags ?? []).filter((tag) => !tag.includes("<none>"))
      // Any other image without a name may be one that is about to get it; of this agent nothing else is built meanwhile.
      const lost = tags.length === 0 && labels[names.AGENT_LABEL] === source.agent_id ? [Id] : tags
      return lost.map((tag) => ({ tag, created, labels }))
    })
    yield* Effect.forEach(unusedTags(tagged, source, key), remove, { discard: true })
  })

  const build = Effect.fnUntraced(function* (source: ImageSource, progress: Progress) {
    const { agent_id, image_version } = source
    const refused = sourceRefusal(source)
    if (refused !== undefined) return yield* new BuildBroke({ problem: refused, output: [] })
    const { entries, key } = yield* Effect.provideService(
      baseOf(yield* programs, source.base),
      FileSystem.FileSystem,
      fs
    )
    const known = yield* made(agent_id, image_version)
    const current = Option.exists(known, (labels) => labels[names.BASE_LABEL] === key)
    const builds = !current || source.force === true
    if (builds) {
      const base_id = yield* base(source, key, entries, progress).pipe(locked(key))
      yield* agent(source, key, base_id, progress)
    }
    yield* prune(source, key)
    return builds
  })

  return DockerImages.of({
    build: Effect.fn("DockerImages.build")((source, progress) =>
      build(source, progress).pipe(
        Effect.mapError((error) => failedBuild(source, error, runtime)),
        locked(`agent ${source.agent_id}`)
      )
    ),
    has: Effect.fn("DockerImages.has")((agent_id, image_version) =>
      Effect.map(made(agent_id, image_version), (labels) =>
        Option.exists(labels, (all) => all[names.VERSION_LABEL] === image_version)
      ).pipe(
        Effect.mapError(
          (error) =>
            new ContainerError({
              reason: engineIsAway(error) ? "unavailable" : "failed",
              problem: `${error.what}: ${error.detail}`,
              fix: error.fix
            })
        )
      )
    )
  })
})
