/** Images of the sandbox runtime: the merged repositories of an agent as a folder, built once for each pair of commits (spec 17.3). */
import { join } from "node:path"
import { Context, Effect, FileSystem, Layer, Option, Schema } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { CommitId, ImageVersion, ImageVersionFile } from "#schema/Image.ts"
import { Contents, contentsOf } from "#src/choird/repos/Contents.ts"
import { merge } from "#src/choird/repos/Merge.ts"
import { ContainerRuntime, type ImageBuildFailed } from "#src/choird/runtime/ContainerRuntime.ts"
import { type RepoError, repoLabel, Repos, type Snapshot } from "#src/choird/repos/Repos.ts"
import type { RepoSource } from "#src/choird/repos/RepoSource.ts"
import { makeKeyedLock } from "#src/shared/keyedLock.ts"
import { IMAGES_KEPT } from "#src/shared/limits.ts"
import { type ImageDrift, imageVersion, readImage, writeImage } from "./ImageFolder.ts"

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

export interface ImageSources {
  readonly global: RepoSource
  readonly agent: RepoSource
}

/** What a build does next, in this order; nothing is written when the image is up to date. The runtime's own lines follow. */
export type BuildStep = "fetch global" | "fetch agent" | "check" | "write"

export interface BuildOptions {
  /** Builds although an image of the same commits is there. */
  readonly force?: boolean
  /** Versions that running agents have mounted: they are neither replaced nor removed. */
  readonly in_use?: ReadonlyArray<ImageVersion>
  readonly progress?: (step: BuildStep | (string & {})) => Effect.Effect<void>
}

/** `path` holds the folder `choir`. */
export interface Image {
  readonly image_version: ImageVersion
  readonly path: string
}

export interface BuiltImage extends Image {
  /** False when the image of these commits was there already. */
  readonly built: boolean
  readonly warnings: ReadonlyArray<string>
}

/** A repository at a commit. An image of an earlier Choir does not say what it was made of. */
export const SourceState = Schema.Struct({ commit: CommitId, contents: Schema.optionalKey(Contents) })
export type SourceState = typeof SourceState.Type

/** What an image was built from. */
export const Origin = Schema.Struct({ global: SourceState, agent: SourceState })
export type Origin = typeof Origin.Type

export type BuildError = RepoError | ImageInUse | ImageNotWritten | ImageBuildFailed

export class Images extends Context.Service<
  Images,
  {
    /**
     * Fetches both repositories and makes their image the agent's newest one, in the runtime too. A build is whole or not there. The
     * last {@link IMAGES_KEPT} images stay, and those in use.
     */
    build(agent_id: AgentId, sources: ImageSources, options?: BuildOptions): Effect.Effect<BuiltImage, BuildError>
    /** The image of the agent's last build. */
    current(agent_id: AgentId): Effect.Effect<Image, NoImage>
    /** What the agent's image of this version was built from, or its newest one; nothing where there is none that can be read. */
    origin(agent_id: AgentId, image_version?: string): Effect.Effect<Option.Option<Origin>>
    /** What the image at `path` says of itself, after its files were compared with it (spec 15.1). */
    verify(path: string): Effect.Effect<ImageVersionFile, ImageDrift>
  }
