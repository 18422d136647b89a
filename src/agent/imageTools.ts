/** The tools that an image brings along (spec 8.8): manifests with their executables, checked before the agent does anything. */
import { Effect, FileSystem, Result, Schema } from "effect"
import { type SecretName } from "#schema/Ids.ts"
import { ToolManifest } from "#schema/Tool.ts"
import { decodeFile } from "#src/shared/decode.ts"
import { IMAGE_TOOLS_MAX, MANIFEST_BYTES_MAX } from "#src/shared/limits.ts"
import { toolExecutable, type ToolScope } from "#src/shared/toolExecutable.ts"
import { AgentSettings } from "./AgentSettings.ts"
import { ControlPlane } from "./ControlPlane.ts"
import { makeLockset } from "./locks.ts"
import { SecretStore } from "./SecretStore.ts"
import { external } from "./tools/external.ts"
import type { Tool } from "./tools/Tool.ts"
import { secretBehind } from "./toolSecrets.ts"

/** A tool of the image that cannot be offered. The agent does not start without it (fail fast, spec 8.8). */
export class ToolBroken extends Schema.TaggedError<ToolBroken>()("ToolBroken", {
  /** The manifest, or the folder that cannot be read. */
  file: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `the tool ${this.file} cannot be used: ${this.reason}`
  }
}

/** A tool and the manifest that it was made of. */
export interface ImageTool {
  readonly file: string
  readonly tool: Tool
}

const UNBOUND_FIX =
  "Name a secret of config.json, llm or core_llm, and bind the resource that it belongs to (agents.<id>.defaults)"

type Broken = (reason: string) => ToolBroken

const decodeManifest = decodeFile(ToolManifest)

const readText = Effect.fnUntraced(function* (file: string, broken: Broken) {
  const fs = yield* FileSystem.FileSystem
  const { size, type } = yield* Effect.mapError(fs.lstat(file), ({ message }) => broken(message))
  if (type !== "File") return yield* broken("it is no regular file")
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
  if (type !== "File") return yield* broken(`its executable ${relative} is no regular file`)
  if ((mode & 0o111) === 0) return yield* broken(`its executable ${relative} is not executable: chmod +x`)
  return path
})

/** Asks choird for each secret that the manifest names. An agent that would miss one later does not start now. */
const requireSecrets = Effect.fnUntraced(function* (names: ReadonlyArray<SecretName>, broken: Broken) {
  const plane = yield* ControlPlane
  const store = yield* SecretStore
  const { config } = (yield* AgentSettings).current()
  for (const name of names) {
    const secret = yield* Effect.mapError(secretBehind(name, config), ({ message }) => broken(message))
    if ((yield* store.get(secret)) !== undefined) {
      yield* store.add([name], new Map())
      continue
    }
    const fetched = plane.secrets([secret]).pipe(
      Effect.catchTag("Denied", ({ reason, type }) => {
        const fix = type === "UNBOUND" ? UNBOUND_FIX : `Set it: choirctl secret set ${secret}`
        return Effect.fail(broken(`secret_resources names "${name}": ${reason}. ${fix}`))
      })
    )
    yield* store.add([name], yield* fetched)
  }
})

const loadTool = Effect.fnUntraced(function* (folder: string, scope: ToolScope, name: string) {
  const file = `${folder}/${name}`
  const broken: Broken = (reason) => new ToolBroken({ file, reason })
  const text = yield* readText(file, broken)
  const manifest = yield* Effect.mapError(decodeManifest(file, text), ({ problems }) => broken(problems))
  const { runtime } = manifest
  const locks = makeLockset(runtime.locks)
  if (Result.isFailure(locks)) return yield* broken(locks.failure.message)
  const relative = toolExecutable(scope, runtime.exec_path)
  if (relative === undefined)
    return yield* broken(`exec_path leaves the folder tools/${scope}: write /choir/tools/${scope}/<file>, or <file>`)
  const executable = yield* findExecutable(folder, relative, broken)
  const tool = yield* Effect.mapError(external(manifest, executable), ({ message }) => broken(message))
  yield* requireSecrets(runtime.secret_resources, broken)
  return { file, tool }
})

/** The tools of one folder of the image, in the order of their manifests; a folder that is not there holds none. */
export const loadImageTools = Effect.fnUntraced(function* (choir: string, scope: ToolScope) {
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
    const first = tools.get(loaded.tool.llm.name)
    if (first !== undefined)
      return yield* new ToolBroken({
        file: loaded.file,
        reason: `${first.file} has the same name ${loaded.tool.llm.name}`
      })
    tools.set(loaded.tool.llm.name, loaded)
  }
  return [...tools.values()]
})
