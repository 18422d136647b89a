/** Images of the sandbox runtime: the merged repositories of an agent as a folder, built once for each pair of commits. */
import { dirname, join } from "node:path"
import { Context, Effect, FileSystem, Layer, Option, type PlatformError, Schema } from "effect"
import { AgentId, type ResourceName, type SecretName } from "#schema/Ids.ts"
import { type CommitId, ImageVersion, type ImageVersionFile } from "#schema/Image.ts"
import { merge } from "#src/choird/repos/Merge.ts"
import { capabilities } from "#src/choird/runtime/capabilities.ts"
import { ContainerRuntime, type ImageBuildFailed } from "#src/choird/runtime/ContainerRuntime.ts"
import { type RepoError, repoLabel, Repos } from "#src/choird/repos/Repos.ts"
import type { RepoSource } from "#src/choird/repos/RepoSource.ts"
import type { RepoFile } from "#src/choird/repos/Tree.ts"
import { makeKeyedLock } from "#src/choird/config/keyedLock.ts"
import { type ImageCommits, type ImageDrift, imageVersion, readImage, writeImage } from "./ImageFolder.ts"
import { makeImageList } from "./ImageList.ts"
import { type Origin, OtherCommit, readOrigin, stateOf, writeOrigin } from "./ImageOrigin.ts"

export class NoImage extends Schema.TaggedError<NoImage>()("NoImage", { agent_id: AgentId }) {
  override get message() {
    return `${this.agent_id} has no image yet: run choirctl agent build ${this.agent_id}`
  }
}

/** A forced build of an image that a running agent has mounted; its files must not change under it. */
export class ImageInUse extends Schema.TaggedError<ImageInUse>()("ImageInUse", {
  agent_id: AgentId,
  image_version: ImageVersion
}) {
  override get message() {
    return `image ${this.image_version} of ${this.agent_id} is in use: stop the agent, then build again`
  }
}

export class ImageNotWritten extends Schema.TaggedError<ImageNotWritten>()("ImageNotWritten", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `cannot write below ${this.path}: ${this.reason}. Check the folder's owner and the space on its disk`
  }
}

/** An image of unknown origin. */
export class OriginUnknown extends Schema.TaggedError<OriginUnknown>()("OriginUnknown", {
  image_version: ImageVersion
}) {
  override get message() {
    return `the origin of image ${this.image_version} is unknown`
  }
}

export interface ImageSources {
  readonly global: RepoSource
  readonly agent: RepoSource
  /** The identity that the agent is bound to; its own repository is fetched with it where possible. */
  readonly git_identity?: ResourceName | undefined
  /** The reason why a tool could not be given a secret that its manifest names; without it secrets are not checked. */
  readonly secretProblem?: (name: SecretName) => string | undefined
}

/** The steps of a build, in order; nothing is written when the image is up to date. The runtime's own lines follow. */
export type BuildStep = "fetch global" | "fetch agent" | "check" | "write"

export interface BuildOptions {
  /** Builds although an image of the same commits is there. */
  readonly force?: boolean
  /** Versions that running agents have mounted: they are neither replaced nor removed. */
  readonly in_use?: ReadonlyArray<ImageVersion>
  /** The only commit of the agent's repository that may be built. */
  readonly agent_commit?: CommitId
  readonly progress?: (step: BuildStep | (string & {})) => Effect.Effect<void>
}

/** `path` holds the folder `choir`. */
export interface Image {
  readonly image_version: ImageVersion
  readonly path: string
}

export interface BuiltImage extends Image {
  /** False when the image of these commits was already there. */
  readonly built: boolean
  readonly warnings: ReadonlyArray<string>
}

export type BuildError = RepoError | OtherCommit | ImageInUse | ImageNotWritten | ImageBuildFailed

export class Images extends Context.Service<
  Images,
  {
    /**
     * Fetches both repositories and makes their image the agent's newest one, in the runtime too. A build is whole or not there. The
     * last IMAGES_KEPT images stay, and those in use.
     */
    build(agent_id: AgentId, sources: ImageSources, options?: BuildOptions): Effect.Effect<BuiltImage, BuildError>
    /** The folder of an agent's image of this version, whether or not it is there. */
    pathOf(agent_id: AgentId, image_version: string): Effect.Effect<string>
    /** The image of the agent's last build. */
    current(agent_id: AgentId): Effect.Effect<Image, NoImage>
    /**
     * Rebuilds an image in a runtime that lost it, from the image's whole folder and the commits that it was built of: nothing newer
     * comes into it. They are fetched by their ids where the clones have moved on.
     */
    remake(
      agent_id: AgentId,
      sources: ImageSources,
      image: Image,
      progress?: BuildOptions["progress"]
    ): Effect.Effect<void, BuildError | OriginUnknown>
    /** Notes that an agent came up from this image. */
    worked(agent_id: AgentId, image_version: ImageVersion): Effect.Effect<void>
    /**
     * The image to go back to when this one does not start: the last one that an agent came up from. Nothing when one came up from
     * this image already, since then something else is wrong.
     */
    lastWorking(agent_id: AgentId, image_version: ImageVersion): Effect.Effect<Option.Option<Image>>
    /** Makes an earlier image the agent's newest one again. */
    goBack(agent_id: AgentId, image_version: ImageVersion): Effect.Effect<void, ImageNotWritten>
    /** The origin of the agent's image of this version, or of its newest one; nothing where it cannot be read. */
    origin(agent_id: AgentId, image_version?: string): Effect.Effect<Option.Option<Origin>>
    /** The `version.json` of the image at `path`, after its files were compared with it. */
    verify(path: string): Effect.Effect<ImageVersionFile, ImageDrift>
  }
