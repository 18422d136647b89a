/** An image on disk: the folder `choir/` with its files, their modes and `version.json`. */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { Effect, type FileSystem, Schema } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { type CommitId, ImageVersion, ImageVersionFile } from "#schema/Image.ts"
import { digestOf, REPO_FILE_BYTES_MAX, REPO_FILES_MAX, type RepoFile } from "#src/choird/repos/Tree.ts"
import { decodeFile } from "#src/shared/config/decode.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"

/** Files and folders of an image: two whole repositories, and the folders their paths make. */
const IMAGE_ENTRIES_MAX = 4 * REPO_FILES_MAX

/** Raised when the same commits shall give another image, because this program lays it out differently. */
const BUILDER_VERSION = 1

/** An image that is not what its `version.json` says. */
export class ImageDrift extends Schema.TaggedError<ImageDrift>()("ImageDrift", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `the image ${this.path} is not what was built: ${this.reason}. Build it again`
  }
}

interface Fingerprint {
  readonly path: string
  readonly executable: boolean
  readonly sha256: string
}

const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex")

/** The same for the same files in whatever order; a path holds no line break. */
const hashOf = (folder: string, files: ReadonlyArray<Fingerprint>) =>
  sha256(
    files
      .filter(({ path }) => path.startsWith(`${folder}/`))
      .map(({ path, executable, sha256 }) => `${sha256} ${executable ? "x" : "-"} ${path}\n`)
      .sort()
      .join("")
  )

/** The commits that an image is of. */
export interface ImageCommits {
  readonly global: CommitId
  readonly agent: CommitId
}

/**
 * Follows from the two commits and the builder alone, so that an unchanged image is recognised before it is built. An image of a
 * runtime that compiles holds the manifests of tools which other runtimes leave out.
 */
export const imageVersion = ({ agent, global }: ImageCommits, compiles: boolean): ImageVersion =>
  ImageVersion.make(
    sha256(`choir-image/${BUILDER_VERSION}${compiles ? "/compiled" : ""}\0${global}\0${agent}`).slice(0, 12)
  )

const versionFile = (
  agent_id: AgentId,
  image_version: ImageVersion,
  commits: ImageCommits,
  files: ReadonlyArray<RepoFile>
): ImageVersionFile => {
  const prints = files.map((file) => ({ path: file.path, executable: file.executable, sha256: digestOf(file) }))
  return {
    agent_id,
    image_version,
    global_repo_commit: commits.global,
    agent_repo_commit: commits.agent,
    tool_manifest_hash: hashOf("tools", prints),
    skill_manifest_hash: hashOf("skills", prints)
  }
}

/** The folders of an image, parents first; those that an agent expects are there even when they are empty. */
const foldersOf = (files: ReadonlyArray<RepoFile>) => {
  const folders = new Set(["", "tools", "tools/global", "tools/agent", "skills"])
  for (const { path } of files) {
    const parts = path.split("/").slice(0, -1)
    for (const [index] of parts.entries()) folders.add(parts.slice(0, index + 1).join("/"))
  }
  return [...folders].sort()
}

const writeContent = (fs: FileSystem.FileSystem, path: string, { bytes, path: name }: RepoFile) => {
  if (bytes instanceof Uint8Array) return fs.writeFile(path, bytes, { flag: "wx" })
  return bytes.file === undefined
    ? Effect.die(new Error(`the content of ${name} was not asked for`))
    : fs.copyFile(bytes.file, path)
}

/**
 * Writes an image into the empty folder `path`. Modes are set after creation, since a umask must not keep an agent's own uid from
 * reading what choird built: 0755 for folders and executables, 0644 for the rest.
 */
export const writeImage = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  path: string,
  agent_id: AgentId,
  image_version: ImageVersion,
  commits: ImageCommits,
  files: ReadonlyArray<RepoFile>
) {
  yield* fs.chmod(path, 0o755)
  for (const folder of foldersOf(files)) {
    yield* fs.makeDirectory(join(path, "choir", folder))
    yield* fs.chmod(join(path, "choir", folder), 0o755)
  }
  const version = Buffer.from(`${JSON.stringify(versionFile(agent_id, image_version, commits, files), undefined, 2)}\n`)
  for (const file of [...files, { path: "version.json", executable: false, bytes: version }]) {
    yield* writeContent(fs, join(path, "choir", file.path), file)
    yield* fs.chmod(join(path, "choir", file.path), file.executable ? 0o755 : 0o644)
  }
})

const drift = (path: string, reason: string) => new ImageDrift({ path, reason })

/** Everything below `folder`, read without following a link. */
const fingerprints = Effect.fnUntraced(function* (fs: FileSystem.FileSystem, image: string, folder: string) {
  const open = [folder]
  const prints: Array<Fingerprint> = []
  for (let seen = 0; open.length > 0;) {
    const path = open.pop() ?? folder
    if ((seen += 1) > IMAGE_ENTRIES_MAX) return yield* drift(image, `more than ${IMAGE_ENTRIES_MAX} files and folders`)
    const info = yield* fs.lstat(join(image, "choir", path))
    if (info.type === "Directory") {
      open.push(...(yield* fs.readDirectory(join(image, "choir", path))).map((name) => `${path}/${name}`))
    } else if (info.type === "File" && Number(info.size) <= REPO_FILE_BYTES_MAX) {
      const bytes = yield* fs.readFile(join(image, "choir", path))
      prints.push({ path, executable: (info.mode & 0o111) !== 0, sha256: sha256(bytes) })
    } else {
      return yield* drift(image, `${path} is no file of an image`)
    }
  }
  return prints
})

const decodeVersion = decodeFile(ImageVersionFile)

/** Reads `version.json` of the image folder `path` and compares it with the files beside it. */
export const readImage = Effect.fnUntraced(
  function* (fs: FileSystem.FileSystem, path: string) {
    const file = join(path, "choir", "version.json")
    const info = yield* fs.lstat(file)
    if (info.type !== "File" || Number(info.size) > MANIFEST_BYTES_MAX) return yield* drift(path, "no version.json")
    const version = yield* decodeVersion(file, yield* fs.readFileString(file))
    const commits = { global: version.global_repo_commit, agent: version.agent_repo_commit }
    if (![true, false].some((compiles) => imageVersion(commits, compiles) === version.image_version)) {
      return yield* drift(path, "its version does not follow from its commits")
    }
    const tools = hashOf("tools", yield* fingerprints(fs, path, "tools"))
    const skills = hashOf("skills", yield* fingerprints(fs, path, "skills"))
    if (tools !== version.tool_manifest_hash) return yield* drift(path, "its tools were changed")
    if (skills !== version.skill_manifest_hash) return yield* drift(path, "its skills were changed")
    return version
  },
  (effect, _, path) =>
    Effect.catchTags(effect, {
      PlatformError: (error) => Effect.fail(drift(path, error.message)),
      InvalidFile: (error) => Effect.fail(drift(path, error.message))
    })
)
