/** An image on disk: the folder `choir/` with its files, their modes and `version.json`, and the skills and tools that they describe. */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { Effect, FileSystem, Result, Schema } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { type CommitId, ImageVersion, ImageVersionFile } from "#schema/Image.ts"
import {
  digestOf,
  REPO_FILE_BYTES_MAX,
  REPO_FILES_MAX,
  REPO_FOLDERS_MAX,
  type RepoFile
} from "#src/choird/repos/Tree.ts"
import { readSkillIndex, SKILL_INDEX } from "#src/choird/repos/skillIndex.ts"
import { decodeFile } from "#src/shared/config/decode.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"
import type { JobProfile } from "#schema/JobProfile.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { PROFILES_FOLDER, readProfile } from "#src/shared/image/skillFile.ts"
import type { SkillName, SkillSpec } from "#schema/Skill.ts"
import { SKILL_BUNDLE_BYTES_MAX, SKILL_BUNDLE_FILES_MAX, type SkillFile } from "#schema/SkillOffer.ts"
import type { SkillReport } from "#schema/SkillCheck.ts"
import { effectOf, ToolManifest } from "#schema/Tool.ts"
import type { ToolSummary } from "#schema/AgentsApi.ts"
import { type PinnedSchemas, readPinnedSchema } from "#src/shared/image/pinnedSchemas.ts"
import { readSkill, SCHEMAS_FOLDER } from "#src/shared/image/skillFile.ts"
import type { ToolScope } from "#src/shared/image/toolManifest.ts"

const decodeManifest = Schema.decodeUnknownResult(Schema.fromJsonString(ToolManifest))

/** The texts of the `.json` files of a folder by their names, without Choir's own; a folder that is not there has none. */
const filesOf = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const drift = ({ message }: { readonly message: string }) => new ImageDrift({ path: folder, reason: message })
  const names = yield* fs.readDirectory(folder).pipe(
    Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed([])),
    Effect.mapError(drift)
  )
  const files = names.filter((name) => name.endsWith(".json") && !name.startsWith("_")).sort()
  return yield* Effect.forEach(files, (name) =>
    Effect.map(Effect.mapError(fs.readFileString(join(folder, name)), drift), (text) => ({
      stem: name.slice(0, -".json".length),
      text
    }))
  )
})

/** The schemas that skills of the image at `path` may pin. */
const schemasOf = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<PinnedSchemas, ImageDrift, FileSystem.FileSystem> {
  const folder = join(path, "choir", SCHEMAS_FOLDER)
  const files = yield* filesOf(folder)
  const read = yield* Effect.forEach(files, ({ stem, text }) =>
    Result.match(readPinnedSchema(stem, text), {
      onSuccess: (schema) => Effect.succeed([stem, schema] as const),
      onFailure: (problems) =>
        Effect.fail(new ImageDrift({ path: `${folder}/${stem}.json`, reason: problems.join("; ") }))
    })
  )
  return new Map(read)
})

/** The skills of the image at `path`, which holds the folder `choir`. One that no agent could load is a drift. */
export const imageSkills = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<ReadonlyArray<SkillSpec>, ImageDrift, FileSystem.FileSystem> {
  const folder = join(path, "choir", "skills")
  const schemas = yield* schemasOf(path)
  const read = (yield* filesOf(folder)).map(({ stem, text }) => readSkill(stem, text, { schemas }))
  const broken = read.find(Result.isFailure)
  if (broken !== undefined) return yield* new ImageDrift({ path: folder, reason: broken.failure.join("; ") })
  return read.flatMap((skill) => (Result.isSuccess(skill) ? [skill.success] : []))
})

/** The files of a skill's folder in the image at `path`, with what its tools read; none for a skill that is one file. */
export const imageSkillFiles = Effect.fnUntraced(function* (
  path: string,
  name: SkillName
): Effect.fn.Return<ReadonlyArray<SkillFile>, ImageDrift, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const folder = join(path, "choir", "skills", name)
  const drift = ({ message }: { readonly message: string }) => new ImageDrift({ path: folder, reason: message })
  const names = yield* fs.readDirectory(folder, { recursive: true }).pipe(
    Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed<Array<string>>([])),
    Effect.mapError(drift)
  )
  const found = yield* Effect.forEach(names.sort(), (file) =>
    Effect.map(Effect.mapError(fs.stat(join(folder, file)), drift), (stat) => ({ file, stat }))
  )
  const files = found.filter(({ stat: { type } }) => type === "File")
  const bytes = files.reduce((sum, { stat: { size } }) => sum + Number(size), 0)
  if (files.length > SKILL_BUNDLE_FILES_MAX || bytes > SKILL_BUNDLE_BYTES_MAX)
    return yield* drift({
      message: `a skill of more than ${SKILL_BUNDLE_FILES_MAX} files or ${bytesText(SKILL_BUNDLE_BYTES_MAX)} is not exported`
    })
  return yield* Effect.forEach(files, ({ file }) =>
    Effect.map(Effect.mapError(fs.readFile(join(folder, file)), drift), (content) => ({
      path: file,
      executable: false,
      base64: Buffer.from(content).toString("base64")
    }))
  )
})

/** The profiles of the image at `path`. One that no agent could load is a drift. */
export const imageProfiles = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<ReadonlyArray<JobProfile>, ImageDrift, FileSystem.FileSystem> {
  const folder = join(path, "choir", PROFILES_FOLDER)
  const read = (yield* filesOf(folder)).map(({ stem, text }) => readProfile(stem, text))
  const broken = read.find(Result.isFailure)
  if (broken !== undefined) return yield* new ImageDrift({ path: folder, reason: broken.failure.join("; ") })
  return read.flatMap((profile) => (Result.isSuccess(profile) ? [profile.success] : []))
})