>()("choir/choird/Images") {
  /** @param home the folder of choird, which alone writes below its `images`. */
  static readonly layer = (home: string) =>
    Layer.effect(
      Images,
      Effect.suspend(() => make(home))
    )
}

const imageVersionOf = Schema.decodeUnknownOption(ImageVersion)

/** The plan of an image of both repositories, for the runtime of this choird. */
const merged = (
  agent_id: AgentId,
  global: ReadonlyArray<RepoFile>,
  agent: ReadonlyArray<RepoFile>,
  { secretProblem = () => undefined }: Pick<ImageSources, "secretProblem"> = {}
) =>
  Effect.flatMap(ContainerRuntime, ({ type }) =>
    Effect.fromResult(
      merge(
        { label: repoLabel({ global: true }), files: global },
        { label: repoLabel({ agent_id }), files: agent },
        { ...capabilities(type), secretProblem }
      )
    )
  )

/** The files of both commits with their contents, of which a scoped folder below `parent` holds the large ones. */
const withContents = Effect.fnUntraced(function* (
  parent: string,
  agent_id: AgentId,
  { agent, git_identity, global }: ImageSources,
  commits: ImageCommits
) {
  const fs = yield* FileSystem.FileSystem
  const repos = yield* Repos
  yield* fs.makeDirectory(parent, { recursive: true, mode: 0o700 })
  const fresh = yield* fs.makeTempDirectoryScoped({ directory: parent, prefix: ".new-" })
  const folders = { base: join(fresh, "global"), agent: join(fresh, "agent") }
  yield* Effect.forEach(Object.values(folders), (folder) => fs.makeDirectory(folder, { mode: 0o700 }))
  return {
    base: yield* repos.at({ global: true }, global, commits.global, { folder: folders.base }),
    agent: yield* repos.at({ agent_id, git_identity }, agent, commits.agent, { folder: folders.agent })
  }
})

/** Writes an image beside its place and renames it there, so that it is whole or not there. */
const replaceImage = Effect.fnUntraced(function* (
  agent_id: AgentId,
  { image_version, path }: Image,
  origin: Origin,
  files: ReadonlyArray<RepoFile>
) {
  const fs = yield* FileSystem.FileSystem
  const fresh = yield* fs.makeTempDirectoryScoped({ directory: dirname(path), prefix: ".new-" })
  const image = join(fresh, "image")
  yield* fs.makeDirectory(image)
  const commits = { global: origin.global.commit, agent: origin.agent.commit }
  yield* writeImage(image, agent_id, image_version, commits, files)
  yield* writeOrigin(image, origin)
  const replaced = Effect.andThen(fs.remove(path, { recursive: true, force: true }), fs.rename(image, path))
  yield* Effect.uninterruptible(replaced)
}, Effect.scoped)

/** The newest commits of both repositories, and warnings about them. */
const fetchSources = Effect.fnUntraced(function* (
  agent_id: AgentId,
  sources: ImageSources,
  { agent_commit, progress = () => Effect.void }: BuildOptions
) {
  const repos = yield* Repos
  yield* progress("fetch global")
  const global = yield* repos.snapshot({ global: true }, sources.global)
  yield* progress("fetch agent")
  const agent = yield* repos.snapshot({ agent_id, git_identity: sources.git_identity }, sources.agent)
  if (agent_commit !== undefined && agent.commit !== agent_commit) {
    const { commit: found, warning = null } = agent
    return yield* new OtherCommit({ agent_id, wanted: agent_commit, found, warning })
  }
  const left_out = [
    ...(yield* repos.uncommitted({ global: true }, sources.global, global)),
    ...(yield* repos.uncommitted({ agent_id }, sources.agent, agent))
  ]
  const stale = [global, agent].flatMap(({ warning }) => (warning === undefined ? [] : [warning]))
  return { global, agent, stale, left_out }
})

type ImageList = Effect.Success<ReturnType<typeof makeImageList>>

