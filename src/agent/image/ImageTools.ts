/** The tools that an image brings along: manifests with their executables, read and checked before the agent says hello. */
import { Context, Effect, FileSystem, Layer, Result, Schema } from "effect"
import { capabilitiesOf, type ToolManifest } from "#schema/Tool.ts"
import { BUILT_IN_CAPABILITIES } from "#src/shared/image/builtInTools.ts"
import { IMAGE_TOOLS_MAX } from "#src/shared/limits.ts"
import { MANIFEST_BYTES_MAX, readToolManifest, type ToolScope } from "#src/shared/image/toolManifest.ts"
import { requireTools, SkillRegistry } from "./SkillRegistry.ts"

/** A tool of the image that cannot be offered. The agent does not start without it. */
export class ToolBroken extends Schema.TaggedError<ToolBroken>()("ToolBroken", {
  /** The manifest, or the folder that cannot be read. */
  file: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `the tool ${this.file} cannot be used: ${this.reason}`
  }
}

/** A manifest that was checked, and the path of the program that it runs. */
export interface ImageTool {
  readonly file: string
  readonly manifest: ToolManifest
  readonly executable: string
}

/** The image's tools, the global ones first; an agent's own tool may have the name of a global one, and replaces it. */
export class ImageTools extends Context.Service<ImageTools, ReadonlyArray<ImageTool>>()(
  "choir/agent/image/ImageTools"
) {
  /** Fails unless every tool, and every skill with the tools that it allows, can be used. `choir` is the image's folder. */
  static readonly layer = (choir: string) => Layer.effect(ImageTools, load(choir))
}

type Broken = (reason: string) => ToolBroken

const readText = Effect.fnUntraced(function* (file: string, broken: Broken) {
  const fs = yield* FileSystem.FileSystem
  const { size, type } = yield* Effect.mapError(fs.lstat(file), ({ message }) => broken(message))
  if (type !== "File") return yield* broken("it is not a regular file")
  if (size > BigInt(MANIFEST_BYTES_MAX)) return yield* broken(`it is larger than ${MANIFEST_BYTES_MAX} bytes`)
  return yield* Effect.mapError(fs.readFileString(file), ({ message }) => broken(message))
})

/** The executable's path, once it is clear that what runs is the file that the image has there. */
const findExecutable = Effect.fnUntraced(function* (folder: string, relative: string, broken: Broken) {
  const fs = yield* FileSystem.FileSystem
  const path = `${folder}/${relative}`
  const missing = () => broken(`its executable ${relative} is missing`)
  const { mode, type } = yield* Effect.mapError(fs.lstat(path), missing)
  const real = yield* Effect.mapError(Effect.all([fs.realPath(folder), fs.realPath(path)]), missing)
  if (real[1] !== `${real[0]}/${relative}`)
    return yield* broken(
      `its executable ${relative} is a symbolic link, or reached through one. Put the file itself there`
    )
  if (type !== "File") return yield* broken(`its executable ${relative} is not a regular file`)
  if ((mode & 0o111) === 0) return yield* broken(`its executable ${relative} is not executable: chmod +x`)
  return path
})

const loadTool = Effect.fnUntraced(function* (folder: string, scope: ToolScope, name: string) {
  const file = `${folder}/${name}`
  const broken: Broken = (reason) => new ToolBroken({ file, reason })
  const read = readToolManifest(scope, yield* readText(file, broken))
  if (Result.isFailure(read)) return yield* broken(read.failure.join("; "))
  const { executable, manifest } = read.success
  return { file, manifest, executable: yield* findExecutable(folder, executable, broken) }
})

/** The tools of one folder of the image, in the order of their manifests; a folder that is not there holds none. */
const loadFolder = Effect.fnUntraced(function* (choir: string, scope: ToolScope) {
  const fs = yield* FileSystem.FileSystem
  const folder = `${choir}/tools/${scope}`
  const entries = yield* fs.readDirectory(folder).pipe(
    Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed([])),
    Effect.mapError(({ message }) => new ToolBroken({ file: folder, reason: message }))
  )
  const manifests = entries.filter((name) => name.endsWith(".json")).sort()
  if (manifests.length > IMAGE_TOOLS_MAX)
    return yield* new ToolBroken({ file: folder, reason: `it holds more than ${IMAGE_TOOLS_MAX} manifests` })
  const tools = new Map<string, ImageTool>()
  for (const name of manifests) {
    const loaded = yield* loadTool(folder, scope, name)
    const { name: called } = loaded.manifest.llm
    const first = tools.get(called)
    if (first !== undefined)
      return yield* new ToolBroken({ file: loaded.file, reason: `${first.file} has the same name ${called}` })
    tools.set(called, loaded)
  }
  return [...tools.values()]
})

const load = Effect.fnUntraced(function* (choir: string) {
  const tools = [...(yield* loadFolder(choir, "global")), ...(yield* loadFolder(choir, "agent"))]
  yield* requireTools(
    yield* SkillRegistry,
    new Map([
      ...BUILT_IN_CAPABILITIES,
      ...tools.map(({ manifest }) => [manifest.llm.name, capabilitiesOf(manifest)] as const)
    ])
  )
  return tools
})