/** The gate's reports of the image at `path`; none where an earlier Choir built it. */
export const imageReports = (path: string): Effect.Effect<ReadonlyArray<SkillReport>, never, FileSystem.FileSystem> =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFileString(join(path, "choir", SKILL_INDEX))).pipe(
    Effect.map(readSkillIndex),
    Effect.orElseSucceed(() => [])
  )

/** The tools of the image at `path`, the global ones first. */
export const imageTools = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<ReadonlyArray<ToolSummary>, ImageDrift, FileSystem.FileSystem> {
  const scopes: ReadonlyArray<ToolScope> = ["global", "agent"]
  const found = yield* Effect.forEach(scopes, (source) => {
    const folder = join(path, "choir", "tools", source)
    return Effect.flatMap(filesOf(folder), (files) =>
      Effect.forEach(files, ({ stem, text }) => {
        const manifest = decodeManifest(text)
        if (Result.isFailure(manifest))
          return Effect.fail(new ImageDrift({ path: `${folder}/${stem}.json`, reason: manifest.failure.message }))
        const { llm, runtime } = manifest.success
        const { description, name } = llm
        return Effect.succeed({
          name,
          source,
          effect: effectOf(manifest.success),
          exposure: runtime.exposure,
          description,
          version: runtime.version
        })
      })
    )
  })
  return found.flat()
})

/** Files and folders of an image: two whole repositories, and the folders their paths make. */
const IMAGE_ENTRIES_MAX = 2 * (REPO_FILES_MAX + REPO_FOLDERS_MAX)

/** Increased when this program lays out the image of the same commits differently. */
const LAYOUT_VERSION = 2

/** An image that differs from its `version.json`. */
export class ImageDrift extends Schema.TaggedError<ImageDrift>()("ImageDrift", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `the image ${this.path} is not as it was built: ${this.reason}. Build it again`
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
    sha256(`choir-image/${LAYOUT_VERSION}${compiles ? "/compiled" : ""}\0${global}\0${agent}`).slice(0, 12)
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

const writeContent = Effect.fnUntraced(function* (path: string, { bytes, path: name }: RepoFile) {
  const fs = yield* FileSystem.FileSystem
  if (bytes instanceof Uint8Array) return yield* fs.writeFile(path, bytes, { flag: "wx" })
  return yield* bytes.file === undefined
    ? Effect.die(new Error(`the content of ${name} was not asked for`))
    : fs.copyFile(bytes.file, path)
})

/**
 * Writes an image into the empty folder `path`. Modes are set after creation, since a umask must not keep an agent's own uid from
 * reading what choird built: 0755 for folders and executables, 0644 for the rest.
 */
export const writeImage = Effect.fnUntraced(function* (
  path: string,
  agent_id: AgentId,
  image_version: ImageVersion,
  commits: ImageCommits,
  files: ReadonlyArray<RepoFile>
) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.chmod(path, 0o755)
  for (const folder of foldersOf(files)) {
    yield* fs.makeDirectory(join(path, "choir", folder))
    yield* fs.chmod(join(path, "choir", folder), 0o755)
  }
  const version = Buffer.from(`${JSON.stringify(versionFile(agent_id, image_version, commits, files), undefined, 2)}\n`)
  for (const file of [...files, { path: "version.json", executable: false, bytes: version }]) {
    yield* writeContent(join(path, "choir", file.path), file)
    yield* fs.chmod(join(path, "choir", file.path), file.executable ? 0o755 : 0o644)
  }
})

const drift = (path: string, reason: string) => new ImageDrift({ path, reason })

/** Everything below `folder`, read without following a link. */
const fingerprints = Effect.fnUntraced(function* (image: string, folder: string) {
  const fs = yield* FileSystem.FileSystem
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
      return yield* drift(image, `${path} is not a file that an image can have`)
    }
  }
  return prints
})

const decodeVersion = decodeFile(ImageVersionFile)

/** Reads `version.json` of the image folder `path` and compares it with the files beside it. */
export const readImage = Effect.fnUntraced(
  function* (path: string) {
    const fs = yield* FileSystem.FileSystem
    const file = join(path, "choir", "version.json")
    const info = yield* fs.lstat(file)
    if (info.type !== "File" || Number(info.size) > MANIFEST_BYTES_MAX) return yield* drift(path, "no version.json")
    const version = yield* decodeVersion(file, yield* fs.readFileString(file))
    const commits = { global: version.global_repo_commit, agent: version.agent_repo_commit }
    if (![true, false].some((compiles) => imageVersion(commits, compiles) === version.image_version)) {
      return yield* drift(path, "its version does not follow from its commits")
    }
    const tools = hashOf("tools", yield* fingerprints(path, "tools"))
    const skills = hashOf("skills", yield* fingerprints(path, "skills"))
    if (tools !== version.tool_manifest_hash) return yield* drift(path, "its tools were changed")
    if (skills !== version.skill_manifest_hash) return yield* drift(path, "its skills were changed")
    return version
  },
  (effect, path) =>
    Effect.catchTags(effect, {
      PlatformError: (error) => Effect.fail(drift(path, error.message)),
      InvalidFile: (error) => Effect.fail(drift(path, error.message))
    })
)