/** Makes the image of the newest commits, unless it is there, and lets the runtime make its own from it. */
const buildImage = Effect.fnUntraced(function* (
  list: ImageList,
  agent_id: AgentId,
  sources: ImageSources,
  options: BuildOptions
) {
  const fs = yield* FileSystem.FileSystem
  const runtime = yield* ContainerRuntime
  const { compiles } = capabilities(runtime.type)
  const { force = false, in_use = [], progress = () => Effect.void } = options
  const { agent, global, left_out, stale } = yield* fetchSources(agent_id, sources, options)
  const commits = { global: global.commit, agent: agent.commit }
  const image_version = imageVersion(commits, compiles)
  const path = list.pathOf(agent_id, image_version)
  yield* fs.makeDirectory(list.folderOf(agent_id), { recursive: true, mode: 0o700 })
  const sound = Option.isSome(yield* Effect.option(readImage(path)))
  const built = force || !sound
  if (built && in_use.includes(image_version)) return yield* new ImageInUse({ agent_id, image_version })
  yield* progress("check")
  const { compiled, warnings } = yield* merged(agent_id, global.files, agent.files, sources)
  const image = { image_version, path }
  const answer = { ...image, warnings: [...stale, ...warnings, ...left_out] }
  if (!built && !compiles) return { ...answer, built }
  const contents = yield* withContents(list.folderOf(agent_id), agent_id, sources, commits)
  if (built) {
    yield* progress("write")
    const { files } = yield* merged(agent_id, contents.base, contents.agent, sources)
    yield* replaceImage(agent_id, image, { global: stateOf(global), agent: stateOf(agent) }, files)
  }
  const keep = [...(yield* list.listed(agent_id, image_version)), ...in_use]
  const made = yield* runtime.buildImage({ agent_id, ...image, compiled, ...contents, keep, force }, progress)
  return { ...answer, built: built || made }
}, Effect.scoped)

/** Lets the runtime make its own image again from one whose commits are known. */
const remakeImage = Effect.fnUntraced(function* (
  list: ImageList,
  agent_id: AgentId,
  sources: ImageSources,
  { image_version, path }: Image,
  progress: BuildOptions["progress"] = () => Effect.void
) {
  const runtime = yield* ContainerRuntime
  const known = Option.getOrUndefined(yield* readOrigin(path))
  if (known === undefined) return yield* new OriginUnknown({ image_version })
  const commits = { global: known.global.commit, agent: known.agent.commit }
  const contents = yield* withContents(list.folderOf(agent_id), agent_id, sources, commits)
  const { compiled } = yield* merged(agent_id, contents.base, contents.agent)
  const keep = yield* list.builds(agent_id)
  yield* runtime.buildImage({ agent_id, image_version, path, compiled, ...contents, keep }, progress)
}, Effect.scoped)

const make = Effect.fnUntraced(function* (home: string) {
  const context = Context.pick(
    ContainerRuntime,
    FileSystem.FileSystem,
    Repos
  )(yield* Effect.context<ContainerRuntime | FileSystem.FileSystem | Repos>())
  const locked = yield* makeKeyedLock
  const list = yield* makeImageList(home)

  const asNotWritten = (agent_id: AgentId) => (error: PlatformError.PlatformError) =>
    Effect.fail(new ImageNotWritten({ path: list.folderOf(agent_id), reason: error.message }))

  return Images.of({
    build: Effect.fn("Images.build")((agent_id, sources, options = {}) =>
      buildImage(list, agent_id, sources, options).pipe(
        Effect.tap(({ image_version }) => list.select(agent_id, image_version, options.in_use ?? [])),
        Effect.catchTag("PlatformError", asNotWritten(agent_id)),
        locked(agent_id),
        Effect.provideContext(context)
      )
    ),
    remake: Effect.fn("Images.remake")((agent_id, sources, image, progress) =>
      remakeImage(list, agent_id, sources, image, progress).pipe(
        Effect.catchTag("PlatformError", asNotWritten(agent_id)),
        locked(agent_id),
        Effect.provideContext(context)
      )
    ),
    worked: Effect.fn("Images.worked")((agent_id, image_version) =>
      Effect.ignore(list.markWorked(agent_id, image_version), { log: "Warn" })
    ),
    lastWorking: Effect.fn("Images.lastWorking")((agent_id, image_version) =>
      list.lastWorking(agent_id, image_version).pipe(
        Effect.map(Option.map((version) => ({ image_version: version, path: list.pathOf(agent_id, version) }))),
        Effect.orElseSucceed(() => Option.none<Image>())
      )
    ),
    goBack: Effect.fn("Images.goBack")((agent_id, image_version) =>
      list
        .putFirst(agent_id, image_version)
        .pipe(Effect.asVoid, Effect.catchTag("PlatformError", asNotWritten(agent_id)), locked(agent_id))
    ),
    pathOf: (agent_id, image_version) => Effect.sync(() => list.pathOf(agent_id, image_version)),
    current: Effect.fn("Images.current")(function* (agent_id) {
      const [image_version] = yield* list.builds(agent_id)
      if (image_version === undefined) return yield* new NoImage({ agent_id })
      return { image_version, path: list.pathOf(agent_id, image_version) }
    }),
    origin: Effect.fn("Images.origin")(function* (agent_id, image_version) {
      const [newest] = yield* list.builds(agent_id)
      const wanted = image_version === undefined ? newest : Option.getOrUndefined(imageVersionOf(image_version))
      return wanted === undefined ? Option.none() : yield* readOrigin(list.pathOf(agent_id, wanted))
    }, Effect.provideContext(context)),
    verify: Effect.fn("Images.verify")((path) => Effect.provideContext(readImage(path), context))
  })
})