>()("choir/choird/agents/Images") {
  /** @param home the folder of choird, which alone writes below its `images`. */
  static readonly layer = (home: string) =>
    Layer.effect(
      Images,
      Effect.gen(function* () {
        const repos = yield* Repos
        const runtime = yield* ContainerRuntime
        const compiles = runtime.type === "docker"
        const fs = yield* FileSystem.FileSystem
        const locked = yield* makeKeyedLock
        const folderOf = (agent_id: AgentId) => join(home, "images", agent_id)

        /** The agent's builds, the newest first. An unreadable list counts as none, since a build writes it anew. */
        const builds = (folder: string) =>
          fs.readFileString(join(folder, LIST)).pipe(
            Effect.map((text) => Option.getOrElse(decodeList(text), (): ReadonlyArray<ImageVersion> => [])),
            Effect.catchTag("PlatformError", () => Effect.succeed<ReadonlyArray<ImageVersion>>([]))
          )

        /** The list with a version first. */
        const listed = (folder: string, version: ImageVersion) =>
          Effect.map(builds(folder), (known) =>
            [version, ...known.filter((other) => other !== version)].slice(0, IMAGES_KEPT)
          )

        /** Puts a version first in the list, in one step, and removes what neither the list nor an agent needs. */
        const select = Effect.fnUntraced(function* (
          folder: string,
          version: ImageVersion,
          in_use: ReadonlyArray<ImageVersion>
        ) {
          const kept = yield* listed(folder, version)
          yield* fs.writeFileString(join(folder, `.${LIST}`), JSON.stringify(kept), { mode: 0o600 })
          yield* fs.rename(join(folder, `.${LIST}`), join(folder, LIST))
          const needed = new Set<string>([...kept, ...in_use, LIST])
          for (const name of yield* fs.readDirectory(folder)) {
            if (!needed.has(name)) yield* fs.remove(join(folder, name), { recursive: true, force: true })
          }
        })

        const build = Effect.fnUntraced(function* (
          agent_id: AgentId,
          sources: ImageSources,
          { force = false, in_use = [], progress = () => Effect.void }: BuildOptions
        ) {
          yield* progress("fetch global")
          const global = yield* repos.snapshot({ global: true }, sources.global)
          yield* progress("fetch agent")
          const agent = yield* repos.snapshot({ agent_id }, sources.agent)
          const stale = [global, agent].flatMap(({ warning }) => (warning === undefined ? [] : [warning]))
          const commits = { global: global.commit, agent: agent.commit }
          const image_version = imageVersion(commits, compiles)
          const folder = folderOf(agent_id)
          const path = join(folder, image_version)
          yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
          const sound = Option.isSome(yield* Effect.option(readImage(fs, path)))
          const built = force || !sound
          if (built && in_use.includes(image_version)) return yield* new ImageInUse({ agent_id, image_version })
          yield* progress("check")
          const plan = yield* Effect.fromResult(
            merge(
              { label: repoLabel({ global: true }), files: global.files },
              { label: repoLabel({ agent_id }), files: agent.files },
              compiles
            )
          )
          if (built) {
            yield* progress("write")
            yield* Effect.gen(function* () {
              const fresh = yield* fs.makeTempDirectoryScoped({ directory: folder, prefix: ".new-" })
              const image = join(fresh, "image")
              yield* fs.makeDirectory(image)
              yield* writeImage(fs, image, agent_id, image_version, commits, plan.files)
              const origin = { global: stateOf(global), agent: stateOf(agent) }
              yield* fs.writeFileString(join(image, ORIGIN), JSON.stringify(origin), { mode: 0o600 })
              const replaced = Effect.andThen(fs.remove(path, { recursive: true, force: true }), fs.rename(image, path))
              yield* Effect.uninterruptible(replaced)
            }).pipe(Effect.scoped)
          }
          const keep = [...(yield* listed(folder, image_version)), ...in_use]
          const source = {
            agent_id,
            image_version,
            path,
            compiled: plan.compiled,
            base: global.files,
            agent: agent.files
          }
          const made = yield* runtime.buildImage({ ...source, keep, force }, progress)
          yield* select(folder, image_version, in_use)
          return { image_version, path, built: built || made, warnings: [...stale, ...plan.warnings] }
        })

        /** An image says its commits itself; what they held stands beside the folder that the agent is given. */
        const origin = Effect.fnUntraced(function* (agent_id: AgentId, image_version: ImageVersion) {
          const path = join(folderOf(agent_id), image_version)
          const written = Effect.map(fs.readFileString(join(path, ORIGIN)), decodeOrigin)
          const known = yield* Effect.orElseSucceed(written, () => Option.none<Origin>())
          if (Option.isSome(known)) return known
          const version = yield* Effect.option(fs.readFileString(join(path, "choir", "version.json")))
          return Option.map(Option.flatMap(version, decodeVersion), ({ agent_repo_commit, global_repo_commit }) => ({
            global: { commit: global_repo_commit },
            agent: { commit: agent_repo_commit }
          }))
        })

        return Images.of({
          build: Effect.fn("Images.build")((agent_id, sources, options = {}) =>
            build(agent_id, sources, options).pipe(
              Effect.catchTag("PlatformError", (error) =>
                Effect.fail(new ImageNotWritten({ path: folderOf(agent_id), reason: error.message }))
              ),
              locked(agent_id)
            )
          ),
          current: Effect.fn("Images.current")(function* (agent_id) {
            const [image_version] = yield* builds(folderOf(agent_id))
            if (image_version === undefined) return yield* new NoImage({ agent_id })
            return { image_version, path: join(folderOf(agent_id), image_version) }
          }),
          origin: Effect.fn("Images.origin")(function* (agent_id, image_version) {
            const [newest] = yield* builds(folderOf(agent_id))
            const wanted = image_version === undefined ? newest : Option.getOrUndefined(imageVersionOf(image_version))
            return wanted === undefined ? Option.none() : yield* origin(agent_id, wanted)
          }),
          verify: Effect.fn("Images.verify")((path) => readImage(fs, path))
        })
      })
    )
}

const stateOf = ({ commit, files }: Snapshot): SourceState => ({ commit, contents: contentsOf(files) })

const ORIGIN = "origin.json"
const decodeOrigin = Schema.decodeUnknownOption(Schema.fromJsonString(Origin))
const decodeVersion = Schema.decodeUnknownOption(Schema.fromJsonString(ImageVersionFile))
const imageVersionOf = Schema.decodeUnknownOption(ImageVersion)
const LIST = "builds.json"
const decodeList = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Array(ImageVersion)))
